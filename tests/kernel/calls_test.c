/*
 * Calls of mm.h and pools.h that a text names, each printed with its answer and the counts after
 * it. A reference that shares no code with mm/ judges them (tests/model/reference.py).
 *
 *	test.calls=g4,a3.1.1,t,m.2,W3.1,f1     a letter, then numbers; those left out are 0
 *
 *	a ORDER.USE.REQUEST.NODE   page_alloc()         g COUNT.NODE.MODE.GIGA  pool_grow_on()
 *	c ORDER.NODE               contig_alloc()       s COUNT.NODE.0.GIGA     pool_shrink_on()
 *	t PROMISED.NODE.MOVED.GIGA pool_page_take()     z COUNT.0.0.GIGA        pool_resize()
 *	f CALL                     frees its page       o COUNT.0.0.GIGA        sets overcommit
 *	m FLAGS.PAGES.SIZE         huge_map_with()      v COUNT.0.0.GIGA        pool_reserve()
 *	w CALL.PAGE                populates, touches   u COUNT.0.0.GIGA        pool_unreserve()
 *	r CALL.PAGE.PAGES          huge_release()       x CALL                  huge_unmap()
 *	p CALL.PAGE.PAGES.ACCESS   huge_protect()       d COUNT.0.MODE          pool_demote()
 *	e CALL.BLOCKS              contig_alloc_range() k CALL.BLOCKS           contig_declare_cma()
 *	b CALL.FRAME               page_mark_bad()
 *
 * The first number of f, w, r, p and x is that of the call, counted from 0, that made the page or
 * the mapping; e, k and b mean the memory that the call had last, whoever has it now. "void" is
 * printed if there is none. FRAME counts from its first frame on; a range of BLOCKS begins at a
 * multiple of its size. NODE is a node's number + 1, MODE that of a row of hvo_modes[] + 1; 0: none
 * is named. PAGE counts pages of 4 KiB from the start of the mapping, whose pages have 4 KiB, 2 MiB
 * or 1 GiB (SIZE 0, 1, 2). With 16 in REQUEST or MOVED the page may be moved; " move=FROM.TO" is
 * printed when it is. An idle CPU, if there is one, makes a call with a capital letter.
 *
 * The first and the last word of each frame (of one in each block, from 1 GiB on) tell the call
 * that owns it, and the frame's place. Only debug.page_owner=on has holders recorded, as elsewhere
 * all cases do, for then no call takes the fast paths.
 */
#include <arch/check.h>

#include "mm/contig/bad_frames.h"
#include "tests/kernel/huge_check.h"
#include "tests/kernel/mm_test.h"

enum { CALLS_MAX = 400, NUMBERS = 4, MAPPED_MAX = 4, MAY_MOVE = 16 };

/* Of a frame: its first and its last. */
static const u64 words[] = {0, PAGE_SIZE - sizeof(u64)};

static const char *text = "g2,a.1,A3,t,a5.1,m.2,w5.1,W5,f1,f3,x5,F2,s1";
OPTION_TEXT(test.calls, text, "the calls that mm.calls.* makes and prints, e.g. g2,t,f1");

static struct call {
	struct page *page; /* that it made, or NULL */
	char *map;         /* that it made, or NULL */
	pfn_t had;         /* the first frame that it had last; 0: none so far */
	u64 pages, unit;   /* of these, in 4 KiB: all, and the size of a page */
	u64 number[NUMBERS];
	const char *said; /* its place in the text */
	u32 length;
	char letter;
} calls[CALLS_MAX];
static struct pool *const pools[] = {&pool_2m, &pool_1g};
static u64 promised[ARRAY_LEN(pools)]; /* pages that calls had promised and did not take */

static volatile u64 *word_of(void *memory, u64 page, unsigned word)
{
	return word_at(memory, page * PAGE_SIZE + words[word]);
}

static u64 mark_of(const struct call *call, u64 page)
{
	return (u64)(call - calls + 1) << 32 | page;
}

/*
 * Words of the call's page that are not its marks or, with `marked` 0, not zero. With `mark` they
 * are its marks afterwards. Nobody may have written them yet.
 */
