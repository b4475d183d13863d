/*
 * Parser of programs in ELF format: see elf.h.
 *
 * Every structure is copied out of the image, because the image may be misaligned. An offset is
 * compared with the size of the image, and a length with what is left behind the offset, before the
 * two are added.
 */
#include "kernel/program/elf.h"

#include "kernel/lib/string.h"

struct elf_header {
	u8 magic[4], class, data, version, abi, pad[8];
	u16 type, machine;
	u32 file_version;
	u64 entry, phdrs, sections;
	u32 flags;
	u16 size, phdr_size, phdr_count, section_size, section_count, section_names;
};

struct program_header {
	u32 type, flags;
	u64 offset, virt, phys, file_bytes, memory_bytes, align;
};

struct section_header {
	u32 name, type;
	u64 flags, virt, offset, size;
	u32 link, info;
	u64 align, entry_size;
};

struct symbol {
	u32 name;
	u8 info, other;
	u16 section;
	u64 value, size;
};

enum {
	CLASS_64 = 2,
	DATA_LITTLE = 1,
	VERSION_CURRENT = 1,
	TYPE_EXEC = 2,
	TYPE_DYN = 3,
	MACHINE_X86_64 = 62,
	PT_LOAD = 1,
	PT_INTERP = 3,
	PT_GNU_STACK = 0x6474e551,
	FLAG_X = 1,
	FLAG_W = 2,
	FLAG_R = 4,
	INTERPRETER_MAX = 4096, /* bytes of its path, as in Linux */
	SHT_SYMTAB = 2,
	SHN_UNDEF = 0,
	SHN_RESERVED = 0xff00, /* from here on: absolute values, and others that are no code */
	STT_NOTYPE = 0,
	STT_FUNC = 2,
	STT_GNU_IFUNC = 10,
};

/* A symbol without a size names addresses up to this distance. */
#define SYMBOL_REACH KIB(64)

/*
 * A file that is parsed, and why it is refused. The functions below return false after they have
 * filled in the reason.
 */
struct parse {
	const void *image;
	u64 size;
	struct elf_limits limits;
	struct elf_image *elf;
	const char *why;
	u64 value;
};

static bool refuse(struct parse *p, const char *why, u64 value)
{
	p->why = why;
	p->value = value;
	return false;
}

/* Do `bytes` from `offset` on lie in an image of that size? */
static bool lies_in(u64 size, u64 offset, u64 bytes)
{
	return offset <= size && bytes <= size - offset;
}

/* Copy `bytes` from `offset` of the image. False if they are not all there. */
static bool read_at(const void *image, u64 size, u64 offset, void *to, size_t bytes)
{
	if (!lies_in(size, offset, bytes))
		return false;
	memcpy(to, (const u8 *)image + offset, bytes);
	return true;
}

bool elf_is(const void *image, u64 size)
{
	return size >= 4 && memcmp(image, "\177ELF", 4) == 0;
}

/* ---- the header ---- */

static bool check_kind(struct parse *p, const struct elf_header *header)
{
	if (header->class != CLASS_64)
		return refuse(p, "it is not a 64-bit program: class", header->class);
	if (header->data != DATA_LITTLE)
		return refuse(p, "its byte order is not little endian: data encoding",
			      header->data);
	if (header->version != VERSION_CURRENT)
		return refuse(p, "it has an unknown version of ELF", header->version);
	if (header->machine != MACHINE_X86_64)
		return refuse(p, "it is for another machine than x86-64: machine", header->machine);
	if (header->type != TYPE_EXEC && header->type != TYPE_DYN)
		return refuse(p, "it is not a program: type", header->type);
	return true;
}

static bool check_headers(struct parse *p, const struct elf_header *header)
{
	if (header->phdr_size != sizeof(struct program_header))
		return refuse(p, "its program headers are not of 56 bytes", header->phdr_size);
	if (header->phdr_count == 0)
		return refuse(p, "it has no program headers", 0);
	if (header->phdr_count > ELF_HEADERS_MAX)
		return refuse(p, "it has more than 128 program headers", header->phdr_count);
	if (!lies_in(p->size, header->phdrs, (u64)header->phdr_count * header->phdr_size))
		return refuse(p, "it is truncated: its program headers lie beyond its end",
			      header->phdrs);
	return true;
}

