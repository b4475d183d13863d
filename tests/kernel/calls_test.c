/*
 * Calls of mm.h and pools.h that a text names, each printed with its answer and the counts after
 * it. A reference that shares no code with mm/ judges them (tests/model/reference.py).
 *
 *	test.calls=g4,a3.1.1,t,m.2,W3.1,f1     a letter, then numbers; those left out are 0
 *
 *	a ORDER.USE.REQUEST.NODE   page_alloc()         g COUNT.NODE.MODE   pool_grow_on()
 *	c ORDER.NODE               contig_alloc()       s COUNT.NODE        pool_shrink_on()
 *	t PROMISED.NODE            pool_page_take()     z COUNT             pool_resize()
 *	f CALL                     frees its page       o COUNT             pool_set_overcommit()
 *	m FLAGS.PAGES.LARGE        huge_map_with()      v COUNT             pool_reserve()
 *	w CALL.PAGE                populates, touches   u COUNT             pool_unreserve()
 *	r CALL.PAGE.PAGES          huge_release()       x CALL              huge_unmap()
 *	p CALL.PAGE.PAGES.ACCESS   huge_protect()
 *
 * The first number of f, w, r, p and x is that of the call, counted from 0, that made the page or
 * the mapping; "void" is printed if there is none. NODE is a node's number + 1, MODE that of a row
 * of hvo_modes[] + 1; 0: none is named. PAGE counts pages of 4 KiB from the start of the mapping.
 * An idle CPU, if there is one, makes a call with a capital letter.
 *
 * The first and the last word of each frame tell the call that owns it, and the frame's place.
 * Only debug.page_owner=on has holders recorded, as elsewhere all cases do, for then no call takes
 * the fast paths.
 */
#include <arch/check.h>

#include "tests/kernel/huge_check.h"
#include "tests/kernel/mm_test.h"

enum { CALLS_MAX = 400, NUMBERS = 4, MAPPED_MAX = 4, WORDS = 2 };

static const char *text = "g2,a.1,A3,t,a5.1,m.2,w5.1,W5,f1,f3,x5,F2,s1";
OPTION_TEXT(test.calls, text, "the calls that mm.calls.* makes and prints, e.g. g2,t,f1");

static struct call {
	struct page *page; /* that it made, or NULL */
	char *map;         /* that it made, or NULL */
	u64 pages, unit;   /* of these, in 4 KiB: all, and the size of a page */
	u64 number[NUMBERS];
	const char *said; /* its place in the text */
	u32 length;
	char letter;
} calls[CALLS_MAX];
static u64 promised; /* pages that calls had promised and did not take */

static volatile u64 *word_of(void *memory, u64 word)
{
	return word_at(memory, word / WORDS * PAGE_SIZE + word % WORDS * (PAGE_SIZE - sizeof(u64)));
}

static u64 mark_of(const struct call *call, u64 word)
{
	return (u64)(call - calls + 1) << 32 | word / WORDS;
}

/* Are the first and the last word of each frame zero? Nobody may have written them yet. */
CHECK_READS_ANYTHING
static bool is_zero(const struct call *call)
{
	u64 old = 0;

	for (u64 i = 0; i < call->pages * WORDS; i++)
		old |= *word_of(page_address(call->page), i);
	return old == 0;
}

static void took(struct call *call, unsigned order, struct page *page)
{
	bool zero;

	call->page = page;
	call->pages = order_pages(order);
	if (!page)
		return;
	zero = is_zero(call);
	for (u64 i = 0; i < call->pages * WORDS; i++)
		*word_of(page_address(page), i) = mark_of(call, i);
	print(" pfn=%llu order=%u node=%u type=%u refs=%u zero=%u", page_pfn(page),
	      page_order(page), mm_kernel.zone[page->zone].node,
	      block_type(block_of(&mm_kernel, page_pfn(page))), page->refcount, zero);
}

static void give(struct call *call)
{
	struct page *page = call->page;
	u64 kept = 0;

	for (u64 i = 0; i < call->pages * WORDS; i++)
		kept += *word_of(page_address(page), i) == mark_of(call, i);
	EXPECT_EQ(kept, call->pages * WORDS);
	print(" lost=%llu", call->pages * WORDS - kept);
	call->page = NULL;
	if (call->letter == 't')
		pool_page_give(&pool_2m, page);
	else if (call->pages > BLOCK_FRAMES)
		contig_free_range(page_pfn(page), call->pages);
	else
		page_free(page);
}

