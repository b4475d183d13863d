/* Parsers of what loaders and firmware hand over: Multiboot2, PVH, EFI options, ranges, a log. */
#include "tests/prove/prove.h"

#include "boot/boot_info.c"
#define boot_info_add_range note_range
static void note_range(struct boot_info *info, phys_t start, u64 size, enum mem_kind kind);
#include "boot/efi/handover.c"
static void *copy_text_to(char *to, const void *from, size_t n);
#define memcpy(to, from, n) _Generic((to), char * : copy_text_to, default : memcpy)(to, from, n)
#include "boot/multiboot2.c"
#undef memcpy
#include "boot/pvh.c"
#undef boot_info_add_range

static size_t ranges_noted;

/* Stands in for memcpy() of a text, which is cut to its room. */
static void *copy_text_to(char *to, const void *from, size_t n)
{
	prove(n < 6);
	for (size_t i = 0; i < 5; i++)
		if (i < n)
			to[i] = ((const char *)from)[i];
	return to;
}

/* Stands in for boot_info_add_range(), which has a harness of its own. */
static void note_range(struct boot_info *info, phys_t start, u64 size, enum mem_kind kind)
{
	prove(kind <= MEM_LOADER);
	ranges_noted++;
	if (size && ANY_BOOL && info->ranges < BOOT_RANGES_MAX)
		info->range[info->ranges++] = (struct mem_range){start, start + size, kind};
}

static void check(const struct boot_info *info)
{
	const size_t m = ANY_BELOW(size_t, BOOT_MODULES_MAX);

	prove(info->cmdline_len < BOOT_CMDLINE_MAX && info->cmdline[info->cmdline_len] == '\0');
	prove(strnlen(info->loader, BOOT_LOADER_NAME_MAX) < BOOT_LOADER_NAME_MAX);
	prove(info->rsdp_copy_len == 0 || info->rsdp_copy_len == RSDP_V1_SIZE ||
	      info->rsdp_copy_len == RSDP_V2_SIZE);
	prove(info->modules <= BOOT_MODULES_MAX && info->ranges <= BOOT_RANGES_MAX);
	if (m < info->modules)
		prove(strnlen(info->module[m].text, BOOT_MODULE_TEXT_MAX) < BOOT_MODULE_TEXT_MAX);
}

PROVE(multiboot2, "6 --unwindset strnlen.0:18", "115-tag-read-past-its-end",
      "blocks of up to 32 bytes")
{
	static struct boot_info info;
	ANY_BYTES(block, len, 32);
	const int err = multiboot2_parse(block, len, &info);

	prove(err == 0 || (err == -EINVAL && info.faults == 1));
	check(&info);
}

static struct span any_span(const u8 *data, size_t len)
{
	return (struct span){ANY_BOOL ? data : NULL, len};
}

PROVE(multiboot2_tags, "6 --unwindset strnlen.0:12", "an-old-rsdp-of-36-bytes",
      "tags of any contents, texts of up to 10 bytes, the rest as long as they must be")
{
	static struct boot_info info;
	struct span tags[TAG_COUNT] = {{NULL, 0}};
	ANY_BYTES(text, len, 10);
	u8 old[RSDP_V1_SIZE], new[RSDP_V2_SIZE], screen[24];

	tags[TAG_CMDLINE] = any_span(text, len);
	tags[TAG_LOADER] = any_span(text, len);
	tags[TAG_RSDP_OLD] = any_span(old, sizeof(old));
	tags[TAG_RSDP_NEW] = any_span(new, least[TAG_RSDP_NEW]);
	tags[TAG_FRAMEBUFFER] = any_span(screen, least[TAG_FRAMEBUFFER]);
	tags[TAG_EFI_BOOT_SERVICES] = any_span(text, len);
	parse_known(&info, tags);
	check(&info);
	prove(info.framebuffer.type == BOOT_FB_NONE || info.framebuffer.type == screen[21]);
	prove((info.rsdp_copy_len == 0) == (!tags[TAG_RSDP_OLD].data && !tags[TAG_RSDP_NEW].data));
}