/* ---- segments ---- */

static u64 page_start(u64 addr)
{
	return ALIGN_DOWN(addr, PAGE_SIZE);
}

static u64 page_end(u64 addr)
{
	return ALIGN_UP(addr, PAGE_SIZE);
}

static u64 segment_end(const struct elf_segment *segment)
{
	return segment->virt + segment->memory_bytes;
}

static unsigned rights_of(u32 flags)
{
	return (flags & FLAG_R ? ELF_R : 0) | (flags & FLAG_W ? ELF_W : 0) |
	       (flags & FLAG_X ? ELF_X : 0);
}

static bool check_load(struct parse *p, const struct program_header *load)
{
	if (load->file_bytes > load->memory_bytes)
		return refuse(p, "a segment has more bytes in the file than in memory",
			      load->file_bytes);
	if (load->file_bytes > 0 && !lies_in(p->size, load->offset, load->file_bytes))
		return refuse(p, "it is truncated: a segment lies beyond its end, at offset",
			      load->offset);
	if (load->virt < p->limits.start)
		return refuse(p, "a segment lies below the addresses of programs", load->virt);
	if (load->virt > p->limits.end || load->memory_bytes > p->limits.end - load->virt)
		return refuse(p, "a segment ends above the addresses of programs", load->virt);
	if (load->file_bytes > 0 && (load->offset - load->virt) % PAGE_SIZE != 0)
		return refuse(p, "address and file offset of a segment differ within a page",
			      load->virt);
	if (load->align > 1 && (load->align & (load->align - 1)) != 0)
		return refuse(p, "a segment's alignment is not a power of two", load->align);
	if (load->align > ELF_ALIGN_MAX)
		return refuse(p, "a segment's alignment is over 1 GiB", load->align);
	return true;
}

/* May the last page of `before` also be the first page of `after`, with the file's bytes in it? */
static bool one_page_of_file(const struct elf_segment *before, const struct elf_segment *after)
{
	return after->file_bytes > 0 && before->file_bytes == before->memory_bytes &&
	       before->virt - before->file_offset == after->virt - after->file_offset;
}

/* Give the page that two neighbours share to the later one. */
static void give_page(struct elf_image *elf, struct elf_segment *before, struct elf_segment *after)
{
	const u64 border = page_start(after->virt), more = after->virt - border;

	after->virt -= more;
	after->file_offset -= more;
	after->memory_bytes += more;
	after->file_bytes += more;
	if (before->virt < border) {
		before->memory_bytes = before->file_bytes = border - before->virt;
	} else {
		*before = *after; /* it had no other page */
		elf->segments--;
	}
}

/*
 * Append a segment. It must begin behind the last one; a page that it shares with the last one is
 * settled as elf.h says.
 */
static bool append(struct parse *p, struct elf_segment segment)
{
	struct elf_image *elf = p->elf;
	struct elf_segment *last = elf->segments ? &elf->segment[elf->segments - 1] : NULL;

	if (last && segment.virt < last->virt)
		return refuse(p, "its segments are not in ascending order", segment.virt);
	if (last && segment.virt < segment_end(last))
		return refuse(p, "its segments overlap", segment.virt);
	if (elf->segments == ELF_SEGMENTS_MAX)
		return refuse(p, "it has more than 32 segments to load", elf->segments + 1);
	if (!last || page_start(segment.virt) >= page_end(segment_end(last))) {
		elf->segment[elf->segments++] = segment;
	} else if (segment.file_bytes == 0 && segment.rights == last->rights) {
		last->memory_bytes = segment_end(&segment) - last->virt;
	} else if (one_page_of_file(last, &segment)) {
		elf->segment[elf->segments++] = segment;
		give_page(elf, last, last + 1);
	} else {
		return refuse(p, "two segments cannot share a page as these do",
			      page_start(segment.virt));
	}
	return true;
}

