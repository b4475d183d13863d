/*
 * Random operations against a reference allocator (alloc_model.h). Every answer is compared, and
 * all invariants are walked now and then. Only one CPU works, so that its seed reproduces any
 * difference.
 *
 * Work comes in waves: a level is drawn, pages are taken or given back until the level is reached,
 * and then the next level is drawn. Between pages the pool is resized, rings are drained, gated
 * frames are released, sections are closed, huge blocks become bare, and full blocks become huge.
 *
 * A fuzzer (tests/fuzz/ops_fuzz.c) chooses from more operations: any mode and search, a pool of 1
 * GiB pages, CMA, bad frames, and failures.
 *
 * `make test WHAT=soak-alloc` runs 10^8 of these operations natively and walks everything after
 * every 10^5. Test runs do fewer.
 */

#include "tests/kernel/alloc_model.h"
#include "tests/kernel/max_order.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/random.h"

enum {
	HOLDERS = 4096,
	WALK_EVERY = 100000,
	WALK_EVERY_CHOSEN = 256,
	POOL_PAGES = 32,
	RUNS = GIB_BLOCKS + 2 * POOL_PAGES,
	BAD_MAX = 4
};
/* With many CPUs fewer operations run, because an allocation that finds no page asks every CPU. */
enum { OPERATIONS = 30000, OPERATIONS_OF_MANY = 10000, MANY_CPUS = 64 };

static u64 soak_operations;
u64 soak_seed = 1;
OPTION_U64(test.soak, soak_operations, 0, 1000000000000ULL,
	   "operations of each case in mm.random; 0: 30000, a third with many CPUs");
OPTION_U64(test.seed, soak_seed, 0, ~0ULL, "where the random numbers of mm.random begin");
OPTION_U64(bench.soak.seed, soak_seed, 0, ~0ULL, "where the random numbers begin");

struct hold {
	struct page *page;
	u32 references;
	u8 order;
};

struct soak {
	struct alloc_model model;
	struct arena *a;
	struct hold *hold; /* [HOLDERS]; the entries in use come first */
	struct page *memory;
	struct random_source random;
	u64 level, operations, found_none, walks;
	unsigned style, held;
	struct {
		u32 block;
		unsigned order;
	} run[RUNS]; /* the free pages of the pools */
	unsigned runs;

	/* Fields that a fuzzer chooses; without a fuzzer they keep their defaults. */
	const struct hvo_mode *mode; /* NULL: any */
	/* room in the model does not oblige the allocator to find it */
	bool excused;
	/* a frame in use was marked bad, and the model does not know when it will be withdrawn */
	bool pending;
	unsigned bad;
};

static u64 draw(struct soak *s, u64 below)
{
	return random_below(&s->random, below);
}

/* ---- pages ---- */

/*
 * The kind of page that a wave asks for: mostly small ones, all sizes alike, or mostly 2 MiB and
 * more.
 */
static unsigned draw_order(struct soak *s)
{
	switch (s->style) {
	case 0:
		return draw(s, 8) ? 0 : (unsigned)draw(s, 6);
	case 1:
		return (unsigned)draw(s, BLOCK_ORDER + 1);
	case 2:
		return draw(s, 8) ? BLOCK_ORDER : (unsigned)draw(s, BLOCK_ORDER);
	default:
		return draw(s, 3) ? (unsigned)draw(s, 4) : draw(s, 256) ? BLOCK_ORDER : GIGA_ORDER;
	}
}

static void next_wave(struct soak *s)
{
	const u64 kind = draw(s, 8);

	s->style = (unsigned)draw(s, 4);
	s->level = kind == 0 ? 0 : kind == 1 ? s->model.frames : draw(s, s->model.frames);
}

static u64 mark_of(const struct soak *s, unsigned i)
{
	return (u64)(virt_t)s->hold[i].page * 31 + s->hold[i].order;
}

