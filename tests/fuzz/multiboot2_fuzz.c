/*
 * libFuzzer harness for the multiboot2 parser. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined \
 *		-I. tests/fuzz/multiboot2_fuzz.c -o multiboot2_fuzz
 *
 * The input is copied into a block of its exact size, so that the address sanitizer detects a read
 * of one byte too many.
 */

#include "boot/multiboot2.c"
#include "tests/fuzz/boot.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 *exact = exact_copy(data, size);

	boot_info_clear();
	multiboot2_parse(exact, size, &boot_info);
	boot_info_check(&boot_info);
	free(exact);
	return 0;
}
