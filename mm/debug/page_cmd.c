/*
 * Monitor commands for single pages: decode one, allocate and free. Only pages that the monitor
 * allocated can be freed; they are chained through their private words.
 */
#include "kernel/console/command.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "mm/map/pgtable.h"
#include "mm/mapping/map.h"
#include "mm/memmap/block_state.h"
#include "mm/memmap/memmap.h"
#include "mm/memmap/zone.h"

enum { FLAGS_TEXT = 96 };

/* ---- the meaning of a word ---- */

static void print_entry(u64 addr, pte_t entry, enum pt_level level)
{
	static const char *const levels[] = {"4K", "2M", "1G"};

	print("  0x%llx: %s entry %016llx maps frame 0x%llx, %s%s%s%s\n", addr, levels[level],
	      entry, pte_pfn(entry), pte_writable(entry) ? "rw" : "ro",
	      pte_executable(entry) ? " x" : " nx", pte_dirty(entry) ? " dirty" : "",
	      pte_uncached(entry) ? " uncached" : "");
}

/*
 * The frame that a kernel address is of: that which a struct page describes, or what the page
 * tables say. Prints the entry that maps the address.
 */
static int frame_of_address(const struct words *words, const char *word, u64 addr, pfn_t *pfn)
{
	enum pt_level level;
	phys_t phys = PHYS_LIMIT;
	pte_t entry;

	if (virt_is_canonical(addr) &&
	    pgtable_translate(pgtable_root(), addr, &phys, &entry, &level))
		print_entry(addr, entry, level);
	*pfn = phys >> PAGE_SHIFT;
	if (addr >= VMEMMAP_BASE && addr < VMEMMAP_BASE + VMEMMAP_WINDOW_SIZE)
		*pfn = page_to_pfn((const struct page *)(virt_t)addr);
	else if (phys == PHYS_LIMIT)
		return cmd_error(words, "\"%s\" is neither a frame number nor a mapped address",
				 word);
	return 0;
}

/* Accepts a PFN or a kernel address. */
static int frame_of_words(const struct words *words, pfn_t *pfn)
{
	u64 value;
	const int err = cmd_u64(words, 1, "PFN or ADDRESS", 0, ~0ULL, &value);

	if (err)
		return err;
	*pfn = value;
	return value < PHYS_LIMIT >> PAGE_SHIFT
		       ? 0
		       : frame_of_address(words, words_plain(words, 1), value, pfn);
}

/* ---- page ---- */

static const char *names_of_bits(u32 bits, const char *names, char *buf, size_t size)
{
	char name[24];
	size_t at = 0;

	buf[0] = '\0';
	for (unsigned i = 0; choice_name(names, i, name, sizeof(name)); i++)
		if (bits >> i & 1 && at < size)
			at += (size_t)format(buf + at, size - at, " %s", name);
	return bits ? buf : " none";
}

static void print_block(const struct block *block, u32 index)
{
	static const char *const types[] = {"unmovable", "movable", "reclaimable", "CMA"};
	char flags[FLAGS_TEXT];
	struct block_word word;

	if (!block) {
		print("  block %u: no RAM in its GiB was ever opened\n", index);
		return;
	}
	word = block_look(block);
	print("  block %u: %s%s%s, order %u, type %s%s, zone %u, %u small frames free, flags%s\n",
	      index, block_state_name(word.state), word.flags & BLOCK_TRANSIT ? " becoming " : "",
	      word.flags & BLOCK_TRANSIT ? block_state_name(word.target) : "", word.order,
	      block_word_type(word) < ARRAY_LEN(types) ? types[block_word_type(word)] : "?",
	      block_word_is_isolated(word) ? " isolated" : "", word.zone, word.free_pages,
	      names_of_bits(word.flags, "free|transit|pool|pool-free|mapped|memmap", flags,
			    sizeof(flags)));
}