static void check_new_page(struct soak *s, struct page *page, unsigned order, node_t node)
{
	const pfn_t pfn = page_to_pfn(page);

	if (!IS_ALIGNED(pfn, order_pages(order)) || page_order(page) != order ||
	    page->refcount != 1 || page_head(page) != page ||
	    (order && page_head(&page[order_pages(order) - 1]) != page))
		test_fail(__FILE__, __LINE__, "frame %llx is no compound page of order %u", pfn,
			  order);
	if (node != NODE_NONE && s->a->mm.zone[page->zone].node != node)
		test_fail(__FILE__, __LINE__, "frame %llx is not of node %u", pfn, node);
	if (block_look(block_of(&s->a->mm, pfn)).state == BLOCK_META)
		test_fail(__FILE__, __LINE__, "frame %llx is metadata memory's", pfn);
}

static void end_batches(struct soak *s)
{
	pcp_drain_all(&s->a->mm);
	for (node_t n = 0; n < s->a->mm.nodes; n++)
		meta_flush_gated(&s->a->mm.node[n]);
}

static void runs_change_hands(struct soak *s, u16 from, u16 to)
{
	for (unsigned i = 0; i < s->runs; i++)
		model_move(&s->model, block_pfn(s->run[i].block), order_pages(s->run[i].order),
			   from, to);
}

/*
 * The pools may take other blocks between pool_forget() and pool_learn(). The blocks that they have
 * afterwards were free before, or were their own.
 */
static void pool_forget(struct soak *s)
{
	runs_change_hands(s, MODEL_POOL, MODEL_FREE);
	s->runs = 0;
}

static void learn_free(struct soak *s, const struct pool *pool)
{
	const unsigned before = s->runs;

	for (node_t n = 0; n < s->a->mm.nodes; n++)
		for (u32 index = pool->node[n].free.head; index != BLOCK_NONE && s->runs < RUNS;
		     index = block_at(&s->a->mm, index)->next) {
			s->run[s->runs].block = index;
			s->run[s->runs++].order = pool->order;
		}
	if (s->runs - before != pool->free)
		test_fail(__FILE__, __LINE__, "a pool has %llu free pages, its lists %u",
			  pool->free, s->runs - before);
}

static void pool_learn(struct soak *s)
{
	learn_free(s, &s->a->pool);
	learn_free(s, &s->a->giga);
	runs_change_hands(s, MODEL_FREE, MODEL_POOL);
}

static u64 frames_in_pools(const struct soak *s)
{
	u64 frames = 0;

	for (unsigned i = 0; i < s->runs; i++)
		frames += order_pages(s->run[i].order);
	return frames;
}

/* Free pages of the pool may move elsewhere to make room for 1 GiB, and some may move in vain. */
static struct page *ask(struct soak *s, unsigned order, enum page_use use, unsigned request,
			node_t node)
{
	struct page *page = mm_page_alloc(&s->a->mm, order, use, request, node);

	if (order == GIGA_ORDER) {
		pool_forget(s);
		pool_learn(s);
	}
	return page;
}

/*
 * The answer "none" is right only if there is still no page after rings and gated frames were put
 * back.
 */
static struct page *ask_again(struct soak *s, unsigned order, enum page_use use, node_t node)
{
	struct page *page;

	s->found_none++;
	end_batches(s);
	page = ask(s, order, use, node == NODE_NONE ? 0 : PAGE_NODE, node);
	if (!page && !s->excused && !s->a->mm.fail.armed &&
	    model_has_room(&s->model, order, node)) {
		test_fail(__FILE__, __LINE__, "no page of order %u on node %d, but there is room",
			  order, (int)node);
		model_print(&s->model);
	}
	return page;
}

static void take_page(struct soak *s)
{
	const unsigned order = draw_order(s), use = (unsigned)draw(s, 3);
	const node_t node = draw(s, 4) ? NODE_NONE : (node_t)draw(s, s->a->mm.nodes);
	const unsigned request =
		(node == NODE_NONE ? 0 : PAGE_NODE) | (draw(s, 16) ? 0 : PAGE_NOFLUSH);
	struct page *page = ask(s, order, use, request, node);
	struct hold *hold = &s->hold[s->held];

	if (!page && !(request & PAGE_NOFLUSH)) {
		page = ask_again(s, order, use, node);
		if (!page) /* the wave turns, because asking again would teach nothing */
			s->level = draw(s, s->model.total + 1);
	}
	if (!page)
		return;
	check_new_page(s, page, order, node);
	if (!model_move(&s->model, page_to_pfn(page), order_pages(order), MODEL_FREE, 1))
		return;
	*hold = (struct hold){.page = page, .references = 1, .order = (u8)order};
	page->private[0] = mark_of(s, s->held);
	s->held++;
}

