/* What loaders and firmware hand over: Multiboot2, PVH, the EFI map and text, the list of ranges. */
#include "tests/prove/prove.h"

#include "boot/boot_info.c"
#define boot_info_add_range note_range
static void note_range(struct boot_info *info, phys_t start, u64 size, enum mem_kind kind);
#include "boot/efi/handover.c"
#include "boot/multiboot2.c"
#include "boot/pvh.c"
#undef boot_info_add_range

enum { BLOCK_MOST = 72, LOADER_MOST = 88, TEXT_MOST = 12 };

static size_t ranges_noted;

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
	prove(info->loader[strnlen(info->loader, BOOT_LOADER_NAME_MAX - 1)] == '\0');
	prove(info->rsdp_copy_len == 0 || info->rsdp_copy_len == RSDP_V1_SIZE ||
	      info->rsdp_copy_len == RSDP_V2_SIZE);
	prove(info->modules <= BOOT_MODULES_MAX && info->ranges <= BOOT_RANGES_MAX);
	if (m < info->modules)
		prove(strnlen(info->module[m].text, BOOT_MODULE_TEXT_MAX) < BOOT_MODULE_TEXT_MAX);
}

PROVE(multiboot2, "90", "115-tag-read-past-its-end", "blocks of up to 72 bytes")
{
	static struct boot_info info;
	ANY_BYTES(block, len, BLOCK_MOST);
	const int err = multiboot2_parse(block, len, &info);

	prove(err == 0 || (err == -EINVAL && info.faults == 1));
	prove(ranges_noted <= info.modules + 2); /* an entry of a map has 24 bytes or more */
	check(&info);
}

static struct {
	u8 bytes[LOADER_MOST];
	size_t len;
} loader;

/* Memory of which the loader's block is all that can be reached. */
static const void *map_loader(phys_t addr, size_t len, void *ctx)
{
	prove(len > 0 && addr + len >= addr);
	if (addr < PAGE_SIZE || addr - PAGE_SIZE > loader.len ||
	    len > loader.len - (addr - PAGE_SIZE))
		return NULL;
	return loader.bytes + (addr - PAGE_SIZE);
}

PROVE(pvh, "90", "pvh-reads-around-the-end", "memory of up to 88 bytes")
{
	static struct boot_info info;
	struct start_info start;
	int err;

	loader.len = ANY_BELOW(size_t, LOADER_MOST + 1);
	__CPROVER_havoc_object(&loader.bytes);
	memcpy(&start, loader.bytes, sizeof(start));
	assume(start.modules <= 1 || start.modules > PVH_MODULES_MAX);
	assume(start.memory_map_entries <= 1);
	err = pvh_parse(PAGE_SIZE, map_loader, NULL, &info);
	prove(err == 0 || err == -EINVAL);
	prove(ranges_noted <= 2);
	check(&info);
}

PROVE(ranges, "9", "ram-is-kept-for-what-forbids-it", "a list of up to 8 ranges, any of them")
{
	static struct boot_info info;
	const phys_t start = ANY(phys_t);
	const u64 size = ANY(u64);
	const enum mem_kind kind = ANY_BELOW(u32, MEM_LOADER + 1);
	const size_t before = ANY_BELOW(size_t, BOOT_RANGES_MAX + 1),
		     at = ANY_BELOW(size_t, BOOT_RANGES_MAX);
	struct mem_range kept;
	bool ram = false, there = false, was_there = false;

	__CPROVER_havoc_object(&info);
	info.ranges = before;
	info.faults = 0;
	info.ranges_lost = 0;
	info.protocol = BOOT_PVH;
	kept = info.range[at];
	for (size_t i = 0; i < before; i++)
		ram |= info.range[i].kind == MEM_RAM;
	boot_info_add_range(&info, start, size, kind);
	prove(info.ranges <= BOOT_RANGES_MAX && info.ranges >= before);
	for (size_t i = 0; i < info.ranges; i++) {
		const struct mem_range *r = &info.range[i];

		there |= r->start == start && r->kind == kind &&
			 r->end == (start + size < start ? ~0ULL : start + size);
		was_there |= r->start == kept.start && r->end == kept.end && r->kind == kept.kind;
	}
	prove(size == 0 || start == ~0ULL || there ||
	      (before == BOOT_RANGES_MAX && (kind == MEM_RAM || !ram)));
	prove(at >= before || was_there || kept.kind == MEM_RAM);
	prove(info.ranges_lost == (size != 0 && start != ~0ULL && before == BOOT_RANGES_MAX));
}

PROVE(efi_map, "4", "an-entry-behind-the-map", "maps of up to 100 bytes, entries of any size")
{
	ANY_BYTES(map, len, 100);
	const u64 start = ANY(u64), end = ANY(u64), entry = ANY(size_t);
	u64 sum;

	assume(start <= end && entry < ~0ULL - 200);
	sum = handover_ram_between(map, len, entry, start, end);
	prove(sum <= (end - start) * 2); /* entries may overlap; there are two at most */
}

PROVE(efi_text, "14", "1063-a-text-one-byte-too-long", "texts of up to 12 bytes, behind any")
{
	static struct handover out;
	const size_t filled = ANY_BELOW(size_t, sizeof(out.words)),
		     m = ANY_BELOW(size_t, BOOT_MODULES_MAX);
	ANY_BYTES(text, len, TEXT_MOST);

	out.modules = ANY_BELOW(size_t, BOOT_MODULES_MAX + 1);
	assume(filled < 4);
	for (size_t i = 0; i < filled; i++)
		out.words[i] = 'x';
	handover_read_text(text, len, &out);
	prove(strnlen(out.words, 20) < 20 && out.modules <= BOOT_MODULES_MAX);
	prove(strnlen(out.module[m], 14) < 14);
	handover_read_options(text, len, &out);
	prove(strnlen(out.words, 20) < 20);
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
