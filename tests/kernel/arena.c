/*
 * Borrowing memory and building private machines: see arena.h.
 *
 * The run is taken from the machine's buddy as one piece of a power of two. Its blocks keep their
 * state, so giving the run back restores the machine exactly, merges included.
 */
#include "mm/debug/leaks.h"
#include "mm/init.h"
#include "mm/zone/memmap_open.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/pattern.h"

static struct arena arenas[VMEMMAP_WINDOWS - 1]; /* window 0 belongs to the machine */

/* ---- a run of the machine's blocks ---- */

static u32 take_run_of_class(struct zone *zone, unsigned order, enum free_class class)
{
	u32 index = BLOCK_NONE;

	spin_lock(&zone->lock);
	for (unsigned type = 0; type < MIGRATE_TYPES && index == BLOCK_NONE; type++)
		index = buddy_take_blocks(zone, order, class, type);
	if (index != BLOCK_NONE) {
		block_begin(zone, index, order, block_look_at(zone->mm, index).state);
		for (u32 i = index; i < index + order_blocks(order); i++) {
			if (i > index) /* block_begin() has dropped the note of the first */
				block_change(block_at(zone->mm, i), BLOCK_WORD(.target = 0xff),
					     BLOCK_WORD(.target = 0));
		}
	}
	spin_unlock(&zone->lock);
	return index;
}

static bool take_run(struct arena *a)
{
	static const enum free_class classes[] = {FREE_BARE, FREE_MAPPED, FREE_FULL};

	for (unsigned z = mm_kernel.zones; z-- > 0;) {
		for (unsigned c = 0; c < ARRAY_LEN(classes); c++) {
			a->run = take_run_of_class(&mm_kernel.zone[z], a->run_order, classes[c]);
			a->lender = &mm_kernel.zone[z];
			if (a->run != BLOCK_NONE)
				return true;
		}
	}
	return false;
}

/*
 * Open sections until the run can be had. As a last resort, once, close all sections, so that free
 * blocks of all kinds become alike and merge.
 */
static bool take_run_somehow(struct arena *a)
{
	for (unsigned attempt = 0; attempt < 2; attempt++) {
		if (take_run(a))
			return true;
		for (unsigned z = mm_kernel.zones; z-- > 0;) {
			while (section_open_next(&mm_kernel.zone[z], memmap_style()) == 0)
				if (take_run(a))
					return true;
		}
		if (attempt == 0)
			sections_close_all(&mm_kernel);
	}
	return false;
}

/* ---- pages of the machine for descriptors and upper tables ---- */

static void *zalloc(u64 bytes, node_t node, void *ctx)
{
	struct arena *a = ctx;
	unsigned order = 0;
	struct page *page;

	while (PAGE_SIZE << order < bytes)
		order++;
	page = page_alloc(order, USE_UNMOVABLE, PAGE_ZERO, node);
	if (!page)
		return NULL;
	page->private[1] = ALIGN_UP(bytes, 8);
	page_chain_push(&a->pages, page);
	return page_address(page);
}

static void free_descriptors(struct arena *a)
{
	while (a->pages) {
		struct page *page = page_chain_pop(&a->pages);
		const u64 asked = page->private[1];

		/* nothing was written behind what was asked for */
		EXPECT_ZERO((char *)page_address(page) + asked,
			    (PAGE_SIZE << page_order(page)) - asked);
		page_free(page);
	}
}

static pfn_t table_alloc(void *ctx)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);

	if (!page)
		return PFN_NONE;
	leaks_keep(1);
	return page_pfn(page);
}

/*
 * The start and the end of the window's struct pages for a range. The start is rounded down to a
 * whole section.
 */
static virt_t window_start(const struct arena *a, const struct memblock_range *range)
{
	return ALIGN_DOWN(a->window + (range->start >> PAGE_SHIFT << PAGE_STRUCT_SHIFT),
			  pt_level_size(PT_PMD));
}

static virt_t window_end(const struct arena *a, const struct memblock_range *range)
{
	return a->window + (range->end >> PAGE_SHIFT << PAGE_STRUCT_SHIFT);
}

/*
 * Make tables down to the sections' own entries, from the machine's memory. Tables made from the
 * arena's metadata memory would disappear with it.
 */
static bool make_upper_tables(struct arena *a)
{
	for (size_t i = 0; i < a->memory.count; i++) {
		const struct memblock_range *range = &a->memory.range[i];

		for (virt_t at = window_start(a, range); at < window_end(a, range);
		     at += pt_level_size(PT_PMD))
			if (!pgtable_entry(pgtable_root(), at, PT_PMD, table_alloc, NULL))
				return false;
	}
	return true;
}

