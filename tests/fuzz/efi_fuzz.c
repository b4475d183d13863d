/*
 * libFuzzer harness for the text, the load options and the memory map that BOOTX64.EFI reads, all
 * from one input, which lies in a block of its exact size.
 */
#include "boot/efi/handover.c"
#include "tests/fuzz/boot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct handover empty, given;
	u8 *exact = exact_copy(data, size);

	given = empty;
	handover_read_text(exact, size, &given);
	handover_read_options(exact, size, &given);
	require(memchr(given.words, '\0', sizeof(given.words)) != NULL);
	require(given.modules <= BOOT_MODULES_MAX);
	for (size_t i = 0; i < given.modules; i++)
		require(memchr(given.module[i], '\0', BOOT_MODULE_TEXT_MAX) != NULL);
	if (size >= sizeof(struct log_record) && handover_find_log(exact, size))
		handover_log_sum((const struct log_record *)exact);
	handover_ram_between(exact, size, 48, MIB(2), MIB(8));
	free(exact);
	return 0;
}