PROVE(multiboot2_maps, "4", "an-entry-without-its-last-byte",
      "maps of up to 60 bytes, entries of any size")
{
	static struct boot_info info;
	struct span tags[TAG_COUNT] = {{NULL, 0}};
	ANY_BYTES(map, len, 60);

	assume(len >= least[TAG_MEMORY_MAP]);
	tags[ANY_BOOL ? TAG_MEMORY_MAP : TAG_EFI_MEMORY_MAP] = (struct span){map, len};
	parse_memory(&info, tags);
	check(&info);
	prove(ranges_noted <= (len - 8) / E820_ENTRY_MIN);
	prove(info.faults > 0 || has_ram(&info));
}

/* Memory that may be out of reach, and has any contents each time it is looked at. */
static const void *map_any(phys_t addr, size_t len, void *ctx)
{
	static struct {
		u8 byte[sizeof(struct start_info)];
	} room;

	prove(len > 0 && len <= sizeof(room) && addr + len >= addr);
	room = ANY(typeof(room));
	return ANY_BOOL ? room.byte + sizeof(room) - len : NULL;
}

PROVE(pvh, "7 --unwindset read_modules.0:3,read_memory_map.0:3", "a-module-text-without-its-end",
      "any contents, texts of up to 5 characters, up to 2 ranges and 2 modules")
{
	static struct boot_info info;
	const int err = pvh_parse(ANY(phys_t), map_any, NULL, &info);

	prove(err == 0 || err == -EINVAL);
	prove(err || ranges_noted <= 4);
	check(&info);
}

PROVE(ranges, "6", "ram-is-kept-for-what-forbids-it", "a list of up to 4 ranges, any of them")
{
	static struct boot_info info;
	const phys_t start = ANY(phys_t), end = start + ANY(u64);
	const enum mem_kind kind = ANY_BELOW(u32, MEM_LOADER + 1);
	const size_t before = ANY_BELOW(size_t, BOOT_RANGES_MAX + 1),
		     at = ANY_BELOW(size_t, BOOT_RANGES_MAX);
	const phys_t stop = end < start ? ~0ULL : end;
	struct mem_range kept;
	bool ram = false, there = false, was_there = false;

	info.ranges = before;
	for (size_t i = 0; i < before; i++) {
		info.range[i] = ANY(struct mem_range);
		ram |= info.range[i].kind == MEM_RAM;
	}
	kept = info.range[at];
	boot_info_add_range(&info, start, end - start, kind);
	prove(info.ranges <= BOOT_RANGES_MAX && info.ranges >= before);
	for (size_t i = 0; i < info.ranges; i++) {
		const struct mem_range *r = &info.range[i];

		there |= r->start == start && r->kind == kind && r->end == stop;
		was_there |= r->start == kept.start && r->end == kept.end && r->kind == kept.kind;
	}
	prove(start == stop || there || (before == BOOT_RANGES_MAX && (kind == MEM_RAM || !ram)));
	prove(at >= before || was_there ||
	      (kept.kind == MEM_RAM && kind != MEM_RAM && before == BOOT_RANGES_MAX));
	prove(info.ranges_lost == (start != stop && before == BOOT_RANGES_MAX));
}

PROVE(efi_options, "16", "options-without-their-end", "options of up to 14 bytes")
{
	static struct handover out;
	ANY_BYTES(options, len, 14);
	const bool taken = handover_read_options(options, len, &out);

	prove(strnlen(out.words, sizeof(out.words)) < sizeof(out.words));
	prove(taken == (out.words[0] != '\0') && out.words[0] != ' ');
}

PROVE(efi_map, "4", "an-entry-behind-the-map", "maps of up to 100 bytes, entries of any size")
{
	ANY_BYTES(map, len, 100);
	const size_t entry = ANY(size_t);
	const u64 start = ANY(u64), end = ANY(u64),
		  ram = handover_ram_between(map, len, entry, start, end);

	prove(ram == 0 || (end > start && entry >= sizeof(struct efi_memory) && entry <= len));
	prove(len >= 2 * sizeof(struct efi_memory) || ram <= saturating_sub(end, start));
}

PROVE(efi_log, "26", "a-log-larger-than-its-memory", "memory of up to 56 bytes")
{
	ANY_BYTES(memory, len, 56);
	const struct log_record *log = handover_find_log(memory, len);

	if (log) {
		prove((const u8 *)log == memory && log->size <= len - sizeof(*log));
		handover_log_sum(log);
		prove(handover_log_older(log) <= log->size);
	}
}
