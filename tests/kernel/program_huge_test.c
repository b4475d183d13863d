/*
 * Pages of a program that move (mm/vm/movable.h) and small ones that become huge
 * (mm/vm/collapse.h).
 */
#include "mm/vm/movable.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/program_memory.h"
#include "tests/kernel/space_look.h"

FIXTURE(program_huge, program_box_begin, program_box_end);

#define AT   GIB(8)
#define SIZE MIB(8)

static u64 word[PAGE_SIZE / sizeof(u64)];

/* Every word of a page depends on its address, so that a page in a wrong place is noticed. */
static void fill(u64 start, u64 end, u64 step)
{
	for (u64 at = start; at < end; at += step) {
		for (unsigned i = 0; i < ARRAY_LEN(word); i++)
			word[i] = at + i * sizeof(u64) + 1;
		EXPECT_EQ(user_write(at, word, PAGE_SIZE), 0);
	}
}

static bool is_filled(u64 start, u64 end, u64 step)
{
	for (u64 at = start; at < end; at += step) {
		if (user_read(word, at, PAGE_SIZE) < 0)
			return false;
		for (unsigned i = 0; i < ARRAY_LEN(word); i++)
			if (word[i] != at + i * sizeof(u64) + 1)
				return false;
	}
	return true;
}

static enum pt_level level_at(u64 at)
{
	enum pt_level level;
	pte_t pte;

	return pages_find(&program_space, at, &pte, &level) ? level : PT_PGD;
}

static pfn_t frame_at(u64 at)
{
	return pte_pfn(space_leaf(&program_space, at));
}

/* A mapping of small pages that may become huge later. */
static bool map_small(u64 size)
{
	return map_at(AT, size, RW, FIXED) == (s64)AT &&
	       program_call("madvise", AT, size, NOHUGEPAGE) == 0;
}

static u64 rounds; /* of the last collapse */

static s64 collapse(u64 at, u64 size)
{
	const u64 before = rounds_so_far();
	s64 result;

	program_call("madvise", at, size, HUGEPAGE);
	result = program_call("madvise", at, size, COLLAPSE);
	rounds = rounds_so_far() - before;
	return result;
}

/* The next huge pages to be allocated are full of old contents. */
static void soil(void)
{
	struct page *page[4];

	for (unsigned i = 0; i < ARRAY_LEN(page); i++) {
		page[i] = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE);
		if (page[i])
			memset(page_address(page[i]), 0xee, MIB(2));
	}
	for (unsigned i = 0; i < ARRAY_LEN(page); i++)
		if (page[i])
			page_free(page[i]);
}

TEST(program_huge, small_pages_become_huge_ones_with_the_same_contents)
{
	enum { TOUCHED = 512 + 171 + 1 };
	struct pages_count before, count;
	REQUIRE(map_small(MIB(8)));
	/* all pages of the first range, every third of the second, one of the third, none more */
	fill(AT, AT + MIB(2), PAGE_SIZE);
	fill(AT + MIB(2), AT + MIB(4), 3 * PAGE_SIZE);
	put(AT + MIB(6) - 8, 77);
	soil();
	pages_count(&program_space, &before);
	if (collapse(AT, MIB(6)) == -ENOMEM)
		SKIP("no 2 MiB pages were to be had");
	/* the baselines make rounds for each huge page, too */
	EXPECT(rounds <= 1 || hvo_mode_selected()->mapped);
	for (u64 at = AT; at < AT + MIB(6); at += MIB(2))
		EXPECT_EQ(level_at(at), PT_PMD);
	EXPECT(is_filled(AT, AT + MIB(2), PAGE_SIZE));
	EXPECT(is_filled(AT + MIB(2), AT + MIB(4), 3 * PAGE_SIZE));
	EXPECT_EQ(get(AT + MIB(6) - 8), 77);
	for (u64 at = AT + MIB(2) + PAGE_SIZE; at < AT + MIB(4); at += 3 * PAGE_SIZE)
		EXPECT_EQ(get(at), 0);
	for (u64 at = AT + MIB(4); at < AT + MIB(6) - 8; at += 1000)
		EXPECT_EQ(get(ALIGN_DOWN(at, 8)), 0);
	EXPECT_EQ(level_at(AT + MIB(6)), PT_PGD);
	pages_count(&program_space, &count);
	EXPECT_EQ(count.leaves[PT_PMD], 3);
	EXPECT_EQ(count.leaves[PT_PAGE], before.leaves[PT_PAGE] - TOUCHED);
	/* again: nothing is to be done, and nothing is done */
	EXPECT_EQ(collapse(AT, MIB(6)), 0);
	EXPECT_EQ(rounds, 0);
}