static bool add_load(struct parse *p, const struct program_header *load)
{
	const struct elf_segment segment = {.virt = load->virt,
					    .memory_bytes = load->memory_bytes,
					    .file_offset = load->file_bytes ? load->offset : 0,
					    .file_bytes = load->file_bytes,
					    .rights = rights_of(load->flags)};

	if (load->memory_bytes == 0)
		return true;
	if (!check_load(p, load))
		return false;
	p->elf->align = MAX(p->elf->align, load->align);
	return append(p, segment);
}

/* As in Linux, the first one counts. */
static bool add_interpreter(struct parse *p, const struct program_header *header)
{
	const u64 offset = header->offset, bytes = header->file_bytes;
	const char *path;

	if (p->elf->interpreter)
		return true;
	if (!lies_in(p->size, offset, bytes))
		return refuse(p, "it is truncated: its interpreter's name lies beyond its end",
			      offset);
	path = (const char *)p->image + offset;
	if (bytes < 2 || bytes > INTERPRETER_MAX || path[0] == '\0' || path[bytes - 1] != '\0')
		return refuse(p, "its interpreter's name is no text: bytes", bytes);
	p->elf->interpreter = path;
	return true;
}

static bool add_headers(struct parse *p, u64 offset)
{
	struct program_header header;

	for (unsigned i = 0; i < p->elf->phdr_count; i++) {
		if (!read_at(p->image, p->size, offset + (u64)i * sizeof(header), &header,
			     sizeof(header)))
			return refuse(p, "it is truncated inside its program headers", i);
		if (header.type == PT_INTERP && !add_interpreter(p, &header))
			return false;
		if (header.type == PT_GNU_STACK)
			p->elf->stack_exec = header.flags & FLAG_X;
		if (header.type == PT_LOAD && !add_load(p, &header))
			return false;
	}
	return true;
}

/* The segment in whose bytes from the file a range of the file lies, or NULL. */
static const struct elf_segment *segment_with(const struct elf_image *elf, u64 offset, u64 bytes)
{
	for (size_t i = 0; i < elf->segments; i++) {
		const struct elf_segment *s = &elf->segment[i];

		if (offset >= s->file_offset && offset - s->file_offset <= s->file_bytes &&
		    bytes <= s->file_bytes - (offset - s->file_offset))
			return s;
	}
	return NULL;
}

static bool is_executable(const struct elf_image *elf, u64 addr)
{
	for (size_t i = 0; i < elf->segments; i++) {
		const struct elf_segment *s = &elf->segment[i];

		if (addr >= s->virt && addr - s->virt < s->memory_bytes)
			return s->rights & ELF_X;
	}
	return false;
}

static bool parse(struct parse *p)
{
	struct elf_image *elf = p->elf;
	const struct elf_segment *holder;
	struct elf_header header;

	*elf = (struct elf_image){.align = PAGE_SIZE};
	if (!elf_is(p->image, p->size))
		return refuse(p, "it is not an ELF file: size", p->size);
	if (!read_at(p->image, p->size, 0, &header, sizeof(header)))
		return refuse(p, "it is truncated inside its header: size", p->size);
	if (!check_kind(p, &header) || !check_headers(p, &header))
		return false;

	elf->pie = header.type == TYPE_DYN;
	elf->entry = header.entry;
	elf->phdr_size = header.phdr_size;
	elf->phdr_count = header.phdr_count;
	if (elf->pie) { /* its bias is known when all segments are */
		p->limits.start = 0;
		p->limits.end -= p->limits.pie_base + ELF_ALIGN_MAX;
	}
	if (!add_headers(p, header.phdrs))
		return false;
	if (elf->segments == 0)
		return refuse(p, "it has no segments to load", 0);
	if (!is_executable(elf, elf->entry))
		return refuse(p, "its entry lies in no executable segment", elf->entry);

	elf->low = page_start(elf->segment[0].virt);
	elf->high = page_end(segment_end(&elf->segment[elf->segments - 1]));
	elf->bias = elf->pie ? ALIGN_UP(p->limits.pie_base, elf->align) : 0;
	holder = segment_with(elf, header.phdrs, (u64)elf->phdr_count * elf->phdr_size);
	if (holder)
		elf->phdr_virt = holder->virt + (header.phdrs - holder->file_offset);
	return true;
}

