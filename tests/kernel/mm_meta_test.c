/*
 * Metadata memory: frames for struct pages and tables are reserved before they are needed, and
 * gated after they were used.
 */
#include "mm/zone/meta_grow.h"
#include "tests/kernel/mm_test.h"

TEST_ARENA(mm_meta, frames_are_reserved_taken_and_given, arena_borrow(MIB(2)))
{
	pfn_t pfn;
	struct node *node = &a->mm.node[0];
	const u64 used = node->meta.used;
	const u64 available = node->meta.free[META_LASTING];

	EXPECT_EQ(meta_reserve_now(node, META_LASTING, 3), 0);
	EXPECT_EQ(node->meta.reserved[META_LASTING], 3);
	pfn = meta_take(node, META_LASTING);
	EXPECT_EQ(pfn >> BLOCK_ORDER, arena_block(a));
	EXPECT_EQ(node->meta.used, used + 1);
	EXPECT_EQ(node->meta.reserved[META_LASTING], 2);
	meta_unreserve(node, META_LASTING, 2);
	meta_give(&a->mm, pfn, 0);
	EXPECT_EQ(node->meta.used, used);
	EXPECT_EQ(node->meta.free[META_LASTING], available);
}

/*
 * The first of two blocks has a free frame, and the hint is empty, as after a block was added or
 * removed. A frame given back to the second block must not hide the one in the first.
 */
TEST_ARENA(mm_meta, a_frame_given_back_hides_none_below_it, arena_borrow(MIB(16)))
{
	static pfn_t pfn[2 * BLOCK_FRAMES];
	unsigned count = 0;
	struct node *node = &a->mm.node[0];

	do {
		REQUIRE(count < ARRAY_LEN(pfn) && meta_reserve(node, META_LASTING, 1) == 0);
		pfn[count++] = meta_take(node, META_LASTING);
	} while (pfn[count - 1] >> BLOCK_ORDER == pfn[0] >> BLOCK_ORDER);
	meta_give(&a->mm, pfn[0], 0);
	node->meta.hint[META_LASTING] = NULL;
	meta_give(&a->mm, pfn[count - 1], 0);
	REQUIRE(meta_reserve_now(node, META_LASTING, 1) == 0);
	EXPECT_EQ(meta_take(node, META_LASTING), pfn[0]);
	arena_drop(a); /* nothing refers to the frames that were taken */
}

/* Heads have reserved frames of a block of the other kind, so that block is not given back. */
TEST_ARENA(mm_meta, a_block_that_heads_have_reserved_stays, arena_borrow(MIB(16)))
{
	enum { HEADS = 600 };
	static pfn_t pfn[HEADS];
	struct node *node = &a->mm.node[0];

	REQUIRE(meta_reserve(node, META_LASTING, 700) == 0);
	meta_unreserve(node, META_LASTING, 700);
	/* in so little memory no block is kept for struct pages */
	EXPECT_EQ(arena_zone(a, 0)->free_type[MIGRATE_UNMOVABLE], 0);
	REQUIRE(meta_reserve_now(node, META_HEADS, HEADS) == 0);
	meta_end_batch(node);
	EXPECT(node->meta.free[META_HEADS] + node->meta.free[META_LASTING] >= HEADS);
	if (!test_failed()) {
		meta_take_many(node, META_HEADS, BLOCK_NONE, pfn, HEADS);
		meta_give_many(&a->mm, pfn, HEADS, 0);
	}
}

/* Tries that fail now and then make a reservation fail, or take another turn, but not for ever. */
TEST_ARENA(mm_meta, a_reservation_ends_whichever_tries_fail, arena_borrow(MIB(32)))
{
	struct node *node = &a->mm.node[0];

	for (u32 every = 1; every <= 8; every++) {
		int err;

		fail_arm(&a->mm.fail, FAIL_META, every, FAIL_AGAIN);
		err = meta_reserve(node, META_LASTING, 5);
		fail_disarm(&a->mm.fail);
		EXPECT(err == 0 || err == -ENOMEM);
		if (err == 0)
			meta_unreserve(node, META_LASTING, 5);
	}
}

/* Each block needs a descriptor, and these come in frames that only growth may use. */
TEST_ARENA(mm_meta, growing_for_heads_restores_the_frames_that_growing_needs, arena_borrow(MIB(64)))
{
	enum { BLOCKS = 14 };
	u64 held = 0;
	struct node *node = &a->mm.node[0];

	while (meta_reserve_now(node, META_LASTING, 1) == 0)
		held++;
	for (unsigned i = 0; i < META_EMERGENCY - 1; i++, held++)
		EXPECT_EQ(meta_reserve_emergency(node, 1), 0);
	EXPECT_EQ(meta_reserve(node, META_HEADS, BLOCKS * BLOCK_FRAMES), 0);
	EXPECT(meta_has(node, META_LASTING, 0));
	meta_unreserve(node, META_HEADS, BLOCKS * BLOCK_FRAMES);
	meta_unreserve(node, META_LASTING, held);
}

