/*
 * The struct pages must not depend on when they are made or on how many CPUs make them. The arenas
 * contain every awkward case: firmware and boot ranges, a hole that ends inside a block, a node
 * border inside a block, and RAM that ends inside a block.
 *
 *   0    60M        70M             half + 3M         half + 168M            end - 100K
 *   [META|firmware| |boot|   node 0 |META      node 1 |hole|                 |
 *
 * Sections with metadata memory or firmware are open from the start. The other sections are opened
 * by each way and number of threads, and each struct page must be what the boot ranges say of its
 * frame.
 */
#include "mm/zone/memmap_open.h"

#include "kernel/core/cmdline.h"
#include "kernel/lib/string.h"
#include "mm/zone/section_memmap.h"
#include "tests/kernel/mm_test.h"

enum { PATIENCE_S = 5, IN_HAND_MS = 5 };

/* ---- the struct pages of an arena ---- */

/* Compare a struct page with what the boot ranges say about its frame. */
static bool is_right(struct arena *a, pfn_t pfn, const struct page *page)
{
	u8 zone = page->zone; /* a hole keeps the zone of its block, which no code uses */

	switch (memmap_frame_kind(&a->mm, pfn, &zone)) {
	case FRAME_HOLE:
	case FRAME_RESERVED:
		return page->flags == PAGE_RESERVED && page->refcount == 0 && page->zone == zone;
	case FRAME_BOOT:
		return page->flags == PAGE_BOOT && page->refcount == 1 && page->zone == zone;
	default:
		return !(page->flags & ~(PAGE_BUDDY | PAGE_PCP)) && page->refcount == 0 &&
		       page->zone == zone && page_head(page) == page;
	}
}

/* Struct pages lie in frames: if the first one of a frame can be read, all of them can. */
static bool is_there(struct arena *a, pfn_t pfn)
{
	struct page page;

	return pfn % STRUCTS_PER_FRAME != 0 || mm_page_peek(&a->mm, pfn, &page);
}

/*
 * Check the frames of a block that has struct pages of its own. Returns the number of wrong ones.
 */
static u64 check_block(struct arena *a, u32 index)
{
	u64 wrong = 0;

	for (pfn_t pfn = block_pfn(index); pfn < block_pfn(index + 1); pfn++) {
		if (!is_there(a, pfn))
			return wrong + BLOCK_FRAMES;
		if (!is_right(a, pfn, pfn_page(&a->mm, pfn)) && wrong++ == 0)
			test_fail(__FILE__, __LINE__, "frame %llx: flags %x refcount %u zone %u",
				  pfn - block_pfn(arena_block(a)), pfn_page(&a->mm, pfn)->flags,
				  pfn_page(&a->mm, pfn)->refcount, pfn_page(&a->mm, pfn)->zone);
	}
	return wrong;
}

static void check_all(struct arena *a)
{
	u64 seen = 0, wrong = 0;

	for (u32 index = arena_block(a); index < arena_block(a) + (a->options.bytes >> BLOCK_SHIFT);
	     index++) {
		const enum block_state state = block_look_at(&a->mm, index).state;

		if (state != BLOCK_FULL && state != BLOCK_RESERVED)
			continue;
		seen++;
		wrong += check_block(a, index);
	}
	EXPECT_EQ(wrong, 0);
	EXPECT(seen > 0);
}

/* Allocate every page and free it. Lists that were built on garbage would not survive that. */
static void use_all(struct arena *a)
{
	struct page *chain = NULL;

	chain_take_all(&chain, &a->mm, 0, 0, NODE_NONE);
	chain_give(&chain, &a->mm);
	pcp_drain_all(&a->mm);
}

/* Use more sections where the machine can spare the memory. */
static u64 arena_bytes(void)
{
	return memblock_list_bytes(&memblock_memory, 0, ~0ULL, OWNER_ANY) >= GIB(4) ? GIB(1)
										    : MIB(512);
}