/* A page of 4 KiB is torn if its words do not have the same mark, or that of another place. */
static void touch(const struct call *call, const struct call *of, u64 page)
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
	old = *word_of(of->map, page * WORDS);
	print(" pfn=%llu leaf=%llu writable=%u old=%llu torn=%u", phys >> PAGE_SHIFT,
	      pt_level_size(level) >> PAGE_SHIFT, pte_writable(pte), old >> 32,
	      old != *word_of(of->map, page * WORDS + 1) || (old && (u32)old != page));
	for (u64 i = page * WORDS; i < (page + 1) * WORDS && pte_writable(pte); i++)
		*word_of(of->map, i) = mark_of(call, i);
}

static char *map(u64 flags, const struct call *of)
{
	return huge_map_with(&(struct huge_request){
		.flags = (unsigned)flags & (HUGE_POOL | HUGE_RESERVE | HUGE_POPULATE),
		.page = of->unit * PAGE_SIZE,
		.size = of->pages * PAGE_SIZE});
}

/* Promises to mappings are none of the calls'. */
static u64 promise(u64 count)
{
	const u64 done = pool_reserve(&pool_2m, count) ? 0 : count;

	promised += done;
	return done;
}

static u64 take_back(u64 most)
{
	const u64 count = MIN(most, promised);

	promised -= count;
	pool_unreserve(&pool_2m, count);
	return count;
}

static struct page *take(bool promised_one, node_t node)
{
	if (promised_one && promised == 0)
		return NULL;
	promised -= promised_one;
	return pool_page_take(&pool_2m, node, promised_one ? POOL_RESERVED : POOL_ANY);
}

/* The call is made on what an earlier one made; false if there is nothing. */
static bool change(const struct call *call, struct call *of)
{
	const u64 *n = call->number, page = of->map ? n[1] % of->pages : 0,
		  size = of->map ? MIN(MAX(n[2], 1), of->pages - page) * PAGE_SIZE : 0;
	char *at = of->map + page * PAGE_SIZE;

	if (call->letter == 'f' ? !of->page : !of->map || !strchr("wrpx", call->letter))
		return false;
	switch (call->letter) {
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
	const unsigned order = (unsigned)n[0] & 31;

	print("  # call %u %.*s cpu=%u", (u32)(call - calls), (int)call->length, call->said,
	      cpu_id());
	switch (call->letter) {
	case 'a':
		took(call, order,
		     page_alloc(order, (enum page_use)n[1], (unsigned)n[2] & 15, node_named(n[3])));
		break;
	case 'c':
		took(call, order, contig_alloc(order, node));
		break;
	case 't':
		took(call, BLOCK_ORDER, take(n[0], node));
		break;
	case 'm':
		call->unit = n[2] ? BLOCK_FRAMES : 1;
		call->pages = MIN(MAX(n[1], 1), MAPPED_MAX) * call->unit;
		call->map = map(n[0], call);
		print(" at=%llu", (virt_t)call->map);
		break;
	case 'g':
		print(" n=%llu", pool_grow_on(&pool_2m, mode_named(n[2]), node, n[0]));
		break;
	case 's':
		print(" n=%llu", pool_shrink_on(&pool_2m, NULL, node, n[0]));
		break;
	case 'z':
		print(" n=%llu", pool_resize(&pool_2m, NULL, n[0]));
		break;
	case 'o':
		pool_set_overcommit(&pool_2m, n[0]);
		break;
	case 'v':
		print(" n=%llu", promise(n[0]));
		break;
	case 'u':
		print(" n=%llu", take_back(n[0]));
		break;
	default:
		print("%s", change(call, &calls[MIN(n[0], CALLS_MAX - 1ULL)]) ? "" : " void");
	}
	print("\n");
}

static void print_state(void)
{
	struct pool_usage pool;
	struct mm_usage u;

	mm_usage(&u);
	pool_usage(&pool_2m, &pool);
	print("  # state g=%llu done=%llu ram=%llu free=%llu unopened=%llu per_cpu=%llu "
	      "pool_free=%llu in_use=%llu meta=%llu gated=%llu transit=%llu bad=%llu "
	      "reserved=%llu pages=%llu there=%llu taken=%llu promised=%llu surplus=%llu "
	      "overcommit=%llu\n",
	      atomic_load_relaxed(&shootdown_generation), shootdown_done(), u.ram, u.free,
	      u.unopened, u.per_cpu, u.pool_free, u.in_use, u.meta, u.gated, u.transit, u.bad,
	      u.reserved, pool.pages, pool.free, pool.in_use, pool.reserved, pool.surplus,
	      pool.overcommit);
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
	struct pool_usage before;
	const char *at = text;
	u32 made;

	atomic_store_relaxed(&mm_kernel.watch, page_watch_at_boot());
	pool_usage(&pool_2m, &before);
	promised = 0;
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
	take_back(promised);
	pool_set_overcommit(&pool_2m, before.overcommit);
	pool_resize(&pool_2m, NULL, before.pages - before.surplus);
	print("\n");
	print_state();
}