/* ---- growing ---- */

/*
 * Metadata memory that needs everything at once: blocks, sections with free blocks, and descriptors
 * for them. One CPU asks, all CPUs ask, and each step fails once.
 */

enum {
	FAULTS_MAX = 200,
	ALL_OF_A_SECTION = (SECTION_BLOCKS + 1) * BLOCK_FRAMES,
	NEARLY_ALL = (SECTION_BLOCKS - 2) * BLOCK_FRAMES
};

/*
 * The arenas have a section whose blocks become metadata memory, and one that has to be opened for
 * more.
 */

/*
 * Each reservation and opening on the way fails once. A request that is refused leaves nothing
 * behind.
 */
TEST(mm_meta, every_failure_on_the_way_to_more_leaves_no_trace)
{
	bool met = true;
	u32 fault = 1;

	for (; met && fault < FAULTS_MAX && !test_failed(); fault++) {
		struct arena *a = arena_borrow(MIB(256));
		struct node *node;
		int err;

		if (!a)
			return;
		node = &a->mm.node[0];
		EXPECT_EQ(meta_reserve(node, META_LASTING, NEARLY_ALL), 0);
		fail_arm(&a->mm.fail, FAIL_ANY, fault, FAIL_ONCE);
		err = meta_reserve(node, META_LASTING, ALL_OF_A_SECTION - NEARLY_ALL);
		met = fail_disarm(&a->mm.fail);
		EXPECT_EQ(node->meta.reserved[META_LASTING], err ? NEARLY_ALL : ALL_OF_A_SECTION);
		meta_unreserve(node, META_LASTING, err ? NEARLY_ALL : ALL_OF_A_SECTION);
		EXPECT(arena_accounted(a));
		EXPECT_EQ(meta_reserve(node, META_LASTING, ALL_OF_A_SECTION), 0);
		meta_unreserve(node, META_LASTING, ALL_OF_A_SECTION);
		arena_return(a);
	}
	print("  # growing metadata memory: %u places failed, one at a time\n", fault - 2);
	EXPECT(!met || test_failed());
	EXPECT(fault - 2 >= 3); /* the request, the section and its table */
}

/* Make the hidden descriptors spare again. */
static void show_spares(struct node *node, struct meta_block *hidden)
{
	struct meta_block **last = &node->meta.spare;

	while (*last)
		last = &(*last)->next;
	*last = hidden;
}

/*
 * No descriptor is left and none can be made. Neither metadata memory nor a mapped section gets the
 * block, and it goes back whole.
 */
TEST_ARENA(mm_meta, a_block_without_a_descriptor_goes_back, arena_borrow(MIB(256)))
{
	struct node *node = &a->mm.node[0];
	struct mm_usage before;
	struct meta_block *spare = node->meta.spare;

	node->meta.spare = NULL;
	before = arena_usage(a);
	fail_arm(&a->mm.fail, FAIL_META, 1, FAIL_AGAIN);
	EXPECT_EQ(meta_grow(node, META_TAILS, BLOCK_FRAMES), -ENOMEM);
	EXPECT_EQ(section_open(&a->mm, arena_block(a) / SECTION_BLOCKS + 1, SECTION_MAPPED),
		  -ENOMEM);
	fail_disarm(&a->mm.fail);
	EXPECT_EQ(arena_usage(a).meta, before.meta);
	EXPECT_EQ(arena_usage(a).free + arena_usage(a).unopened, before.free + before.unopened);
	/* A frame of descriptors is made. */
	EXPECT_EQ(meta_grow(node, META_TAILS, BLOCK_FRAMES), 0);
	EXPECT(node->meta.spare);
	/* it holds no section's struct pages */
	REQUIRE(node->meta.list[META_TAILS]);
	EXPECT(!(block_look_at(&a->mm, node->meta.list[META_TAILS]->block).flags & BLOCK_MEMMAP));
	EXPECT_EQ(section_open(&a->mm, arena_block(a) / SECTION_BLOCKS + 1, SECTION_MAPPED), 0);
	EXPECT(spare);
	show_spares(node, spare);
}

/* ---- two nodes that need each other ---- */

