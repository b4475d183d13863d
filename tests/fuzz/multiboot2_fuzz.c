/*
 * libFuzzer harness for the multiboot2 parser. Builds alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/multiboot2_fuzz.c -o multiboot2_fuzz
 *
 * The input is copied into a block of its exact size, so that the address sanitizer sees a read of one byte too much.
 */
#include <stdlib.h>
#include <string.h>

#include "boot/boot_info.c"
#include "boot/multiboot2.c"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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

/* What holds whatever came in. */
static void check(const struct boot_info *info)
{
	require(info->cmdline_len < BOOT_CMDLINE_MAX && info->cmdline[info->cmdline_len] == '\0');
	require(memchr(info->loader, '\0', sizeof(info->loader)) != NULL);
	require(info->rsdp_copy_len <= sizeof(info->rsdp_copy));
	require(info->ranges <= BOOT_RANGES_MAX);
	for (size_t i = 0; i < info->ranges; i++)
		require(info->range[i].start < info->range[i].end);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 *exact = malloc(size ? size : 1);

	memcpy(exact, data, size);
	memset(&boot_info, 0, offsetof(struct boot_info, range));
	boot_info.ranges = boot_info.ranges_lost = boot_info.faults = 0;
	multiboot2_parse(exact, size, &boot_info);
	check(&boot_info);
	free(exact);
	return 0;
}