const char *elf_parse(const void *image, u64 size, struct elf_limits limits, struct elf_image *elf,
		      u64 *value)
{
	struct parse p = {.image = image, .size = size, .limits = limits, .elf = elf};

	if (parse(&p))
		return NULL;
	*value = p.value;
	return p.why;
}

/* ---- symbols ---- */

/* A symbol table and its texts. Both lie inside the image. */
struct symbols {
	const u8 *table;
	u64 count;
	const char *texts;
	u64 texts_size;
};

static bool read_section(const void *image, u64 size, const struct elf_header *header, u32 index,
			 struct section_header *section)
{
	const u64 at = (u64)index * sizeof(*section);

	return index < header->section_count && header->sections <= size &&
	       read_at(image, size, header->sections + at, section, sizeof(*section));
}

static bool find_symbols(const void *image, u64 size, struct symbols *symbols)
{
	struct section_header section, texts;
	struct elf_header header;
	u32 i = 0;

	if (!elf_is(image, size) || !read_at(image, size, 0, &header, sizeof(header)) ||
	    header.section_size != sizeof(section))
		return false;
	do {
		if (!read_section(image, size, &header, i++, &section))
			return false;
	} while (section.type != SHT_SYMTAB);
	if (section.entry_size != sizeof(struct symbol) ||
	    !lies_in(size, section.offset, section.size) ||
	    !read_section(image, size, &header, section.link, &texts) ||
	    !lies_in(size, texts.offset, texts.size))
		return false;
	symbols->table = (const u8 *)image + section.offset;
	symbols->count = section.size / sizeof(struct symbol);
	symbols->texts = (const char *)image + texts.offset;
	symbols->texts_size = texts.size;
	return true;
}

/* The name, or NULL if it is empty or does not end inside the table of texts. */
static const char *symbol_name(const struct symbols *symbols, const struct symbol *symbol)
{
	u64 length;

	if (symbol->name >= symbols->texts_size)
		return NULL;
	length = strnlen(symbols->texts + symbol->name, symbols->texts_size - symbol->name);
	if (length == 0 || length == symbols->texts_size - symbol->name)
		return NULL;
	return symbols->texts + symbol->name;
}

/* May the symbol name code at `addr`? Assembly leaves the size and often the type out. */
static bool may_contain(const struct symbol *symbol, u64 addr)
{
	const unsigned type = symbol->info & 15;

	if (type != STT_FUNC && type != STT_NOTYPE && type != STT_GNU_IFUNC)
		return false;
	if (symbol->section == SHN_UNDEF || symbol->section >= SHN_RESERVED)
		return false;
	return symbol->value <= addr &&
	       addr - symbol->value < (symbol->size ? symbol->size : SYMBOL_REACH);
}

/*
 * The nearest symbol below the address wins. Of several at one place, one with a size wins, and
 * then the first.
 */
bool elf_symbol(const void *image, u64 size, u64 addr, const char **name, u64 *offset)
{
	struct symbol symbol, best = {0};
	const char *found = NULL;
	struct symbols symbols;

	if (!find_symbols(image, size, &symbols))
		return false;
	for (u64 i = 0; i < symbols.count; i++) {
		const char *text;

		memcpy(&symbol, symbols.table + i * sizeof(symbol), sizeof(symbol));
		if (!may_contain(&symbol, addr))
			continue;
		if (found && (symbol.value < best.value ||
			      (symbol.value == best.value && (best.size || !symbol.size))))
			continue;
		text = symbol_name(&symbols, &symbol);
		if (!text)
			continue;
		found = text;
		best = symbol;
	}
	if (!found)
		return false;
	*name = found;
	*offset = addr - best.value;
	return true;
}