static void empty_window(struct arena *a)
{
	for (size_t i = 0; i < a->memory.count; i++) {
		const struct memblock_range *range = &a->memory.range[i];

		for (virt_t at = window_start(a, range); at < window_end(a, range);
		     at += pt_level_size(PT_PMD)) {
			pte_t *entry = pgtable_entry(pgtable_root(), at, PT_PMD, NULL, NULL);

			if (entry && pte_present(pte_load(entry)))
				pte_store(entry, at, PT_PMD, 0);
		}
	}
	shootdown_full(SHOOTDOWN_ALL_CPUS); /* page tables go away, so idle CPUs must flush, too */
}

/* ---- the boot ranges of an arena ---- */

static void add(struct memblock_list *list, phys_t start, u64 bytes, node_t node,
		enum memblock_owner owner)
{
	const struct memblock_range range = {
		.start = start, .end = start + bytes, .node = node, .owner = owner};

	if (bytes && !memblock_list_add(list, range))
		panic("an arena with too many ranges");
}

/* Add `nodes` even shares, with borders shifted by `skew`, as nodes first, first + 1, ... */
static void add_shares(struct arena *a, phys_t start, u64 bytes, node_t nodes, u64 skew,
		       node_t first)
{
	for (node_t n = 0; n < nodes; n++) {
		const phys_t from = start + bytes / nodes * n + (n ? skew : 0);
		const phys_t to =
			n + 1 == nodes ? start + bytes : start + bytes / nodes * (n + 1) + skew;

		add(&a->memory, from, to - from, first + n, 0);
	}
}

static void add_reserved(struct arena *a, const struct arena_range *ranges,
			 enum memblock_owner owner)
{
	for (unsigned i = 0; i < ARENA_RANGES_MAX; i++)
		add(&a->reserved, a->start + ranges[i].start, ranges[i].bytes, 0, owner);
}

static void make_ranges(struct arena *a)
{
	const struct arena_options *o = &a->options;

	/* no code may read a range behind the end of its list */
	memset(a->ranges, 0xa5, sizeof(a->ranges));
	a->memory = (struct memblock_list){.range = a->ranges[0], .max = ARRAY_LEN(a->ranges[0])};
	a->reserved = (struct memblock_list){.range = a->ranges[1], .max = ARRAY_LEN(a->ranges[1])};
	add_shares(a, a->start, o->bytes, o->nodes, o->skew, 0);
	if (o->again) {
		memblock_list_subtract(&a->memory, a->start + o->bytes - o->again,
				       a->start + o->bytes);
		add(&a->memory, a->start + o->bytes - o->again, o->again, 0, 0);
	}
	memblock_list_subtract(&a->memory, a->start + o->bytes - o->short_by, a->start + o->bytes);
	for (unsigned i = 0; i < ARENA_RANGES_MAX; i++)
		if (o->hole[i].bytes)
			memblock_list_subtract(&a->memory, a->start + o->hole[i].start,
					       a->start + o->hole[i].start + o->hole[i].bytes);
	if (o->phantom)
		add_shares(a, a->phantom, o->phantom, o->phantom_nodes, o->phantom_skew, o->nodes);
	for (node_t n = 0; n < o->nodes; n++) {
		a->meta[n] = ALIGN_UP(a->start + o->bytes / o->nodes * n +
					      (n ? o->skew + o->meta_at : 0),
				      1ULL << BLOCK_SHIFT);
		/* no code may count on cleared metadata memory, and at boot it is not cleared */
		memset(phys_to_virt(a->meta[n]), 0xa5, 1ULL << BLOCK_SHIFT);
		add(&a->reserved, a->meta[n], 1ULL << BLOCK_SHIFT, 0, OWNER_BOOT);
	}
	add_reserved(a, o->boot, OWNER_BOOT);
	add_reserved(a, o->firmware, OWNER_FIRMWARE);
	add_reserved(a, o->bad, OWNER_BAD);
}

/* ---- borrowing and returning ---- */

static struct arena *find_slot(void)
{
	for (unsigned i = 0; i < ARRAY_LEN(arenas); i++) {
		struct arena *a = &arenas[i];

		if (!a->taken) {
			*a = (struct arena){.taken = true,
					    .window = VMEMMAP_BASE + (i + 1) * VMEMMAP_WINDOW_SIZE};
			return a;
		}
	}
	return NULL;
}

static phys_t phantom_start(void)
{
	const phys_t end = (mm_kernel.first_gib + mm_kernel.gibs) * GIB(1);

	return MAX(end, GIB(4)) + GIB(1);
}