/*
 *   section   0         1         2         3
 *             [A        |A   |B   |B        |B   |A   ]   META: A's in section 0, B's in section 2
 *   META of    A         A         B         B               pays
 *
 * Both nodes have used up metadata memory and all open memory. To grow, A opens section 3, for
 * which B pays, and B opens section 1, for which A pays.
 */
struct needy {
	struct arena *a;
	struct node *node[2];
	u64 reserved[2][META_KINDS];
	struct block_list taken[2];
	u64 straddling[2]; /* the section that each node opens to grow, at the other's cost */
};

/* Reserve all but `left` of the node's long-lived frames, and all frames of the other kinds. */
static void exhaust(struct needy *n, node_t i, u64 left)
{
	struct node *node = n->node[i];

	n->taken[i] = BLOCK_LIST_INIT;
	block_take(arena_zone(n->a, i), FREE_BARE, BLOCK_ORDER, ~0ULL, BLOCK_HUGE, &n->taken[i]);
	for (enum meta_kind kind = 0; kind < META_KINDS; kind++) {
		n->reserved[i][kind] = node->meta.free[kind] - node->meta.reserved[kind];
		if (kind == META_LASTING)
			EXPECT_EQ(meta_reserve_emergency(node, n->reserved[i][kind] -= left), 0);
		else
			EXPECT_EQ(meta_reserve_now(node, kind, n->reserved[i][kind]), 0);
	}
	EXPECT(node->meta.spare);
}

static void relieve(struct needy *n, node_t i)
{
	for (enum meta_kind kind = 0; kind < META_KINDS; kind++) {
		meta_unreserve(n->node[i], kind, n->reserved[i][kind]);
		n->reserved[i][kind] = 0;
	}
}

static bool borrow_needy(struct needy *n)
{
	u64 first;

	n->a = arena_borrow(MIB(512), .nodes = 2, .skew = -MIB(64), .again = MIB(64),
			    .meta_at = MIB(64));
	if (!n->a)
		return false;
	first = arena_block(n->a) / SECTION_BLOCKS;
	n->straddling[0] = first + 3;
	n->straddling[1] = first + 1;
	for (node_t i = 0; i < 2; i++)
		n->node[i] = &n->a->mm.node[i];
	for (node_t i = 0; i < 2; i++) {
		exhaust(n, i, 0);
		EXPECT_EQ(section_state(&n->a->mm, n->straddling[i]), SECTION_UNOPENED);
	}
	return true;
}

/*
 * Whatever the outcome, both nodes can grow once metadata memory has frames again, and all memory
 * is accounted for.
 */
static void return_needy(struct needy *n)
{
	for (node_t i = 0; i < 2; i++) {
		relieve(n, i);
		block_list_publish_free(&n->a->mm, &n->taken[i]);
	}
	for (node_t i = 0; i < 2; i++) {
		EXPECT_EQ(n->node[i]->meta.growing, 0);
		EXPECT_EQ(meta_reserve(n->node[i], META_LASTING, NEARLY_ALL / 4), 0);
		meta_unreserve(n->node[i], META_LASTING, NEARLY_ALL / 4);
		meta_end_batch(n->node[i]);
	}
	arena_return(n->a);
}

struct grower {
	struct node *node;
	int err;
};

static void grow_one(void *arg)
{
	struct grower *g = arg;

	g->err = meta_grow(g->node, META_LASTING, 1);
}

static void await_wait(u32 begun, cpu_t cpu)
{
	CPUS_WAIT_FOR(atomic_load_relaxed(&cpu_data(cpu)->waits.begun[WAIT_GROWTH]) != begun ||
			      work_done(cpu),
		      cpu, "a CPU to wait for growth");
}

/*
 * This CPU is growing metadata memory. The other CPU wants to grow A. While it waits it must not be
 * growing A. Whoever grows A needs B, which has nothing left, so B grows on the way.
 */
TEST(mm_meta, a_cpu_that_waits_for_a_nodes_growth_grows_none_itself)
{
	static struct needy n;
	static struct grower g;
	const cpu_t cpu = cpus_find_other();
	u32 begun;

	SKIP_ON_ONE_CPU();
	if (!borrow_needy(&n))
		return;
	g = (struct grower){.node = n.node[0]};
	begun = atomic_load_relaxed(&cpu_data(cpu)->waits.begun[WAIT_GROWTH]);
	atomic_store_release(&n.a->mm.growing, cpu_id() + 1);
	REQUIRE(work_start(cpu, grow_one, &g) == 0);
	await_wait(begun, cpu);
	EXPECT_EQ(atomic_load_relaxed(&n.node[0]->meta.growing), 0);
	EXPECT(!work_done(cpu));
	atomic_store_release(&n.a->mm.growing, 0);
	work_wait(cpu, 0);
	EXPECT_EQ(g.err, 0); /* look again */
	relieve(&n, 0);      /* A can pay for B's section then, and B for A's after that */
	EXPECT_EQ(meta_grow(n.node[0], META_LASTING, BLOCK_FRAMES), 0);
	EXPECT_EQ(section_state(&n.a->mm, n.straddling[0]), SECTION_OPEN);
	return_needy(&n);
}