static void give_page(struct soak *s)
{
	const unsigned i = (unsigned)draw(s, s->held);
	struct hold *hold = &s->hold[i];

	if (hold->page->private[0] != mark_of(s, i) || hold->page->refcount != hold->references ||
	    page_order(hold->page) != hold->order)
		test_fail(__FILE__, __LINE__, "frame %llx changed while it was held",
			  page_to_pfn(hold->page));
	atomic_fetch_sub(&hold->page->refcount, hold->references - 1);
	if (!model_move(&s->model, page_to_pfn(hold->page), order_pages(hold->order), 1,
			MODEL_FREE))
		return;
	mm_page_free(&s->a->mm, hold->page);
	*hold = s->hold[--s->held];
}

/* Take a reference: a tail must refuse it, and a head must count it. */
static void refer_to_page(struct soak *s)
{
	struct hold *hold = &s->hold[draw(s, s->held)];
	const u64 which = draw(s, order_pages(hold->order));

	if (page_try_get(&hold->page[which]) != (which == 0))
		test_fail(__FILE__, __LINE__, "a reference to page %llu of %llu", which,
			  order_pages(hold->order));
	hold->references += which == 0;
}

/* ---- operations other than on pages ---- */

static u64 hvo_mode_count(void)
{
	u64 count = 0;

	while (hvo_modes[count].name)
		count++;
	return count;
}

static void resize_pool(struct soak *s)
{
	pool_forget(s);
	pool_resize(&s->a->pool, s->mode ? s->mode : &hvo_modes[draw(s, hvo_mode_count())],
		    draw(s, POOL_PAGES));
	pool_learn(s);
}

/*
 * Take a range of whole blocks and give it back at once. The range lies in the real memory, because
 * phantom memory cannot be written to.
 */
static void borrow_range(struct soak *s)
{
	struct arena *a = s->a;
	const u64 blocks = s->model.real_frames / BLOCK_FRAMES, first = draw(s, blocks);
	const u64 frames = (1 + draw(s, MIN(blocks - first, 4))) * BLOCK_FRAMES;
	const pfn_t pfn = (a->start >> PAGE_SHIFT) + first * BLOCK_FRAMES;

	pool_forget(s); /* the pool's pages in the range move elsewhere */
	if (mm_contig_alloc_range(&a->mm, pfn, frames) == 0) {
		if (model_move(&s->model, pfn, frames, MODEL_FREE, 1))
			model_move(&s->model, pfn, frames, 1, MODEL_FREE);
		mm_contig_free_range(&a->mm, pfn, frames);
	}
	pool_learn(s);
}

/* ---- operations that only a fuzzer chooses ---- */

static void resize_giga(struct soak *s)
{
	if (s->a->options.phantom == 0)
		return;
	pool_forget(s);
	if (draw(s, 4))
		pool_resize(&s->a->giga, hvo_on(), draw(s, 2));
	else if (s->a->pool.pages <= 2 * POOL_PAGES)
		pool_demote(&s->a->giga, &s->a->pool, hvo_on(), 1);
	pool_learn(s);
}

/*
 * Set a block aside for movable pages (CMA). The pages that this test holds have no mover, so the
 * call is refused where they lie.
 */
static void declare_cma(struct soak *s)
{
	const u64 blocks = s->model.real_frames / BLOCK_FRAMES;
	const pfn_t pfn = (s->a->start >> PAGE_SHIFT) + draw(s, blocks) * BLOCK_FRAMES;

	pool_forget(s);
	s->excused |= mm_contig_declare_cma(&s->a->mm, pfn, BLOCK_FRAMES) == 0;
	pool_learn(s);
}