CHECK_READS_ANYTHING
static u64 others(const struct call *call, u64 marked, bool mark)
{
	const u64 step = call->pages < order_pages(GIGA_ORDER) ? 1 : BLOCK_FRAMES;
	u64 count = 0;

	for (u64 i = 0; i < call->pages; i += step)
		for (unsigned j = 0; j < ARRAY_LEN(words); j++) {
			volatile u64 *word = word_of(page_address(call->page), i, j);

			count += *word != marked * mark_of(call, i);
			if (mark)
				*word = mark_of(call, i);
		}
	return count;
}

/*
 * Calls are made one after another, so a page that moves is used by nobody. Of 1 GiB only the marks
 * go with it: copying all would take seconds.
 */
static int move(struct page *from, struct page *to)
{
	struct call *call = (struct call *)(virt_t)from->private[0];

	if (call->page != from)
		return -EBUSY;
	call->page = to;
	call->had = page_pfn(to);
	if (call->pages < order_pages(GIGA_ORDER))
		page_copy(to, from);
	else
		others(call, 0, true);
	to->private[0] = (virt_t)call;
	print(" move=%llu.%llu", page_pfn(from), page_pfn(to));
	return 0;
}

static const struct page_mover mover = {.name = "call", .move = move};

static void took(struct call *call, u64 pages, struct page *page)
{
	bool zero;

	call->page = page;
	call->pages = pages;
	if (!page)
		return;
	call->had = page_pfn(page);
	zero = others(call, 0, true) == 0;
	page->private[0] = (virt_t)call;
	if (strchr("at", call->letter) && (call->number[2] & MAY_MOVE))
		page_set_movable(page, &mover);
	print(" pfn=%llu order=%u node=%u type=%u refs=%u zero=%u", page_pfn(page),
	      page_order(page), mm_kernel.zone[page->zone].node,
	      block_type(block_of(&mm_kernel, page_pfn(page))), page->refcount, zero);
}

static void give(struct call *call)
{
	struct page *page = call->page;
	const u64 lost = others(call, 1, false);

	print(" lost=%llu", lost);
	EXPECT_EQ(lost, 0);
	call->page = NULL;
	if (call->letter == 't')
		pool_page_give(pools[call->number[3] > 0], page);
	else if (call->pages > order_pages(page_order(page)))
		contig_free_range(page_pfn(page), call->pages);
	else
		page_free(page);
}

/* A page of 4 KiB is torn if its words do not have the same mark, or that of another place. */
static void touch(struct call *call, const struct call *of, u64 page)
{
	char *large = of->map + ALIGN_DOWN(page, of->unit) * PAGE_SIZE;
	const int err = huge_populate(large, of->unit * PAGE_SIZE);
	enum pt_level level;
	phys_t phys;
	pte_t pte;
	u64 old;

	print(" err=%d", -err);
	if (err || !pgtable_translate(pgtable_root(), (virt_t)of->map + page * PAGE_SIZE, &phys,
				      &pte, &level))
		return;
	call->had = phys >> PAGE_SHIFT;
	old = *word_of(of->map, page, 0);
	print(" pfn=%llu leaf=%llu writable=%u old=%llu torn=%u", phys >> PAGE_SHIFT,
	      pt_level_size(level) >> PAGE_SHIFT, pte_writable(pte), old >> 32,
	      old != *word_of(of->map, page, 1) || (old && (u32)old != page));
	for (unsigned i = 0; i < ARRAY_LEN(words) && pte_writable(pte); i++)
		*word_of(of->map, page, i) = mark_of(call, page);
}

static char *map(u64 flags, const struct call *of)
{
	return huge_map_with(&(struct huge_request){
		.flags = (unsigned)flags & (HUGE_POOL | HUGE_RESERVE | HUGE_POPULATE),
		.page = of->unit * PAGE_SIZE,
		.size = of->pages * PAGE_SIZE});
}

/* Promises to mappings are none of the calls'. */
static u64 promise(unsigned giga, u64 count)
{
	const u64 done = pool_reserve(pools[giga], count) ? 0 : count;

	promised[giga] += done;
	return done;
}

static u64 take_back(unsigned giga, u64 most)
{
	const u64 count = MIN(most, promised[giga]);

	promised[giga] -= count;
	pool_unreserve(pools[giga], count);
	return count;
}