static bool build(struct arena *a)
{
	const struct mm_plan plan = {.memory = &a->memory,
				     .reserved = &a->reserved,
				     .nodes = a->options.nodes + a->options.phantom_nodes,
				     .root = pgtable_root(),
				     .vmemmap = a->window,
				     .first_meta = a->meta,
				     .distance = a->options.distance,
				     .zalloc = zalloc,
				     .ctx = a};

	if (!make_upper_tables(a) || mm_build(&a->mm, &plan) < 0)
		return false;
	pool_init(&a->pool, &a->mm, BLOCK_ORDER, a->pool_nodes[0]);
	pool_init(&a->giga, &a->mm, GIGA_ORDER, a->pool_nodes[1]);
	return true;
}

struct arena *arena_borrow_with(const struct arena_options *options)
{
	struct arena *a = find_slot();

	if (!a) {
		test_fail(__FILE__, __LINE__, "all %zu windows have an arena", ARRAY_LEN(arenas));
		return NULL;
	}
	if (options->phantom)
		pool_makes_on_demand();
	a->options = *options;
	a->options.nodes = MAX(options->nodes, 1);
	a->options.phantom_nodes = options->phantom ? MAX(options->phantom_nodes, 1) : 0;
	while (order_pages(a->run_order) * PAGE_SIZE < options->bytes)
		a->run_order++;
	if (!take_run_somehow(a)) {
		a->taken = false;
		test_skip("needs %llu MiB of free memory in one piece", options->bytes >> 20);
		return NULL;
	}
	a->start = block_pfn(a->run) << PAGE_SHIFT;
	a->phantom = phantom_start();
	make_ranges(a);
	if (!build(a)) {
		test_skip("too little memory for an arena's descriptors");
		arena_drop(a);
		return NULL;
	}
	return a;
}

void arena_drop(struct arena *a)
{
	empty_window(a);
	free_descriptors(a);
	block_publish_free(a->lender, a->run, a->run_order);
	a->taken = false;
}

void arena_return(struct arena *a)
{
	if (!test_failed())
		EXPECT(arena_accounted(a));
	arena_drop(a);
}

void arenas_end_case(void)
{
	for (unsigned i = 0; i < ARRAY_LEN(arenas); i++)
		if (arenas[i].taken)
			arena_return(&arenas[i]);
}

/* ---- the state of an arena ---- */

bool arena_accounted(struct arena *a)
{
	return mm_account(&a->mm);
}

struct mm_usage arena_usage(struct arena *a)
{
	struct mm_usage usage;

	mm_usage_read(&a->mm, &usage);
	return usage;
}

u64 arena_showable(const struct arena *a)
{
	u64 frames = 0;

	for (unsigned z = 0; z < a->mm.zones; z++)
		frames += a->mm.zone[z].free_class[FREE_BARE] + a->mm.zone[z].free_class[FREE_HUGE];
	return frames;
}

u64 arena_changes_by_others(const struct arena *a, enum block_state from, enum block_state to)
{
	return mm_counted(&a->mm, COUNT_CHANGE(from, to)) -
	       a->mm.pcp[cpu_id()]->counts->count[COUNT_CHANGE(from, to)];
}

u64 arena_bytes_for(u64 phantom)
{
	u64 real = MIB(32);

	while (real < phantom / STRUCTS_PER_FRAME * 5 / 4)
		real *= 2;
	return real;
}

u64 arena_available(struct arena *a)
{
	const struct mm_usage usage = arena_usage(a);

	return usage.free + usage.unopened + usage.per_cpu;
}

bool arena_small_lists_whole(struct arena *a)
{
	u64 small = 0, whole = 0;

	for (unsigned z = 0; z < a->mm.zones; z++)
		small += a->mm.zone[z].free_small;
	for (u32 index = (u32)(a->mm.first_gib * GIB_BLOCKS);
	     index < (a->mm.first_gib + a->mm.gibs) * GIB_BLOCKS; index++) {
		const struct block *block = block_at(&a->mm, index);
		const struct block_word word =
			block ? block_look(block) : BLOCK_WORD(.state = BLOCK_ABSENT);

		if (word.state == BLOCK_FULL && word.free_pages == BLOCK_FRAMES)
			whole += BLOCK_FRAMES;
	}
	return small == whole;
}

u32 arena_block(const struct arena *a)
{
	return (u32)(a->start >> BLOCK_SHIFT);
}

u32 arena_phantom_block(const struct arena *a)
{
	return (u32)(a->phantom >> BLOCK_SHIFT);
}

struct zone *arena_zone(struct arena *a, node_t node)
{
	const u8 *zone = a->mm.node[node].zone;

	return &a->mm.zone[zone[ZONE_NORMAL] != ZONE_NONE ? zone[ZONE_NORMAL] : zone[ZONE_DMA32]];
}

struct zone *arena_phantom_zone(struct arena *a)
{
	return arena_zone(a, a->options.nodes);
}

void arena_open_all(struct arena *a)
{
	for (unsigned z = 0; z < a->mm.zones; z++)
		while (section_open_next(&a->mm.zone[z], SECTION_ON_DEMAND) == 0)
			;
}
