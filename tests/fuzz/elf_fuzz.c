/*
 * libFuzzer harness for the parser of programs and their symbols. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/elf_fuzz.c -o elf_fuzz
 *
 * The image lies in a block of its exact size, so that a read of one byte too many is detected.
 * Each promise of elf.h is checked for each image that is taken. Images with numbers of 64 bits
 * that no fuzzer guesses go through the real loader: tests/host/load_test.c.
 */

#include "kernel/program/elf.c"
#include "tests/fuzz/fuzz.h"

static const struct elf_limits limits = {0x10000, 0x7ffffffff000, 0x555555554000};

static void check_segment(const struct elf_image *elf, const struct elf_segment *s, u64 size)
{
	const u64 end = s->virt + s->memory_bytes;

	require(s->memory_bytes > 0 && s->file_bytes <= s->memory_bytes);
	require(end > s->virt && s->rights < 8);
	require(s->virt >= elf->low && end <= elf->high);
	require(s->file_offset <= size && s->file_bytes <= size - s->file_offset);
	require(s->file_bytes == 0 || (s->virt - s->file_offset) % PAGE_SIZE == 0);
}

static void check_image(const struct elf_image *elf, u64 size)
{
	bool entry_found = false;
	u64 low, high;

	require(elf->segments > 0 && elf->segments <= ELF_SEGMENTS_MAX);
	require(elf->align >= PAGE_SIZE && (elf->align & (elf->align - 1)) == 0);
	require(elf->pie ? elf->bias >= limits.pie_base && elf->bias % elf->align == 0
			 : elf->bias == 0);
	require(!__builtin_add_overflow(elf->low, elf->bias, &low) &&
		!__builtin_add_overflow(elf->high, elf->bias, &high));
	require(low % PAGE_SIZE == 0 && high % PAGE_SIZE == 0 && low < high);
	require(low >= limits.start && high <= limits.end);
	for (size_t i = 0; i < elf->segments; i++) {
		const struct elf_segment *s = &elf->segment[i];

		check_segment(elf, s, size);
		require(i == 0 || page_start(s->virt) >= page_end(segment_end(s - 1)));
		if (s->rights & ELF_X && elf->entry >= s->virt && elf->entry < segment_end(s))
			entry_found = true;
	}
	require(entry_found);
	require(!elf->interpreter || strlen(elf->interpreter) > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u64 addrs[] = {0, 0x401000, 0x401004, ~0ULL};
	u8 *exact = exact_copy(data, size);
	struct elf_image elf;
	const char *name;
	u64 value = 0;

	if (!elf_parse(exact, size, limits, &elf, &value))
		check_image(&elf, size);
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		if (!elf_symbol(exact, size, addrs[i], &name, &value))
			continue;
		require(strlen(name) > 0 && name >= (char *)exact);
		require(name + strlen(name) < (char *)exact + size);
		require(value <= addrs[i]);
	}
	free(exact);
	return 0;
}
