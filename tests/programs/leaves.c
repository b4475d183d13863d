/*
 * A program that prints all bytes and leaves files behind (tests/qemu/test_program.py). With a
 * second word it ends by SIGABRT.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static void leave(const char *path, const void *bytes, size_t size, off_t at)
{
	const int fd = open(path, O_RDWR | O_CREAT, 0600);

	if (fd < 0 || pwrite(fd, bytes, size, at) != (ssize_t)size)
		perror(path);
	close(fd);
}

int main(int argc, char **argv)
{
	char all[512];
	char *mapped;

	for (int i = 0; i < 512; i++)
		all[i] = (char)i;
	if (write(1, all, sizeof(all)) != sizeof(all))
		perror("standard output");
	mkdir("/new", 0755);
	leave("/new/all", all, sizeof(all), 0);
	chmod("/new/all", 0750);
	leave("/hole", "end", 3, 1000001);
	leave("/dir/text", "T", 1, 0);
	leave("/dev/shm/shared", "x", 1, 0);
	rename("/dir/old", "/dir/moved");
	mapped = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, open("/dir/mapped", O_RDWR), 0);
	if (mapped != MAP_FAILED)
		mapped[0] = 'M';
	if (argc > 1)
		abort();
	return 0;
}