static void mark_bad(struct soak *s)
{
	const pfn_t pfn = (s->a->start >> PAGE_SHIFT) + draw(s, s->model.real_frames);
	int err;

	if (s->bad == BAD_MAX || !model_is_free(&s->model, pfn) ||
	    block_look(block_of(&s->a->mm, pfn)).state == BLOCK_META)
		return;
	pool_forget(s);
	err = mm_mark_bad(&s->a->mm, pfn);
	s->pending |= err == -EBUSY;
	s->excused |= err == -EBUSY;
	s->bad++;
	if (err == 0)
		model_lose(&s->model, pfn);
	pool_learn(s);
}

static void do_something_else(struct soak *s)
{
	struct mm *mm = &s->a->mm;

	switch (draw(s, 16)) {
	case 0:
		end_batches(s);
		break;
	case 1:
		meta_end_batch(&mm->node[0]);
		break;
	case 2:
		hvo_bare_free_huge(&mm->zone[draw(s, mm->zones)], draw(s, 8));
		break;
	case 3:
		hvo_huge_free_full(&mm->zone[draw(s, mm->zones)], draw(s, 8));
		break;
	case 4:
		if (draw(s, 8) == 0)
			buddy_set_max_order(mm, BLOCK_ORDER + (unsigned)draw(s, 2) *
								      (GIGA_ORDER - BLOCK_ORDER));
		break;
	case 5:
		if (draw(s, 16) == 0)
			sections_close_all(mm);
		break;
	case 6:
		resize_pool(s);
		break;
	case 7:
		borrow_range(s);
		break;
	case 8:
		if (s->random.data)
			resize_giga(s);
		break;
	case 9:
		if (s->random.data)
			declare_cma(s);
		break;
	case 10:
		if (s->random.data)
			mark_bad(s);
		break;
	default:
		if (s->held)
			refer_to_page(s);
	}
}

static void one_operation(struct soak *s)
{
	if (draw(s, s->random.data ? 16 : 512) == 0) { /* a fuzzer's inputs are short */
		do_something_else(s);
		return;
	}
	if (s->held == HOLDERS || (s->model.total >= s->level && s->held)) {
		if (s->held == HOLDERS && s->model.total < s->level)
			next_wave(s);
		if (draw(s, 4))
			give_page(s);
		else if (s->held < HOLDERS)
			take_page(s);
	} else if (draw(s, 4) || !s->held) {
		take_page(s);
	} else {
		give_page(s);
	}
	if (s->model.total <= s->level + s->level / 16 &&
	    s->model.total + s->level / 16 >= s->level && draw(s, 64) == 0)
		next_wave(s);
}

/*
 * For a fuzzer, one pass of some site may fail during the operation. None fails if the operation
 * passes the site less often.
 */
static void operate(struct soak *s)
{
	const bool fails = s->random.data && draw(s, 16) == 0;

	if (fails)
		fail_arm(&s->a->mm.fail, (enum fail_site)draw(s, FAIL_ANY + 1), 1 + (u32)draw(s, 8),
			 FAIL_ONCE);
	one_operation(s);
	if (fails)
		fail_disarm(&s->a->mm.fail);
}

/* ---- checking all invariants ---- */

static void walk(struct soak *s)
{
	const struct mm_usage usage = arena_usage(s->a);

	s->walks++;
	EXPECT_EQ(usage.in_use, s->model.total + arena_zone(s->a, 0)->boot);
	EXPECT_EQ(usage.pool_free, frames_in_pools(s));
	EXPECT(arena_accounted(s->a)); /* with pages on the rings */
	if (draw(s, 2) == 0)
		return;
	pcp_drain_all(&s->a->mm);
	EXPECT(s->pending || model_agrees(&s->model));
}