/* A thread that is bound to a node gets huge pages from no other, either. */
TEST(program_huge, a_bound_thread_collapses_with_pages_of_its_node_only)
{
	enum { MPOL_BIND = 2 };
	const u64 second = 2;
	struct page *held = NULL, *page;
	s64 result;

	if (node_count < 2)
		SKIP("needs two nodes");
	REQUIRE(map_small(MIB(2)));
	fill(AT, AT + MIB(2), PAGE_SIZE);
	EXPECT_EQ(put(PROGRAM_BOX_MEMORY, second), 0);
	EXPECT_EQ(program_call("set_mempolicy", MPOL_BIND, PROGRAM_BOX_MEMORY, 3), 0);
	while ((page = page_alloc(BLOCK_ORDER, USE_UNMOVABLE, PAGE_NODE, 1)))
		page_chain_push(&held, page);
	result = collapse(AT, MIB(2));
	while (held)
		page_free(page_chain_pop(&held));
	EXPECT_EQ(result, -ENOMEM);
	EXPECT_EQ(level_at(AT), PT_PAGE);
	EXPECT_EQ(collapse(AT, MIB(2)), 0);
	EXPECT_EQ(mm_kernel.zone[pfn_to_page(frame_at(AT))->zone].node, 1);
}

TEST(program_huge, what_cannot_be_huge_stays)
{
	REQUIRE(map_small(MIB(4)));
	fill(AT, AT + MIB(4), PAGE_SIZE);
	/* forbidden */
	EXPECT_EQ(program_call("madvise", AT, MIB(2), COLLAPSE), -EINVAL);
	/* no whole range */
	EXPECT_EQ(program_call("madvise", AT + PAGE_SIZE, MIB(2), COLLAPSE), 0);
	/* two areas in one range */
	EXPECT_EQ(program_call("mprotect", AT + MIB(1), PAGE_SIZE, R), 0);
	EXPECT_EQ(collapse(AT, MIB(2)), -EINVAL);
	/* nothing there */
	EXPECT_EQ(program_call("madvise", AT + MIB(2), MIB(2), DONTNEED), 0);
	EXPECT_EQ(collapse(AT + MIB(2), MIB(2)), -EINVAL);
	EXPECT_EQ(rounds, 0);
	EXPECT_EQ(program_call("madvise", GIB(16), MIB(2), COLLAPSE), -EINVAL);
	EXPECT_EQ(level_at(AT), PT_PAGE);
	EXPECT(is_filled(AT, AT + MIB(2), PAGE_SIZE));
}

/* A range keeps its rights: what was read-only cannot be written through the huge page. */
TEST(program_huge, a_collapsed_range_keeps_its_rights)
{
	REQUIRE(map_small(MIB(2)));
	fill(AT, AT + MIB(2), PAGE_SIZE);
	EXPECT_EQ(program_call("mprotect", AT, MIB(2), R), 0);
	if (collapse(AT, MIB(2)) == 0) {
		EXPECT_EQ(pte_rights(space_leaf(&program_space, AT)), R);
		EXPECT(is_filled(AT, AT + MIB(2), PAGE_SIZE));
		EXPECT_EQ(put(AT, 1), -EFAULT);
	}
}

/* ---- moving ---- */

/* Is everything that is in use in the block movable? */
static bool can_be_emptied(pfn_t first)
{
	struct page page;

	for (pfn_t pfn = first; pfn < first + BLOCK_FRAMES; pfn++)
		if (!page_peek(pfn, &page) || (page.flags & PAGE_RESERVED) ||
		    (page.refcount > 0 && !(page.flags & PAGE_MOVABLE)))
			return false;
	return true;
}

