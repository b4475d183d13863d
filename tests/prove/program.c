/* Files of programs: ELF and cpio. */
#include "tests/prove/prove.h"

#include "kernel/lib/words.c"
#include "kernel/program/cpio.c"
#define append elf_append
#include "kernel/program/elf.c"

PROVE(cpio, "14 --max-field-sensitivity-array-size 140 --unwindset strnlen.0:9,strchr.0:9,has_parent_part.0:8,skip_root.0:9", "contents-behind-the-image",
      "any entry of an image of up to 124 bytes, from any byte on")
{
	ANY_BYTES(image, size, 124);
	struct cpio_reader reader = cpio_reader(image, size);
	struct cpio_entry entry;
	const char *wrong;
	u64 before;

	reader.at = before = ANY_BELOW(u64, 125);
	assume(reader.at <= size);
	wrong = parse_entry(&reader, &entry);
	prove(reader.at <= size && (wrong ? reader.at == before : reader.at > before));
	if (!wrong) {
		const u64 at = (u64)((const u8 *)entry.data - image);

		prove(at >= before + HEADER_LENGTH && at <= size && entry.size <= size - at);
		prove(strnlen(entry.name, 8) < 8 && entry.name[0] != '/');
		prove(!(entry.name[0] == '.' && entry.name[1] == '.' && entry.name[2] == '/'));
	}
}

PROVE(cpio_header, "120", "a-digit-too-few", "any numbers, a name of up to 5 characters")
{
	char room[CPIO_HEADER_MAX], name[6];
	const u32 mode = ANY(u32), mtime = ANY(u32), size = ANY_BELOW(u32, 5);
	struct cpio_entry entry;
	struct cpio_reader reader;
	size_t used;

	name[5] = '\0';
	assume(name[0] > '/' && name[1] != '/' && name[1] != '.' && name[2] != '/' &&
	       name[3] != '/');
	used = cpio_header(room, name, mode, mtime, size);
	prove(used % CPIO_ALIGNMENT == 0 && used <= 120);
	reader = cpio_reader(room, used + 8);
	prove(parse_entry(&reader, &entry) == NULL);
	prove(entry.mode == mode && entry.mtime == mtime && entry.size == size);
	prove((const char *)entry.data == room + used && entry.name == room + HEADER_LENGTH);
}

static const struct elf_limits limits = {0x10000, 0x7ffffffff000, 0x555555554000};

/* What elf.h promises of a segment and its neighbour. */
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

PROVE(elf, "5 --max-field-sensitivity-array-size 200", "an-entry-where-nothing-runs",
      "files of up to 184 bytes with up to 2 program headers")
{
	ANY_BYTES(image, size, 184);
	struct elf_image elf;
	u64 value;
	const char *why = elf_parse(image, size, limits, &elf, &value);

	if (why)
		return;
	prove(elf.segments >= 1 && elf.segments <= 2 && is_executable(&elf, elf.entry));
	prove(elf.low + elf.bias >= limits.start && elf.high + elf.bias <= limits.end);
	prove(elf.low < elf.high && IS_ALIGNED(elf.low | elf.high | elf.bias, PAGE_SIZE));
	prove(!elf.interpreter ||
	      ((const u8 *)elf.interpreter >= image && (const u8 *)elf.interpreter < image + size));
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

PROVE(elf_symbols, "4 --max-field-sensitivity-array-size 200", "a-table-behind-the-end", "files of up to 196 bytes, up to 2 sections")
{
	ANY_BYTES(image, size, 196);
	struct symbols symbols;

	assume(size < 64 || (image[60] <= 2 && image[61] == 0));
	if (!find_symbols(image, size, &symbols))
		return;
	prove(symbols.table >= image && symbols.count <= (u64)(image + size - symbols.table) / 24);
	prove((const u8 *)symbols.texts >= image);
	prove(symbols.texts_size <= (u64)(image + size - (const u8 *)symbols.texts));
}