static struct page *take(unsigned giga, bool promised_one, node_t node)
{
	if (promised_one && promised[giga] == 0)
		return NULL;
	promised[giga] -= promised_one;
	return pool_page_take(pools[giga], node, promised_one ? POOL_RESERVED : POOL_ANY);
}

/* A call for certain frames. Errors are printed as positive numbers. */
static void want(struct call *call, const struct call *of)
{
	const u64 frames = MIN(MAX(call->number[1], 1), GIB_BLOCKS) * BLOCK_FRAMES;
	const pfn_t first = call->letter == 'b'
				    ? of->had + call->number[1] % MAX(of->pages, 1)
				    : ALIGN_DOWN(of->had, BLOCK_FRAMES) / frames * frames;
	const int err = call->letter == 'b'   ? page_mark_bad(first)
			: call->letter == 'k' ? contig_declare_cma(first, frames)
					      : contig_alloc_range(first, frames);

	print(" at=%llu err=%d", first, -err);
	if (call->letter == 'e' && !err)
		took(call, frames, pfn_to_page(first));
}

/* The call is made on what an earlier one made; false if there is nothing. */
static bool change(struct call *call, struct call *of)
{
	const u64 *n = call->number, page = of->map ? n[1] % of->pages : 0,
		  size = of->map ? MIN(MAX(n[2], 1), of->pages - page) * PAGE_SIZE : 0;
	char *at = of->map + page * PAGE_SIZE;

	if (strchr("bek", call->letter) ? !of->had
	    : call->letter == 'f'       ? !of->page
					: !of->map || !strchr("wrpx", call->letter))
		return false;
	switch (call->letter) {
	case 'b':
	case 'e':
	case 'k':
		want(call, of);
		break;
	case 'f':
		give(of);
		break;
	case 'w':
		touch(call, of, page);
		break;
	case 'r':
		print(" err=%d", -huge_release(at, size));
		break;
	case 'p':
		print(" err=%d", -huge_protect(at, size, n[3] ? HUGE_READ_ONLY : HUGE_READ_WRITE));
		break;
	default:
		huge_unmap(of->map);
		of->map = NULL;
	}
	return true;
}

static node_t node_named(u64 number)
{
	return number ? (node_t)(number - 1) : NODE_NONE;
}

static const struct hvo_mode *mode_named(u64 number)
{
	return number && number <= HVO_ON + 1 ? &hvo_modes[number - 1] : NULL;
}

static void make_call(void *arg)
{
	struct call *call = arg;
	const u64 *n = call->number;
	const node_t node = node_named(n[1]);
	const unsigned order = (unsigned)n[0] & 31, giga = n[3] > 0;
	struct pool *pool = pools[giga];

	print("  # call %u %.*s cpu=%u", (u32)(call - calls), (int)call->length, call->said,
	      cpu_id());
	switch (call->letter) {
	case 'a':
		took(call, order_pages(order),
		     page_alloc(order, (enum page_use)n[1], (unsigned)n[2] & 15, node_named(n[3])));
		break;
	case 'c':
		took(call, order_pages(order), contig_alloc(order, node));
		break;
	case 't':
		took(call, order_pages(pool->order), take(giga, n[0], node));
		break;
	case 'm':
		call->unit = order_pages(n[2] == 0 ? 0 : pools[n[2] > 1]->order);
		call->pages = MIN(MAX(n[1], 1), MAPPED_MAX) * call->unit;
		call->map = map(n[0], call);
		print(" at=%llu", (virt_t)call->map);
		break;
	case 'g':
		print(" n=%llu", pool_grow_on(pool, mode_named(n[2]), node, n[0]));
		break;
	case 's':
		print(" n=%llu", pool_shrink_on(pool, NULL, node, n[0]));
		break;
	case 'z':
		print(" n=%llu", pool_resize(pool, NULL, n[0]));
		break;
	case 'd':
		print(" n=%llu", pool_demote(&pool_1g, &pool_2m, mode_named(n[2]), n[0]));
		break;
	case 'o':
		pool_set_overcommit(pool, n[0]);
		break;
	case 'v':
		print(" n=%llu", promise(giga, n[0]));
		break;
	case 'u':
		print(" n=%llu", take_back(giga, n[0]));
		break;
	default:
		print("%s", change(call, &calls[MIN(n[0], CALLS_MAX - 1ULL)]) ? "" : " void");
	}
	print("\n");
}