static void await_growth(const struct node *node, cpu_t cpu)
{
	CPUS_WAIT_FOR(atomic_load_acquire(&node->meta.growing) || work_done(cpu), cpu,
		      "a CPU to begin to grow metadata memory");
}

/*
 * A's grower is stopped at A's lock until another CPU waits to grow B. Then each node needs the
 * other.
 */
TEST(mm_meta, nodes_that_need_each_other_grow_at_once_and_both_end)
{
	static struct needy n;
	static struct grower g[2];
	cpu_t cpu[2];
	u32 begun;

	cpu[0] = cpus_find_other();
	for (cpu[1] = cpu[0] + 1; cpu[0] != CPU_NONE && cpu[1] < cpu_count &&
				  (cpu[1] == cpu_id() || !work_done(cpu[1]));)
		cpu[1]++;
	if (cpu[0] == CPU_NONE || cpu[1] >= cpu_count)
		SKIP("needs three CPUs");
	if (!borrow_needy(&n))
		return;
	for (node_t i = 0; i < 2; i++)
		g[i] = (struct grower){.node = n.node[i]};
	spin_lock(&n.node[0]->meta.lock);
	REQUIRE(work_start(cpu[0], grow_one, &g[0]) == 0);
	await_growth(n.node[0], cpu[0]);
	begun = atomic_load_relaxed(&cpu_data(cpu[1])->waits.begun[WAIT_GROWTH]);
	REQUIRE(work_start(cpu[1], grow_one, &g[1]) == 0);
	await_wait(begun, cpu[1]);
	spin_unlock(&n.node[0]->meta.lock);
	for (node_t i = 0; i < 2; i++)
		work_wait(cpu[i], 0);
	/* nothing can be had: the result is "look again" or -ENOMEM */
	EXPECT(g[0].err <= 0 && g[1].err <= 0);
	return_needy(&n);
}

/*
 * The first node has one frame left, and a second section in which 1 MiB is RAM. No block of that
 * section can become metadata memory.
 */
TEST_ARENA(mm_meta, a_block_is_not_lost_while_another_node_has_frames,
	   arena_borrow(MIB(512), .nodes = 2, .skew = MIB(128), .hole = {{MIB(129), MIB(255)}}))
{
	static struct needy n;
	u32 block;

	n = (struct needy){.a = a};
	n.node[0] = &a->mm.node[0];
	block = arena_block(a) + SECTION_BLOCKS;
	exhaust(&n, 0, 1);
	EXPECT_EQ(section_open(&a->mm, block / SECTION_BLOCKS, SECTION_ON_DEMAND), 0);
	EXPECT_EQ(block_look_at(&a->mm, block).state, BLOCK_RESERVED);
	relieve(&n, 0);
	block_list_publish_free(&a->mm, &n.taken[0]);
}

/* ---- CPUs that need more at once ---- */

struct growers {
	struct arena *a;
	u32 parts;
};

static void reserve_one(void *arg)
{
	struct growers *g = arg;

	EXPECT_EQ(meta_reserve(&g->a->mm.node[0], META_TAILS, 1), 0);
}

/* The first two CPUs, one for each node. */
static void grow_and_shrink(void *arg)
{
	struct growers *g = arg;
	const u32 part = atomic_fetch_add(&g->parts, 1);

	for (unsigned turn = 0; part < 2 && turn < 4; turn++) {
		struct node *node = &g->a->mm.node[part];

		if (meta_reserve(node, META_HEADS, BLOCK_FRAMES) == 0)
			meta_unreserve(node, META_HEADS, BLOCK_FRAMES);
		meta_trim_all(node);
	}
}

/* Both nodes lie in one GiB, whose metadata blocks are counted together. */
TEST_ARENA(mm_meta, one_block_serves_all_cpus_and_those_of_two_nodes_in_one_gib_are_counted,
	   arena_borrow(MIB(16), .nodes = 2))
{
	struct growers g = {.a = a};
	const u64 blocks = a->mm.node[0].meta.blocks;
	const cpu_t cpus = cpus_run_together(reserve_one, &g);

	EXPECT_EQ(a->mm.node[0].meta.blocks, blocks + 1);
	meta_unreserve(&a->mm.node[0], META_TAILS, cpus);
	cpus_run_together(grow_and_shrink, &g);
}
