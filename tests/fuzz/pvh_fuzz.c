/*
 * libFuzzer harness for the PVH parser. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/pvh_fuzz.c -o pvh_fuzz
 *
 * The input is physical memory from BASE on, beginning with the start info block. For each request
 * the parser gets a copy of exactly the bytes that it asked for, and the copy is freed at its next
 * request. The parser may therefore neither read more nor keep a pointer.
 */

#include "boot/pvh.c"
#include "tests/fuzz/boot.h"

enum { BASE = 0x1000 };

struct memory {
	const uint8_t *data;
	size_t size;
	void *mapped;
};

static const void *map_input(phys_t addr, size_t len, void *ctx)
{
	struct memory *memory = ctx;

	free(memory->mapped);
	memory->mapped = NULL;
	if (addr < BASE || addr - BASE > memory->size || len > memory->size - (addr - BASE))
		return NULL;
	memory->mapped = malloc(len ? len : 1);
	memcpy(memory->mapped, memory->data + (addr - BASE), len);
	return memory->mapped;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory memory = {.data = data, .size = size};

	boot_info_clear();
	pvh_parse(BASE, map_input, &memory, &boot_info);
	boot_info_check(&boot_info);
	free(memory.mapped);
	return 0;
}