/*
 * Each of the `nodes` has sections of its own. With 512 MiB and two nodes, each node has one
 * section that is not open yet.
 */
static struct arena *borrow_awkward(node_t nodes)
{
	return arena_borrow(arena_bytes(), .nodes = nodes, .skew = nodes > 1 ? MIB(3) : 0,
			    .short_by = KIB(100),
			    .hole = {{arena_bytes() / 2 + MIB(168) + KIB(12), MIB(5)}},
			    .firmware = {{MIB(60) + KIB(4), KIB(20)}}, .boot = {{MIB(70), MIB(2)}});
}

/* The results of the last open_all(), by node. */
static struct memmap_opened opened_last[ARENA_NODES_MAX * 2];

static void open_all(struct arena *a, unsigned way, unsigned threads)
{
	u64 sections = 0;

	memmap_open_all(&a->mm, &memmap_ways[way], (struct memmap_threads){.value = threads},
			opened_last);
	for (node_t n = 0; n < a->mm.nodes; n++)
		sections += opened_last[n].sections;
	EXPECT_EQ(arena_usage(a).unopened, 0);
	EXPECT(sections > 0);
}

static unsigned node_cpus(node_t node)
{
	unsigned cpus = 0;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		cpus += cpu_data(cpu)->node == node;
	return cpus;
}

/*
 * Opening a section takes as long as waking a helper, about a millisecond, so the caller would open
 * all sections itself. A third CPU therefore keeps the lock of the node's metadata memory, which
 * every opening needs. It waits until another of the node's CPUs is at work, and long enough for
 * that CPU to have taken a section.
 */
struct keeper {
	struct spinlock *lock;
	node_t node;
	u32 shut, met;
};

static bool at_work(const struct percpu *cpu)
{
	return atomic_load_relaxed(&cpu->work.claimed) && !atomic_load_relaxed(&cpu->idle);
}

static void keep_shut(void *arg)
{
	struct keeper *k = arg;
	const u64 until = clock_ns() + PATIENCE_S * NS_PER_S;
	cpu_t cpu;

	spin_lock(k->lock);
	atomic_store_release(&k->shut, 1);
	while (!k->met && clock_ns() < until) {
		cpumask_foreach(cpu, &cpus_online)
			k->met |= cpu != cpu_id() && cpu_data(cpu)->node == k->node &&
				  at_work(cpu_data(cpu));
		cpu_relax();
	}
	clock_delay_ns(IN_HAND_MS * NS_PER_MS);
	spin_unlock(k->lock);
}

/*
 * The last CPU keeps the lock, if this CPU's node then still has another CPU to help. Returns
 * CPU_NONE if no CPU can keep it.
 */
static cpu_t find_keeper(void)
{
	const node_t node = this_cpu()->node;
	cpu_t cpu, last = cpu_id();

	cpumask_foreach(cpu, &cpus_online)
		last = cpu;
	return last != cpu_id() && node_cpus(node) > 1u + (cpu_data(last)->node == node) ? last
											 : CPU_NONE;
}

/* The number of threads of the job that had most. */
static unsigned most_threads(node_t nodes)
{
	unsigned threads = 0;

	for (node_t n = 0; n < nodes; n++)
		threads = MAX(threads, opened_last[n].threads);
	return threads;
}

/* Open all sections with one CPU, or with two at least if there are three CPUs. */
static void open_shared(struct arena *a, unsigned way, unsigned threads)
{
	const node_t node = this_cpu()->node;
	const cpu_t cpu = threads > 1 && node < a->mm.nodes ? find_keeper() : CPU_NONE;
	struct keeper k = {.lock = &a->mm.node[MIN(node, a->mm.nodes - 1)].meta.lock, .node = node};

	if (cpu != CPU_NONE)
		REQUIRE(cpus_wait_idle() && work_start(cpu, keep_shut, &k) == 0);
	CPUS_WAIT_FOR(cpu == CPU_NONE || atomic_load_acquire(&k.shut), cpu,
		      "the CPU that keeps metadata memory's lock");
	open_all(a, way, threads);
	if (cpu != CPU_NONE) {
		work_wait(cpu, 0);
		EXPECT(k.met);
		EXPECT(most_threads(a->mm.nodes) > 1);
	}
}

