/*
 * libFuzzer harness for the reader of cpio images. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/cpio_fuzz.c -o cpio_fuzz
 *
 * The image lies in a block of its exact size, so that a read of one byte too many is detected.
 */

#include "kernel/lib/words.c"
#include "kernel/program/cpio.c"
#include "tests/fuzz/fuzz.h"

static void check_entry(const struct cpio_reader *reader, const struct cpio_entry *entry)
{
	const u8 *data = entry->data, *end = reader->image + reader->size;

	require(entry->name[0] != '\0' && entry->name[0] != '/');
	require(strlen(entry->name) <= CPIO_NAME_MAX);
	require(strncmp(entry->name, "../", 3) != 0 && !strstr(entry->name, "/../"));
	require(data >= reader->image && data <= end && entry->size <= (u64)(end - data));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	u8 *exact = exact_copy(data, size);
	struct cpio_reader reader;
	struct cpio_entry entry;
	u64 before = 0;

	reader = cpio_reader(exact, size);
	while (cpio_next(&reader, &entry)) {
		require(reader.at > before);
		before = reader.at;
		check_entry(&reader, &entry);
	}
	require(reader.done || reader.error);
	require(reader.at <= reader.size);
	require(!cpio_next(&reader, &entry));
	free(exact);
	return 0;
}
