/*
 * Replays saved inputs through a fuzz harness, without libFuzzer: link it with one of the *_fuzz.c
 * files and name the inputs. It is meant for debuggers, and for compilers without libFuzzer.
 *
 *	gcc -g -fsanitize=address,undefined \
 *		-I. -Iarch/x86_64/include tests/fuzz/cmdline_fuzz.c tests/fuzz/replay.c -o replay
 *	./replay crash-*
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerRunDriver(int *argc, char ***argv,
			int (*one_input)(const uint8_t *data, size_t size));

/* Read the whole file. Returns NULL, after a message, if it cannot be opened. */
static uint8_t *read_file(const char *name, size_t *size)
{
	FILE *file = fopen(name, "rb");
	uint8_t *data = NULL;
	size_t room = 0, n;

	*size = 0;
	if (!file) {
		perror(name);
		return NULL;
	}
	do {
		room += 65536;
		data = realloc(data, room);
		if (!data)
			abort();
		n = fread(data + *size, 1, room - *size, file);
		*size += n;
	} while (*size == room);
	fclose(file);
	return data;
}

/* libFuzzer's own name for this function, for harnesses that call it. */
int LLVMFuzzerRunDriver(int *argc, char ***argv, int (*one_input)(const uint8_t *data, size_t size))
{
	for (int i = 1; i < *argc; i++) {
		size_t size;
		uint8_t *data = read_file((*argv)[i], &size);

		if (!data)
			return 1;
		printf("%s: %zu bytes\n", (*argv)[i], size);
		fflush(stdout);
		one_input(data, size);
		free(data);
	}
	return 0;
}

__attribute__((weak)) int main(int argc, char **argv)
{
	return LLVMFuzzerRunDriver(&argc, &argv, LLVMFuzzerTestOneInput);
}