/* A page of the mapping in whose block there are none that belong to others; 0: none. */
static u64 page_to_move(u64 size)
{
	for (u64 at = AT; at < AT + size; at += PAGE_SIZE)
		if (can_be_emptied(ALIGN_DOWN(frame_at(at), BLOCK_FRAMES)))
			return at;
	return 0;
}

/* The reason for a skip: firmware may keep parts of all blocks of little RAM. */
#define NONE_CAN_MOVE "every block of the mapping has a page that cannot move"

/* Let the pages of map_small(SIZE) move. The page that shall move; 0: none can. */
static u64 make_movable(void)
{
	fill(AT, AT + SIZE, PAGE_SIZE);
	movable_announce(&program_space);
	return page_to_move(SIZE);
}

/* Ask for the block that the page at `at` lies in. Returns what the request returned. */
static int take_block_of(u64 at)
{
	const pfn_t first = ALIGN_DOWN(frame_at(at), BLOCK_FRAMES);
	const int err = contig_alloc_range(first, BLOCK_FRAMES);

	if (err == 0)
		contig_free_range(first, BLOCK_FRAMES);
	return err;
}

TEST(program_huge, pages_move_out_of_the_way)
{
	pfn_t was;
	u64 at;

	REQUIRE(map_small(SIZE));
	fill(AT, AT + SIZE, PAGE_SIZE);
	/* nobody has been told that they can move */
	EXPECT_EQ(page_to_move(SIZE), 0);
	EXPECT_EQ(take_block_of(AT + SIZE / 2), -EBUSY);
	movable_announce(&program_space);
	at = page_to_move(SIZE);
	if (!at)
		SKIP(NONE_CAN_MOVE);
	was = frame_at(at);
	EXPECT_EQ(take_block_of(at), 0);
	EXPECT(frame_at(at) / BLOCK_FRAMES != was / BLOCK_FRAMES);
	EXPECT(is_filled(AT, AT + SIZE, PAGE_SIZE));
}

/* It is refused until it is announced again, whatever is mapped at its old address. */
TEST(program_huge, a_page_that_has_a_new_address_stays)
{
	const u64 new = AT + 2 * SIZE;
	u64 at;
	pfn_t was;

	REQUIRE(map_small(SIZE));
	at = make_movable();
	if (!at)
		SKIP(NONE_CAN_MOVE);
	EXPECT_EQ(program_call("mremap", at, PAGE_SIZE, PAGE_SIZE, MOVE_FIXED, new), new);
	EXPECT_EQ(map_at(at, PAGE_SIZE, RW, FIXED), at);
	EXPECT_EQ(put(at, 5), 0);
	was = frame_at(new);
	EXPECT_EQ(take_block_of(new), -EBUSY);
	EXPECT_EQ(frame_at(new), was);
	EXPECT_EQ(get(new), at + 1);
	EXPECT_EQ(get(at), 5);
	movable_announce(&program_space);
	EXPECT_EQ(take_block_of(new), 0);
	EXPECT_EQ(get(new), at + 1);
}

/* A thread works on the page at this moment, perhaps through the direct map. */
TEST(program_huge, a_page_in_use_is_not_moved)
{
	struct area area;
	u64 at, start = AT;
	pfn_t was;

	REQUIRE(map_small(SIZE));
	at = make_movable();
	if (!at)
		SKIP(NONE_CAN_MOVE);
	was = frame_at(at);
	REQUIRE(space_pin(&program_space, at, PT_PAGE, &area));
	EXPECT_EQ(take_block_of(at), -EBUSY);
	space_unpin(&program_space);
	/* or a call changes its area, perhaps the one that wants contiguous memory */
	EXPECT_EQ(space_take(&program_space, &start, AT + SIZE, &area), 1);
	EXPECT_EQ(take_block_of(at), -EBUSY);
	space_put_back(&program_space, &area);
	EXPECT_EQ(frame_at(at), was);
	EXPECT_EQ(take_block_of(at), 0);
	EXPECT(is_filled(AT, AT + SIZE, PAGE_SIZE));
}

/* ---- the program ends while another CPU moves its page ---- */

