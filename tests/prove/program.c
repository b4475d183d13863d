/* Files of programs: segments of ELF, entries of cpio. */
#include "tests/prove/prove.h"

#include "kernel/lib/words.c"
#include "kernel/program/cpio.c"
#include "kernel/program/elf.c"

static const struct elf_limits limits = {0x10000, 0x7ffffffff000, 0x555555554000};

/* A segment and its neighbour have the properties that elf.h promises. */
static bool is_right(const struct elf_image *elf, size_t i, u64 size)
{
	const struct elf_segment *s = &elf->segment[i];

	return s->memory_bytes > 0 && s->file_bytes <= s->memory_bytes && s->virt >= limits.start &&
	       s->virt <= limits.end && s->memory_bytes <= limits.end - s->virt &&
	       (s->file_bytes == 0 || ((s->virt - s->file_offset) % PAGE_SIZE == 0 &&
				       lies_in(size, s->file_offset, s->file_bytes))) &&
	       (i == 0 || page_start(s->virt) >= page_end(segment_end(s - 1)));
}

PROVE(elf_segment, "4", "segments-may-overlap",
      "any segment behind 0 to 2 others, of which 2 are all there may be")
{
	struct elf_image elf = {.segments = ANY_BELOW(size_t, 3), .align = PAGE_SIZE};
	struct parse p = {.size = ANY(u64), .limits = limits, .elf = &elf};
	const struct program_header load = ANY(struct program_header);
	const size_t i = ANY_BELOW(size_t, 2);
	u64 reach = 0;

	for (size_t n = 0; n < elf.segments; n++) {
		elf.segment[n] = ANY(struct elf_segment);
		assume(is_right(&elf, n, p.size));
		reach = segment_end(&elf.segment[n]);
	}
	if (!add_load(&p, &load)) {
		prove(p.why);
		return;
	}
	prove(elf.segments <= 2 && elf.align >= PAGE_SIZE && elf.align <= ELF_ALIGN_MAX);
	prove(i >= elf.segments || is_right(&elf, i, p.size));
	if (load.memory_bytes)
		prove(segment_end(&elf.segment[elf.segments - 1]) ==
			      load.virt + load.memory_bytes &&
		      load.virt + load.memory_bytes > reach);
}

PROVE(elf_whole, "4 --unwindset prove_elf_whole.0:185,prove_elf_whole.2:185,memcmp.0:5",
      "the-entry-is-anywhere", "images of 184 bytes, 1 or 2 program headers behind the header")
{
	enum { SIZE = sizeof(struct elf_header) + 2 * sizeof(struct program_header) + 8 };
	bool in_code = false, is_text = false;
	struct elf_image elf;
	u8 image[SIZE];
	u64 value;

	for (unsigned i = 0; i < SIZE; i++)
		if (i >= offsetof(struct elf_header, phdrs) &&
		    i < offsetof(struct elf_header, sections))
			image[i] = i == offsetof(struct elf_header, phdrs)
					   ? sizeof(struct elf_header)
					   : 0;
	if (elf_parse(image, SIZE, limits, &elf, &value))
		return;
	prove(elf.segments > 0 && elf.segments <= 2);
	for (size_t i = 0; i < 2; i++) {
		const struct elf_segment *s = &elf.segment[i];

		if (i >= elf.segments)
			break;
		prove(s->memory_bytes > 0 && s->file_bytes <= s->memory_bytes);
		prove(s->file_bytes == 0 || (lies_in(SIZE, s->file_offset, s->file_bytes) &&
					     (s->virt - s->file_offset) % PAGE_SIZE == 0));
		prove(elf.low <= page_start(s->virt) && page_end(segment_end(s)) <= elf.high);
		in_code |= elf.entry >= s->virt && elf.entry < segment_end(s) && s->rights & ELF_X;
	}
	prove(in_code);
	prove(elf.bias + elf.low >= limits.start && elf.bias + elf.high <= limits.end);
	prove(elf.bias % elf.align == 0 && elf.bias + elf.high >= elf.high);
	if (!elf.interpreter)
		return;
	for (u64 i = 0, at = (u64)((const u8 *)elf.interpreter - image); i < SIZE; i++)
		is_text |= i > at && image[i] == '\0';
	prove(is_text && elf.interpreter[0]);
}

PROVE(elf_symbol, "9", "a-name-without-an-end", "texts of up to 6 bytes, any symbol")
{
	ANY_BYTES(texts, size, 6);
	const struct symbols symbols = {.texts = (const char *)texts, .texts_size = size};
	const struct symbol symbol = ANY(struct symbol);
	const char *name = symbol_name(&symbols, &symbol);
	const u64 addr = ANY(u64);

	prove(!name || (name >= symbols.texts && name + strnlen(name, 6) < symbols.texts + size));
	prove(!name || *name);
	prove(!may_contain(&symbol, addr) || addr >= symbol.value);
}

PROVE(cpio, "14 --unwindset cpio_next.0:3", "contents-behind-the-image",
      "images of up to 116 bytes, from any byte on")
{
	ANY_BYTES(image, size, 116);
	struct cpio_reader reader = cpio_reader(image, size);
	const u64 at = ANY_BELOW(u64, 117);
	struct cpio_entry entry;

	assume(at <= size);
	reader.at = at;
	if (!cpio_next(&reader, &entry)) {
		prove(reader.done != (reader.error != NULL) && reader.at <= size);
		return;
	}
	prove(!reader.error && !reader.done && reader.at >= at + HEADER_LENGTH &&
	      reader.at <= size);
	prove((const u8 *)entry.name >= image + at + HEADER_LENGTH && entry.name[0] &&
	      entry.name[0] != '/' && strnlen(entry.name, 18) < 18);
	prove((const u8 *)entry.data >= (const u8 *)entry.name &&
	      (const u8 *)entry.data + entry.size <= image + size);
}