static void print_struct(pfn_t pfn, const struct page *page)
{
	const struct page *where = pfn_page(&mm_kernel, pfn);
	const u64 head =
		pfn - ((virt_t)where - ((virt_t)where & page->head_mask)) / sizeof(struct page);
	char flags[FLAGS_TEXT];

	print("  struct page at 0x%llx: refcount %u, order %u, zone %u, flags%s\n", (virt_t)where,
	      page->refcount, page->order, page->zone,
	      names_of_bits(page->flags & ~PAGE_MAPPINGS,
			    "buddy|pcp|compound|tail|reserved|boot|hugetlb|optimised|movable|bad",
			    flags, sizeof(flags)));
	if (page->flags & PAGE_MAPPINGS)
		print("    mapped %u times, at 0x%llx\n", state_mappings(page->state),
		      map_find(pfn));
	if (page->flags & PAGE_TAIL)
		print("    a tail of frame 0x%llx\n", head);
	print("    owner 0x%llx, private 0x%llx 0x%llx 0x%llx\n", page->owner, page->private[0],
	      page -> private[1], page -> private[2]);
}

static int cmd_page(const struct words *words)
{
	static const char *const kinds[] = {
		"no RAM", "reserved", "RAM, named by badram=", "RAM, given out at boot", "RAM"};
	u8 zone = ZONE_NONE;
	struct page copy;
	pfn_t pfn;
	const int err = frame_of_words(words, &pfn);

	if (err)
		return err;
	print("  frame 0x%llx: %s, physical 0x%llx\n", pfn,
	      kinds[memmap_frame_kind(&mm_kernel, pfn, &zone)], pfn << PAGE_SHIFT);
	print_block(block_of(&mm_kernel, pfn), (u32)(pfn >> BLOCK_ORDER));
	if (page_peek(pfn, &copy))
		print_struct(pfn, &copy);
	else
		print("  no struct page, because none was needed so far\n");
	return 0;
}

COMMAND(page, .usage = "PFN | ADDRESS",
	.help = "decode one frame: its block and its struct page, and the entry that maps ADDRESS",
	.max = 1, .run = cmd_page);

/* ---- alloc and free ---- */

static struct page *ours; /* the monitor's pages, newest first, chained through private[0] */

static int cmd_alloc(const struct words *words)
{
	u64 order, count = 1, done = 0, node = NODE_NONE;
	int use = 1, err = cmd_u64(words, 1, "ORDER", 0, MAX_ORDER, &order);

	if (!err)
		err = cmd_key_u64(words, "count", 1, 1 << 20, &count);
	if (!err)
		err = cmd_key_u64(words, "node", 0, mm_kernel.nodes - 1, &node);
	if (!err && words_plain_count(words) > 2)
		use = cmd_choice(words, 2, "use", "unmovable|movable|reclaimable");
	if (err || use < 0)
		return err ? err : use;
	for (; done < count; done++) {
		struct page *page =
			page_alloc((unsigned)order, (enum page_use)use, 0, (node_t)node);

		if (!page)
			break;
		page_chain_push(&ours, page);
		if (done < 4)
			print("  frame 0x%llx, order %llu\n", page_to_pfn(page), order);
	}
	if (done > 4)
		print("  and %llu more\n", done - 4);
	if (done < count)
		print("  allocated %llu of %llu: %s\n", done, count,
		      order > BLOCK_ORDER && order < GIGA_ORDER
			      ? "orders 10 to 17 are never given out"
			      : "no memory is left");
	return done < count ? -ENOMEM : 0;
}

static int cmd_free(const struct words *words)
{
	u64 n = 0;

	for (; ours; n++)
		page_free(page_chain_pop(&ours));
	print("  %llu pages freed\n", n);
	return 0;
}

COMMAND(page alloc, .usage = "ORDER [unmovable|movable|reclaimable] [count=N] [node=N]",
	.help = "allocate pages of 2^ORDER frames, to look at with `page`", .min = 1, .max = 2,
	.keys = "count|node", .run = cmd_alloc,
	.choices = {NULL, "unmovable|movable|reclaimable", "count=|node=", "count=|node="});
COMMAND(page free, .help = "free all pages that `page alloc` allocated", .run = cmd_free);