struct late_move {
	struct page *from, *to;
	int result;
};

static void move_late(void *arg)
{
	struct late_move *m = arg;

	m->result = page_move(&mm_kernel, m->from, m->to);
}

static bool is_busy(u64 at)
{
	struct area area;

	return area_tree_from(&program_space.tree, at, &area) && area.start <= at &&
	       area.flags & AREA_BUSY;
}

/* The mover has made the area busy, and waits for this CPU's flush, when the end begins. */
TEST(program_huge, a_page_that_moves_has_moved_when_the_program_ends)
{
	const cpu_t other = cpus_find_other();
	struct late_move m;
	irq_flags_t flags;

	SKIP_ON_ONE_CPU();
	REQUIRE(map_small(SIZE) && put(AT, 1) == 0);
	movable_announce(&program_space);
	m = (struct late_move){.from = pfn_to_page(frame_at(AT)),
			       .to = page_alloc(0, USE_MOVABLE, 0, NODE_NONE)};
	REQUIRE(m.to && page_get_movable(m.from));
	flags = irq_save();
	EXPECT_EQ(work_start(other, move_late, &m), 0);
	while (!is_busy(AT))
		cpu_relax();
	program_box_end();
	irq_restore(flags);
	work_wait(other, 0);
	REQUIRE(program_box_begin());
	EXPECT_EQ(m.result, 0);
	page_put(m.from); /* the holder's reference, handed over */
	page_put(m.from);
}

struct pair {
	cpu_t pins; /* this CPU; one of the others is the mover */
	u32 others, pinned, done;
};

static void pin_or_take(void *arg)
{
	struct pair *pair = arg;
	const bool moves = cpu_id() != pair->pins && atomic_fetch_add(&pair->others, 1) == 0;
	struct area area;

	if (cpu_id() == pair->pins && space_pin(&program_space, AT, PT_PAGE, &area)) {
		atomic_fetch_add(&pair->pinned, 1);
		for (unsigned i = 0; i < 1000 && !atomic_load_relaxed(&pair->done); i++)
			cpu_relax();
		atomic_fetch_sub(&pair->pinned, 1);
		space_unpin(&program_space);
	}
	if (moves && space_try_take(&program_space, AT, AT + PAGE_SIZE, &area)) {
		for (unsigned i = 0; i < 10; i++) {
			EXPECT_EQ(atomic_load_relaxed(&pair->pinned), 0);
			cpu_relax();
		}
		space_put_back(&program_space, &area);
	}
	if (moves)
		atomic_store_relaxed(&pair->done, 1);
}

/* Either the pin stops the mover, or the CPU that pins waits for the busy area. */
TEST(program_huge, a_page_that_is_pinned_is_not_taken_by_a_mover)
{
	struct pair pair = {.pins = cpu_id()};

	REQUIRE(map_small(PAGE_SIZE));
	cpus_run_together(pin_or_take, &pair);
}

struct movers {
	const struct page_mover *mover;
	struct page *nowhere; /* mapped at no address */
	u32 roles, moved;
};

/* One CPU announces; the others try to move a page that the program does not have. */
static void announce_or_move(void *arg)
{
	struct movers *m = arg;

	if (atomic_fetch_add(&m->roles, 1) == 0)
		movable_announce(&program_space);
	else if (m->mover->move(m->nowhere, m->nowhere) == 0)
		atomic_fetch_add(&m->moved, 1);
}

/* The end waits for as many movers as have begun. */
TEST(program_huge, movers_that_begin_while_pages_are_announced_are_counted)
{
	struct movers m = {.nowhere = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE)};

	REQUIRE(m.nowhere && map_small(PAGE_SIZE) && put(AT, 1) == 0);
	m.nowhere->private[PAGE_VIRT] = 0;
	movable_announce(&program_space);
	m.mover = pfn_to_page(frame_at(AT))->mover;
	cpus_run_together(announce_or_move, &m);
	EXPECT_EQ(m.moved, 0);
	movable_end(&program_space);
	page_free(m.nowhere);
}

/* ---- an object that is gone ---- */

static struct page *some_page(struct vm_object *object, u64 index, int *err)
{
	*err = -ENOMEM;
	return page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
}

