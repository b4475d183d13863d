/* Reading the description of a machine; see replay.h. Pure. */
#include <string.h>

#include "arch/x86_64/machine_text.h"
#include "tests/host/replay.h"

/* The part of a line that is left to read. */
struct cursor {
	const char *at, *end;
};

/* Take the next line of `text`. False at the end. */
static bool next_line(struct cursor *text, struct cursor *line)
{
	const char *newline;

	if (text->at == text->end)
		return false;
	newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
	*line = (struct cursor){text->at, newline ? newline : text->end};
	text->at = newline ? newline + 1 : text->end;
	return true;
}

static struct cursor begin(const struct replay_text *text)
{
	return (struct cursor){text->text, text->text + text->len};
}

static bool skip(struct cursor *c, const char *word)
{
	const size_t len = strlen(word);

	if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
		return false;
	c->at += len;
	return true;
}

/* Go to the first `word` in the line and past it. */
static bool find(struct cursor *c, const char *word)
{
	for (struct cursor at = *c; at.at < at.end; at.at++) {
		struct cursor past = at;

		if (skip(&past, word)) {
			*c = past;
			return true;
		}
	}
	return false;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* A hexadecimal number of at most 16 digits, without "0x". */
static bool take_hex(struct cursor *c, u64 *value)
{
	unsigned digits = 0;

	for (*value = 0; c->at < c->end && digit(*c->at) >= 0; c->at++, digits++)
		*value = *value << 4 | (u64)digit(*c->at);
	return digits > 0 && digits <= 16;
}

/* Cut "  ~SUM" off the line's end, before a carriage return. False if there is none. */
static bool cut_sum(struct cursor *line, u64 *sum)
{
	struct cursor tail;

	line->end -= line->end > line->at && line->end[-1] == '\r';
	if (line->end - line->at < 7)
		return false;
	tail = (struct cursor){line->end - 7, line->end};
	if (!skip(&tail, "  ~") || !take_hex(&tail, sum) || tail.at != tail.end)
		return false;
	line->end -= 7;
	return true;
}

bool replay_is_whole(const struct replay_text *text, size_t *bad)
{
	struct cursor left = begin(text), line;
	unsigned number = 0;
	u64 sum;

	for (*bad = 1; next_line(&left, &line); ++*bad) {
		if (!cut_sum(&line, &sum))
			continue;
		if (machine_text_sum(number++, line.at, (size_t)(line.end - line.at)) != sum)
			return false;
		if (skip(&line, MACHINE_TEXT_END))
			number = 0;
	}
	return number == 0;
}

static bool take_register(struct cursor *c, const char *name, u32 *value)
{
	u64 number;

	if (!skip(c, name) || !take_hex(c, &number) || number > ~0U)
		return false;
	*value = (u32)number;
	return true;
}

/* "0xFIRST-0xLAST]"; the last byte belongs to the range, unless it is the last of all. */
static bool take_range(struct cursor *c, phys_t *start, u64 *size)
{
	u64 last;

	if (!skip(c, "0x") || !take_hex(c, start) || !skip(c, "-0x") || !take_hex(c, &last) ||
	    !skip(c, "]") || last < *start)
		return false;
	*size = last - *start + (last != ~0ULL);
	return *size != 0;
}

/* Names as Linux prints them: e820_print_type(), 6.x. */
static enum mem_kind kind_of_e820_name(struct cursor name)
{
	while (skip(&name, " "))
		;
	return skip(&name, "usable") || skip(&name, "System RAM") ? MEM_RAM : MEM_RESERVED;
}

enum { EFI_WB = 1 << 3, EFI_SP = 1 << 18 };

/*
 * Names as Linux prints them: efi_md_typeattr_format(), 6.x. Four are RAM after the boot services.
 */
static enum mem_kind kind_of_efi_name(struct cursor name)
{
	if (skip(&name, "Conventional") || skip(&name, "Boot Code") || skip(&name, "Boot Data"))
		return MEM_RAM;
	return skip(&name, "Loader") ? MEM_LOADER : MEM_RESERVED;
}

static bool e820_line(struct cursor line, struct boot_info *info)
{
	phys_t start;
	u64 size;

	if (!find(&line, "BIOS-e820: [mem ") || !take_range(&line, &start, &size))
		return false;
	boot_info_add_range(info, start, size, kind_of_e820_name(line));
	return true;
}

static bool efi_line(struct cursor line, struct boot_info *info)
{
	struct cursor name, sp, wb;
	u64 size, attributes;
	enum mem_kind kind;
	phys_t start;

	if (!find(&line, "efi: mem") || !find(&line, ": ["))
		return false;
	name = sp = wb = line;
	attributes = (find(&sp, "|SP|") ? EFI_SP : 0) | (find(&wb, "|WB|") ? EFI_WB : 0);
	if (!find(&line, "range=[") || !take_range(&line, &start, &size))
		return false;
	kind = kind_of_efi_name(name);
	boot_info_add_range(info, start, size,
			    kind == MEM_RAM && efi_memory_unfit(attributes) ? MEM_RESERVED : kind);
	return true;
}

static size_t add_lines(const struct replay_text *text, struct boot_info *info,
			bool (*add)(struct cursor line, struct boot_info *info))
{
	struct cursor left = begin(text), line;
	size_t lines = 0;

	while (next_line(&left, &line))
		lines += add(line, info);
	return lines;
}

size_t replay_ranges(const struct replay_text *text, struct boot_info *info)
{
	const size_t lines = add_lines(text, info, e820_line);

	return lines ? lines : add_lines(text, info, efi_line);
}

/* "0xLEAF 0xSUBLEAF: eax=0x... ebx=0x... ecx=0x... edx=0x..." */
static bool cpuid_line(struct cursor line, u64 *leaf, u64 *subleaf, struct cpuid *out)
{
	while (skip(&line, " "))
		;
	return skip(&line, "0x") && take_hex(&line, leaf) && skip(&line, " 0x") &&
	       take_hex(&line, subleaf) && take_register(&line, ": eax=0x", &out->eax) &&
	       take_register(&line, " ebx=0x", &out->ebx) &&
	       take_register(&line, " ecx=0x", &out->ecx) &&
	       take_register(&line, " edx=0x", &out->edx);
}

/* "CPUID LEAF: EAX-EBX-ECX-EDX", behind which "[SL xx]" may name the subleaf. */
static bool instlat_line(struct cursor line, u64 *leaf, u64 *subleaf, struct cpuid *out)
{
	*subleaf = 0;
	if (!skip(&line, "CPUID ") || !take_hex(&line, leaf) ||
	    !take_register(&line, ": ", &out->eax) || !take_register(&line, "-", &out->ebx) ||
	    !take_register(&line, "-", &out->ecx) || !take_register(&line, "-", &out->edx))
		return false;
	if (find(&line, "[SL "))
		take_hex(&line, subleaf);
	return true;
}

struct cpuid replay_cpuid(u32 leaf, u32 subleaf, const void *text)
{
	struct cursor left = begin(text), line;
	struct cpuid out;
	u64 l, s;

	while (next_line(&left, &line))
		if ((cpuid_line(line, &l, &s, &out) || instlat_line(line, &l, &s, &out)) &&
		    l == leaf && s == subleaf)
			return out;
	return (struct cpuid){0};
}

bool replay_boot_apic_id(const struct replay_text *text, u32 *id)
{
	const struct cpuid wide = replay_cpuid(0xb, 0, text), basic = replay_cpuid(1, 0, text);

	*id = wide.ebx ? wide.edx : basic.ebx >> 24;
	return wide.ebx || basic.eax;
}
