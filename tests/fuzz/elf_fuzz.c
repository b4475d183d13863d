/*
 * libFuzzer harness for the parser of programs and their symbols. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/elf_fuzz.c -o elf_fuzz
 *
 * The image lies in a block of its exact size, so that a read of one byte too many is detected.
 * Each promise of elf.h is checked for each image that is taken. Numbers of 64 bits are hard to
 * guess, so each input is tried with words of its program headers replaced, too, as a fixed and as
 * a pie program.
 */
#include <stdlib.h>
#include <string.h>

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
}

static void parse_and_check(const u8 *image, u64 size)
{
	struct elf_image elf;
	u64 value;

	if (!elf_parse(image, size, limits, &elf, &value))
		check_image(&elf, size);
}

/* The address or the size of a segment, of which the low bits stay. */
static void lie(u8 *image, u64 size, size_t at)
{
	static const u64 lies[] = {
		0,
		0x555555554000,
		0x7ffffffff000,
		0x7ffffffff000 - 0x555555554000,
		0x7ffffffff000 - 0x555555554000 - GIB(1),
		0x800000000000,
		0xffff888000000000,
		-0x555555554000ULL,
		-PAGE_SIZE,
	};
	u64 truth;

	memcpy(&truth, image + at, sizeof(truth));
	for (size_t i = 0; i < ARRAY_LEN(lies); i++) {
		for (u64 off = lies[i] - PAGE_SIZE; off != lies[i] + 2 * PAGE_SIZE;
		     off += PAGE_SIZE) {
			const u64 word = off + truth % PAGE_SIZE;

			memcpy(image + at, &word, sizeof(word));
			parse_and_check(image, size);
		}
	}
	memcpy(image + at, &truth, sizeof(truth));
}

static void parse_with_lies(u8 *image, u64 size)
{
	struct elf_header *header = (struct elf_header *)image;

	for (u16 type = TYPE_EXEC; type <= TYPE_DYN; type++) {
		header->type = type;
		parse_and_check(image, size);
		for (u64 at = sizeof(*header); at < 1024 && at + 56 <= size; at += 56) {
			lie(image, size, at + offsetof(struct program_header, virt));
			lie(image, size, at + offsetof(struct program_header, memory_bytes));
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const u64 addrs[] = {0, 0x401000, 0x401004, ~0ULL};
	u8 *exact = malloc(size ? size : 1);
	const char *name;
	u64 value = 0;

	memcpy(exact, data, size);
	parse_and_check(exact, size);
	for (size_t i = 0; i < ARRAY_LEN(addrs); i++) {
		if (!elf_symbol(exact, size, addrs[i], &name, &value))
			continue;
		require(strlen(name) > 0 && name >= (char *)exact);
		require(name + strlen(name) < (char *)exact + size);
		require(value <= addrs[i]);
	}
	if (size >= sizeof(struct elf_header))
		parse_with_lies(exact, size);
	free(exact);
	return 0;
}