static void work(struct soak *s)
{
	const u64 usual = cpu_count > MANY_CPUS ? OPERATIONS_OF_MANY : OPERATIONS;
	const u64 operations = s->random.data ? ~0ULL : soak_operations ? soak_operations : usual;
	const u64 every =
		s->random.data ? WALK_EVERY_CHOSEN : MIN(WALK_EVERY, MAX(operations / 4, 1));

	next_wave(s);
	for (s->operations = 1;
	     s->operations <= operations && !test_failed() && !random_is_used_up(&s->random);
	     s->operations++) {
		operate(s);
		if (s->operations % every == 0)
			walk(s);
		if (s->operations % 10000000 == 0)
			print("  # %llu operations, %llu walks, %llu times none, %u pages held\n",
			      s->operations, s->walks, s->found_none, s->held);
	}
	if (test_failed())
		test_fail(__FILE__, __LINE__, "operation %llu from seed %llu", s->operations,
			  soak_seed);
}

static void give_everything(struct soak *s)
{
	s->level = 0;
	while (s->held && !test_failed())
		give_page(s);
	pool_forget(s);
	pool_resize(&s->a->giga, hvo_on(), 0);
	pool_resize(&s->a->pool, hvo_on(), 0);
	end_batches(s);
	EXPECT_EQ(s->model.total, 0);
	EXPECT_EQ(arena_usage(s->a).in_use, arena_zone(s->a, 0)->boot);
	EXPECT(s->pending || model_agrees(&s->model));
	EXPECT(arena_accounted(s->a));
}

static void soak(struct arena *a, struct random_source random, const struct hvo_mode *mode)
{
	static struct soak s;
	unsigned order = 0;

	if (!a)
		return;
	s = (struct soak){.a = a, .random = random, .mode = mode, .excused = !mode};
	while (PAGE_SIZE << order < HOLDERS * sizeof(*s.hold))
		order++;
	s.memory = page_alloc(order, USE_UNMOVABLE, 0, NODE_NONE);
	if (!s.memory)
		/* The list of held pages needs this memory. */
		test_skip("needs 1 MiB of free memory in one piece");
	if (s.memory && model_make(&s.model, a)) {
		s.hold = page_address(s.memory);
		work(&s);
		give_everything(&s);
		if (!random.data)
			print("  # %llu operations, %llu walks, %llu times there was none\n",
			      s.operations - 1, s.walks, s.found_none);
		model_drop(&s.model);
	}
	if (s.memory)
		page_free(s.memory);
	arena_return(a);
}

static struct random_source seeded(void)
{
	return (struct random_source){.state = soak_seed * 2 + 0x9e3779b97f4a7c15ULL};
}

/*
 * The first byte chooses a search and an arena. One arena has real memory, where a mode may need
 * mapped sections. The other has a phantom GiB, where no section is mapped.
 */
void random_allocations(const u8 *data, size_t len)
{
	struct option_saved saved;
	char search[32];

	if (len < 2)
		return;
	if (!option_choice(option_find("contig"), data[0] >> 2, search, sizeof(search)))
		option_choice(option_find("contig"), 0, search, sizeof(search));
	option_set_for_now(option_find("contig"), search, &saved);
	if (data[0] % 4 == 0)
		soak(arena_borrow(MIB(256)),
		     (struct random_source){.data = data + 1, .len = len - 1}, NULL);
	else
		soak(arena_usual(), (struct random_source){.data = data + 1, .len = len - 1},
		     hvo_on());
	option_put_back(&saved, 1);
}

/*
 * Gigabytes are split, merged and converted. The little real memory of node 0 must hold all struct
 * pages.
 */
TEST(mm_random, gigabytes_agree_with_the_model)
{
	soak(arena_borrow(MIB(16), .phantom = GIB(2)), seeded(), hvo_on());
}

/*
 * An arena of two nodes that share a block, with holes, firmware ranges, boot pages, and an end in
 * the middle of a block.
 */
TEST(mm_random, an_arena_of_odd_sizes_and_holes_agrees_with_the_model)
{
	soak(arena_borrow(MIB(32), .nodes = 2, .skew = KIB(700), .short_by = KIB(300),
			  .hole = {{MIB(5) + KIB(12), KIB(36)},
				   {MIB(8), MIB(2)},
				   {MIB(25) + KIB(4), MIB(1)}},
			  .firmware = {{MIB(5) + KIB(48), KIB(8)}, {MIB(13), KIB(4)}},
			  .boot = {{MIB(11) + KIB(40), KIB(16)}}),
	     seeded(), hvo_on());
}
