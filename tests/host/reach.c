/*
 * Which code a case reaches, for tests/mutants/reach.py. In the build `reach` (host.mk) each basic
 * block begins with a call of __sanitizer_cov_trace_pc(), which notes the block in the file that
 * ASHLAR_REACH names: byte n is 1 if the call that ends n bytes behind the program's start was
 * made. All processes of the run share the file, so a machine that crashes loses nothing.
 */
#ifdef HOST_REACH
#include <fcntl.h>

#include "tests/host/host.h"

extern const char __ehdr_start[], etext[]; /* defined by the linker */
static u8 *reached;

void __sanitizer_cov_trace_pc(void);

__attribute__((constructor)) static void reach_begin(void)
{
	const size_t size = (size_t)(etext - __ehdr_start);
	const char *name = getenv("ASHLAR_REACH");
	const int fd = name ? open(name, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	void *map;

	if (!name)
		return;
	if (fd < 0 || ftruncate(fd, (off_t)size) < 0)
		host_die("cannot write %s", name);
	map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (map == MAP_FAILED)
		host_die("cannot map %s", name);
	reached = map;
}

__attribute__((no_sanitize_coverage)) void __sanitizer_cov_trace_pc(void)
{
	if (reached)
		reached[(const char *)__builtin_return_address(0) - __ehdr_start] = 1;
}
#endif