static void check_same(const struct mm_usage *serial, unsigned way, unsigned threads, node_t nodes)
{
	struct arena *a = borrow_awkward(nodes);
	struct mm_usage usage;

	if (!a)
		return;
	if (memmap_ways[way].job)
		open_shared(a, way, threads);
	else
		open_all(a, way, threads);
	usage = arena_usage(a);
	EXPECT_EQ(usage.ram, serial->ram);
	EXPECT_EQ(usage.unopened, 0);
	EXPECT_EQ(usage.free, serial->free);
	EXPECT_EQ(usage.meta, serial->meta);
	EXPECT_EQ(usage.in_use, serial->in_use);
	EXPECT_EQ(usage.reserved, serial->reserved);
	check_all(a);
	arena_return(a);
}

/*
 * Open all sections serially, then in each other way that opens them at once, with 1, 2, 3 ...
 * threads. Every job has two sections to share out.
 */
static void check_any_number(node_t nodes)
{
	const unsigned online = cpumask_weight(&cpus_online);
	struct arena *a = borrow_awkward(nodes);
	struct mm_usage serial;

	if (!a)
		return;
	open_all(a, WAY_SERIAL, 0);
	for (node_t n = 0; n < nodes; n++) {
		EXPECT(opened_last[n].sections >= 2);
		EXPECT_EQ(opened_last[n].threads, 1);
		EXPECT_EQ(opened_last[n].chunks_max, 0); /* no job, as before the memmap series */
	}
	serial = arena_usage(a);
	check_all(a);
	arena_return(a);
	for (unsigned threads = 1; threads < MIN(online, 8); threads++)
		check_same(&serial, WAY_PARALLEL, threads, nodes);
	check_same(&serial, WAY_PARALLEL, online, nodes);
	check_same(&serial, WAY_EAGER, online, nodes);
}

TEST(mm_memmap_open, any_number_of_threads_makes_the_same_memmap)
{
	check_any_number(arena_bytes() >= GIB(1) ? 2 : 1);
}

/* Before the memmap series, one CPU of the node opens all its sections, without a job. */
TEST(mm_memmap_open, before_the_series_there_are_no_chunks)
{
	for (unsigned way = WAY_SERIAL; way <= WAY_EAGER; way++) {
		struct arena *a = borrow_awkward(1);

		if (!a)
			return;
		open_all(a, way, 0);
		EXPECT_EQ(opened_last[0].threads, 1);
		EXPECT_EQ(opened_last[0].chunks_max > 0, way == WAY_PARALLEL || way == WAY_EAGER);
		/* a section each, so that several threads end together */
		EXPECT(way != WAY_EAGER || opened_last[0].chunks_max >= opened_last[0].sections);
		arena_return(a);
	}
}

/* ---- over garbage: nothing is read before it is written ---- */

enum { GARBAGE = 0xa5 };

static void spoil(pfn_t pfn, u64 frames)
{
	memset(phys_to_virt(pfn << PAGE_SHIFT), GARBAGE, frames * PAGE_SIZE);
}

static void spoil_meta(const struct arena *a, u32 index)
{
	const struct meta_block *meta = block_at(&a->mm, index)->meta;

	for (unsigned i = 0; i < BLOCK_FRAMES; i++)
		if (!(meta->used_map[i / 64] >> i % 64 & 1))
			spoil(block_pfn(index) + i, 1);
}

/*
 * Spoil the memory where struct pages will lie: the homes of mapped sections, metadata memory's
 * free frames, and blocks into which metadata memory may grow.
 */
