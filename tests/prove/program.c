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
