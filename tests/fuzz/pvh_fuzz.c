/*
 * libFuzzer harness for the PVH parser. Builds alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/pvh_fuzz.c -o pvh_fuzz
 *
 * The input is physical memory from BASE on, starting with the start info block. What the parser maps is handed out as
 *a copy of exactly the bytes it asked for, gone at its next request: it may neither read more nor keep a pointer.
 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot_info.c"
#include "boot/pvh.c"

enum { BASE = 0x1000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct memory {
	const uint8_t *data;
	size_t size;
	void *mapped;
};

void printk(enum log_level level, const char *text, ...)
{
	(void)level;
	(void)text;
}

static void require(int condition)
{
	if (!condition)
		abort();
}

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

/* What holds whatever came in. */
static void check(const struct boot_info *info)
{
	require(info->cmdline_len < BOOT_CMDLINE_MAX && info->cmdline[info->cmdline_len] == '\0');
	require(info->ranges <= BOOT_RANGES_MAX);
	for (size_t i = 0; i < info->ranges; i++)
		require(info->range[i].start < info->range[i].end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct memory memory = {.data = data, .size = size};

	memset(&boot_info, 0, offsetof(struct boot_info, range));
	boot_info.ranges = boot_info.ranges_lost = boot_info.faults = 0;
	pvh_parse(BASE, map_input, &memory, &boot_info);
	check(&boot_info);
	free(memory.mapped);
	return 0;
}