static void spoil_arena(struct arena *a)
{
	const u32 first = arena_block(a), end = first + (u32)(a->options.bytes >> BLOCK_SHIFT);

	for (u32 i = first; i < end; i++) {
		const struct block *block = block_at(&a->mm, i);

		if (block_look(block).state == BLOCK_META)
			spoil_meta(a, i);
		else if (block_look(block).state == BLOCK_BARE && i % SECTION_BLOCKS < 8)
			spoil(block_pfn(i), BLOCK_FRAMES);
	}
	for (u64 section = first / SECTION_BLOCKS; section < end / SECTION_BLOCKS; section++)
		for (unsigned z = 0; z < a->mm.zones; z++) {
			const u32 home = section_home(&a->mm.zone[z], section);

			if (home != BLOCK_NONE &&
			    (block_look_at(&a->mm, home).state == BLOCK_BARE ||
			     block_look_at(&a->mm, home).state == BLOCK_UNOPENED))
				spoil(block_pfn(home), BLOCK_FRAMES);
		}
}

static void over_garbage(unsigned way)
{
	static struct memmap_opened opened[ARENA_NODES_MAX * 2];
	struct arena *a = borrow_awkward(2);

	if (!a)
		return;
	spoil_arena(a);
	memmap_open_all(&a->mm, &memmap_ways[way],
			(struct memmap_threads){.value = 100, .percent = true}, opened);
	EXPECT(opened[0].ns < clock_ns());
	check_all(a);
	use_all(a);
	check_all(a);
	arena_return(a);
}

TEST(mm_memmap_open, poisoned_memory_does_not_show_in_mapped_sections)
{
	for (unsigned way = 0; memmap_ways[way].name; way++)
		if (memmap_ways[way].style == SECTION_MAPPED)
			over_garbage(way);
}

TEST(mm_memmap_open, poisoned_memory_does_not_show_on_demand)
{
	over_garbage(WAY_LAZY);
}

/* As memmap.threads= reads it, with a value of its own. */
TEST(mm_memmap_open, threads_are_a_count_or_a_percentage)
{
	static const struct {
		const char *text;
		int err;
		struct memmap_threads threads;
	} rows[] = {
		{"0", 0, {0, false}},     {"65535", 0, {65535, false}}, {"65536", -ERANGE, {0}},
		{"100%", 0, {100, true}}, {"101%", -ERANGE, {0}},       {"7%%", -EINVAL, {0}},
		{"7x", -EINVAL, {0}},     {"%", -EINVAL, {0}},          {"", -EINVAL, {0}},
	};
	struct memmap_threads read;
	struct option option = *option_find("memmap.threads");
	char shown[16];

	option.target = &read;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		read = (struct memmap_threads){.value = 5};
		EXPECT_EQ(option.parse(&option, rows[i].text), rows[i].err);
		EXPECT_EQ(read.value, rows[i].err ? 5 : rows[i].threads.value);
		EXPECT_EQ(read.percent, rows[i].threads.percent);
		option.show(&option, shown, sizeof(shown));
		EXPECT(strcmp(shown, rows[i].err ? "5" : rows[i].text) == 0);
	}
}

TEST(mm_memmap_open, a_percentage_is_of_the_cpus_of_the_node)
{
	const node_t node = cpu_data(0)->node;
	unsigned cpus = 0;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		cpus += cpu_data(cpu)->node == node;
	EXPECT_EQ(memmap_threads_on(node, (struct memmap_threads){100, true}), cpus);
	EXPECT_EQ(memmap_threads_on(node, (struct memmap_threads){50, true}), MAX(cpus / 2, 1));
	EXPECT_EQ(memmap_threads_on(node, (struct memmap_threads){1, true}), MAX(cpus / 100, 1));
	EXPECT_EQ(memmap_threads_on(NODE_NONE, (struct memmap_threads){100, true}), 1);
	EXPECT_EQ(memmap_threads_on(node, (struct memmap_threads){0, true}), 0);
	EXPECT_EQ(memmap_threads_on(node, (struct memmap_threads){7, false}), 7);
}