/* Free pages of a pool, as FIRST+COUNT where COUNT of them lie side by side. */
static void print_heads(const struct pool *pool)
{
	const u32 step = order_blocks(pool->order),
		  end = (u32)((mm_kernel.first_gib + mm_kernel.gibs) * GIB_BLOCKS);
	u64 count = 0;

	print(" heads%u=", pool->order);
	for (u32 index = 0; index <= end; index += step) {
		const struct block_word word = block_look_any(&mm_kernel, index);

		if ((word.flags & BLOCK_POOL_FREE) && word.order == pool->order)
			count++;
		else if (count > 0) {
			print("%llu+%llu,", block_pfn(index - (u32)count * step), count);
			count = 0;
		}
	}
}

static void print_pool(struct pool *pool)
{
	const unsigned order = pool->order;
	struct pool_usage usage;

	pool_usage(pool, &usage);
	print(" pages%u=%llu there%u=%llu taken%u=%llu promised%u=%llu surplus%u=%llu "
	      "overcommit%u=%llu",
	      order, usage.pages, order, usage.free, order, usage.in_use, order, usage.reserved,
	      order, usage.surplus, order, usage.overcommit);
	print_heads(pool);
}

static void print_state(void)
{
	struct mm_usage u;

	mm_usage(&u);
	print("  # state g=%llu done=%llu ram=%llu free=%llu unopened=%llu per_cpu=%llu "
	      "pool_free=%llu in_use=%llu meta=%llu gated=%llu transit=%llu bad=%llu "
	      "reserved=%llu",
	      atomic_load_relaxed(&shootdown_generation), shootdown_done(), u.ram, u.free,
	      u.unopened, u.per_cpu, u.pool_free, u.in_use, u.meta, u.gated, u.transit, u.bad,
	      u.reserved);
	for (unsigned i = 0; i < ARRAY_LEN(pools); i++)
		print_pool(pools[i]);
	print("\n");
}

/* Read the call at *text. Returns whether another CPU is to make it. */
static bool read_call(struct call *call, const char **at)
{
	const bool other = **at < 'a';

	*call = (struct call){.said = *at, .letter = (char)(*(*at)++ | 0x20)};
	for (unsigned i = 0; i < NUMBERS && **at && **at != ','; i++) {
		if (**at != '.' && parse_u64(at, &call->number[i]) < 0)
			break;
		*at += **at == '.';
	}
	call->length = (u32)(*at - call->said);
	*at += **at == ',';
	return other;
}

TEST(mm_calls, what_calls_get_is_theirs_until_they_give_it_back)
{
	struct pool_usage before[ARRAY_LEN(pools)];
	const char *at = text;
	u32 made;

	atomic_store_relaxed(&mm_kernel.watch, page_watch_at_boot());
	wait_period_ms = 60000; /* reports, of CPUs that clear GiBs, would cut a line in two */
	for (unsigned i = 0; i < ARRAY_LEN(pools); i++) {
		pool_usage(pools[i], &before[i]);
		promised[i] = 0;
	}
	print_state();
	for (made = 0; *at && made < CALLS_MAX; made++) {
		struct call *call = &calls[made];

		if (!read_call(call, &at) || cpus_start_idle(make_call, call, 1) == 0)
			make_call(call);
		cpus_await_work();
		print_state();
	}
	while (made-- > 0) {
		if (calls[made].page)
			give(&calls[made]);
		if (calls[made].map)
			huge_unmap(calls[made].map);
	}
	for (unsigned i = 0; i < ARRAY_LEN(pools); i++) {
		take_back(i, promised[i]);
		pool_set_overcommit(pools[i], before[i].overcommit);
		pool_resize(pools[i], NULL, before[i].pages - before[i].surplus);
	}
	bad_frames_withdraw(&mm_kernel); /* without a report there is nothing to do */
	print("\n");
	print_state();
}