static void wipe(struct vm_object *object)
{
	memset(object, 0, sizeof(*object));
}

/* A CPU remembers the area that it found last, and has no reference to its object. */
TEST(program_huge, the_object_of_an_area_that_is_gone_is_not_looked_at)
{
	static const struct vm_object_ops ops = {.page = some_page, .release = wipe};
	struct vm_object object = {.ops = &ops, .refs = 1};
	struct area area = {.start = AT,
			    .end = AT + PAGE_SIZE,
			    .object = &object,
			    .flags = AREA_SHARED,
			    .rights = USER_RIGHT_READ};

	EXPECT_EQ(mapping_make(&program_space, &area, MAPPING_FIXED), AT);
	EXPECT_EQ(space_touch(&program_space, AT, USER_READ), TOUCH_DONE);
	EXPECT_EQ(mapping_remove(&program_space, AT, AT + PAGE_SIZE), 0);
	EXPECT_EQ(space_touch(&program_space, AT, USER_READ), TOUCH_NO_AREA);
}

/* ---- many CPUs ---- */

static u64 piece_of(u32 role)
{
	return AT + (role % CPUS_TOGETHER) * KIB(64);
}

static void unmap_a_piece(void *roles)
{
	const u64 at = piece_of(atomic_fetch_add((u32 *)roles, 1));

	EXPECT_EQ(mapping_remove(&program_space, at, at + PAGE_SIZE), 0);
}

/* One of them cuts the page, and it is freed with the last piece. */
TEST(program_huge, several_cpus_unmap_parts_of_one_page)
{
	u32 roles = 0;

	test_option("program.thp", "always");
	EXPECT_EQ(map_at(AT, MIB(2), RW, FIXED), AT);
	EXPECT_EQ(put(AT, 1), 0);
	REQUIRE(level_at(AT) == PT_PMD);
	cpus_run_together(unmap_a_piece, &roles);
	while (roles > 0)
		EXPECT_EQ(level_at(piece_of(--roles)), PT_PGD);
	EXPECT_EQ(mapping_remove(&program_space, AT, AT + MIB(2)), 0);
	EXPECT_EQ(level_at(AT), PT_PGD);
}

/* Threads that write meanwhile lose nothing. */
struct writers {
	u32 stop, lost;
	u64 at[CPUS_TOGETHER];
};

static void write_on(void *arg)
{
	struct writers *w = arg;
	struct thread *thread = thread_record(cpu_id());

	for (u64 n = 1; thread && !atomic_load_acquire(&w->stop); n++) {
		const u64 at = AT + (cpu_id() % CPUS_TOGETHER) * 8 + n % 512 * PAGE_SIZE;
		const u64 was = get(at);

		if (put(at, was + 1) < 0 || get(at) != was + 1)
			atomic_fetch_add(&w->lost, 1);
	}
}

static void move_and_collapse(struct writers *w)
{
	for (unsigned i = 0; i < 60 && atomic_load_relaxed(&w->lost) == 0; i++) {
		movable_announce(&program_space);
		take_block_of(AT + i * 8 * PAGE_SIZE);
		if (i % 8 == 7)
			collapse(AT, MIB(2));
		if (i % 8 == 3) /* small again */
			program_call("mprotect", AT + MIB(1), PAGE_SIZE, RW | 4);
	}
}

static void move_or_write(void *arg)
{
	struct writers *w = arg;

	if (cpu_id() != 0) {
		write_on(w);
		return;
	}
	move_and_collapse(w);
	atomic_store_release(&w->stop, 1);
}

TEST(program_huge, writes_to_pages_that_move_are_not_lost)
{
	struct writers w = {.stop = 0};

	REQUIRE(map_small(MIB(4)));
	for (u64 at = AT; at < AT + MIB(2); at += PAGE_SIZE)
		put(at, 1);
	for (cpu_t cpu = 1; cpu < MIN(cpu_count, (cpu_t)CPUS_TOGETHER); cpu++)
		thread_record(cpu);
	cpus_run_together(move_or_write, &w);
	EXPECT_EQ(w.lost, 0);
}
