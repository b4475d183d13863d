/* The text and the memory map that BOOTX64.EFI reads: see handover.h. */
#include "boot/efi/handover.h"

#define MODULE "module "
#define ONCE   "once"

static bool same(const u8 *a, const char *b, size_t len)
{
	while (len && *a == (u8)*b)
		a++, b++, len--;
	return !len;
}

/* Append a line to a text of `size` bytes, behind a blank if there is text already. */
static bool append(char *to, size_t size, const u8 *line, size_t len)
{
	size_t at = 0;

	while (to[at])
		at++;
	if (at + (at != 0) + len >= size)
		return false;
	if (at)
		to[at++] = ' ';
	for (size_t i = 0; i < len; i++)
		to[at + i] = (char)line[i];
	return true;
}

static const char *read_line(const u8 *line, size_t len, struct handover *out)
{
	while (len && line[len - 1] <= ' ')
		len--;
	for (size_t i = 0; i < len; i++) {
		if (!line[i])
			return "it is no text in UTF-8";
	}
	if (len == sizeof(ONCE) - 1 && same(line, ONCE, len)) {
		out->once = true;
		return NULL;
	}
	if (len < sizeof(MODULE) || !same(line, MODULE, sizeof(MODULE) - 1))
		return !len || append(out->words, sizeof(out->words), line, len)
			       ? NULL
			       : "the command line is too long";
	if (out->modules == BOOT_MODULES_MAX)
		return "too many modules";
	line += sizeof(MODULE) - 1;
	len -= sizeof(MODULE) - 1;
	return append(out->module[out->modules++], BOOT_MODULE_TEXT_MAX, line, len)
		       ? NULL
		       : "a line is too long";
}

const char *handover_read_text(const u8 *text, size_t len, struct handover *out)
{
	size_t at = len >= 3 && same(text, "\xef\xbb\xbf", 3) ? 3 : 0;

	while (at < len) {
		const size_t start = at;
		const char *wrong;

		while (at < len && text[at] != '\n')
			at++;
		wrong = read_line(text + start, at++ - start, out);
		if (wrong)
			return wrong;
	}
	return NULL;
}

bool handover_read_options(const u8 *options, size_t len, struct handover *out)
{
	size_t count = 0, first, end;

	for (; count < len / 2 && (options[2 * count] || options[2 * count + 1]); count++) {
		if (options[2 * count + 1] || options[2 * count] < ' ' || options[2 * count] > '~')
			return false;
	}
	for (end = 0; end < count && options[2 * end] != ' '; end++)
		;
	first = end >= 4 && options[2 * end - 8] == '.' && (options[2 * end - 6] | 0x20) == 'e' &&
				(options[2 * end - 4] | 0x20) == 'f' &&
				(options[2 * end - 2] | 0x20) == 'i'
			? end
			: 0;
	while (first < count && options[2 * first] == ' ')
		first++;
	if (first == count || count - first >= sizeof(out->words))
		return false;
	for (size_t i = first; i <= count; i++)
		out->words[i - first] = i < count ? (char)options[2 * i] : '\0';
	return true;
}

const struct log_record *handover_find_log(const u8 *memory, size_t len)
{
	for (size_t at = 0; at < len; at += PAGE_SIZE) {
		const struct log_record *log = (const struct log_record *)(memory + at);

		if (log_record_valid(log, len - at))
			return log;
	}
	return NULL;
}

u32 handover_log_sum(const struct log_record *log)
{
	u32 sum = 0;

	for (u32 i = 0; i < MIN(log->end, log->size); i++)
		sum += (u8)log->text[i];
	return sum;
}

u64 handover_log_older(const struct log_record *log)
{
	return log->end >= log->size ? log->size - log->end % log->size : 0;
}

u64 handover_ram_between(const u8 *map, size_t len, size_t entry, u64 start, u64 end)
{
	u64 sum = 0;

	for (size_t at = 0; entry >= sizeof(struct efi_memory) && at + entry <= len; at += entry) {
		const struct efi_memory *memory = (const struct efi_memory *)(map + at);
		const u64 most = (~0ULL - memory->start) >> PAGE_SHIFT;
		const u64 stop = memory->start + (MIN(memory->pages, most) << PAGE_SHIFT);

		if (mem_kind_of_efi(memory->type) == MEM_RAM)
			sum += saturating_sub(MIN(stop, end), MAX(memory->start, start));
	}
	return sum;
}
