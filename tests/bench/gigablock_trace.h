/*
 * The trace that ages memory, for bench=gigablock and for Linux (report/linux/age.c). Runs with the
 * same seed make the same requests.
 *
 *   long     unmovable, order 0 to 3, grows from nothing to 2% of memory while the trace runs; a
 *            page in 32 is replaced
 *   short    unmovable and reclaimable, order 0 to 2, between 0.5% and 2.5% in waves
 *   cache    movable, order 0 to 4, mostly 0; all that is left, up to 98% of memory; pages leave
 *            at random
 *   pool     the machine's pool of 2 MiB pages, between nothing and 10% in waves
 *
 * The waves have different periods, so every phase of one meets every phase of the other. The trace
 * runs on one CPU. Static functions, because the program for Linux is compiled from one file.
 */
#pragma once

#include "tests/kernel/random.h"

enum { LONG, SHORT, CACHE, KINDS };
enum { POOL_FRAMES = 512, POOL_STEP = 4096, SHORT_WAVES = 7, POOL_WAVES = 5 };

struct trace {
	u64 seed, memory;                      /* frames there are when it begins */
	u64 pages[KINDS], frames[KINDS], pool; /* in use; pages of the pool */
	u64 requests, failed;                  /* for pages; those that found no memory */
	u64 done;                              /* operations */
	/* Take a page: it is then the last of its kind. False if there is no memory. */
	bool (*take)(unsigned kind, unsigned order, bool reclaimable);
	/* Free page `at` of a kind, whose last one takes its place. Returns its frames. */
	u64 (*give)(unsigned kind, u64 at);
	u64 (*resize)(u64 pages); /* Grow or shrink the pool. Returns the pages it then has. */
};

static u64 trace_in_use(const struct trace *t)
{
	return t->frames[LONG] + t->frames[SHORT] + t->frames[CACHE] + t->pool * POOL_FRAMES;
}

static u64 trace_draw(struct trace *t)
{
	return next_random(&t->seed) >> 20;
}

static bool trace_add(struct trace *t, unsigned kind)
{
	static const u8 orders[KINDS][16] = {
		[LONG] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3},
		[SHORT] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2, 2},
		[CACHE] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 2, 3, 4}};
	const unsigned order = orders[kind][trace_draw(t) & 15];
	const bool reclaimable = kind == SHORT && (trace_draw(t) & 1);
	const bool taken = t->take(kind, order, reclaimable);

	t->requests++;
	t->failed += !taken;
	t->pages[kind] += taken;
	t->frames[kind] += taken ? 1ULL << order : 0;
	return taken;
}

static void trace_drop(struct trace *t, unsigned kind)
{
	if (t->pages[kind] == 0)
		return;
	t->frames[kind] -= t->give(kind, (next_random(&t->seed) >> 11) % t->pages[kind]);
	t->pages[kind]--;
}

/* A triangle between 0 and `high` with `waves` periods in the trace. */
static u64 trace_wave(u64 op, u64 ops, u64 waves, u64 high)
{
	const u64 at = op * waves % ops * 2;

	return high * (at < ops ? at : 2 * ops - at) / ops;
}

static void trace_make_room(struct trace *t, u64 frames)
{
	while (trace_in_use(t) + frames > t->memory / 100 * 98 && t->pages[CACHE] > 0)
		trace_drop(t, CACHE);
}

static void trace_step(struct trace *t, u64 op, u64 ops)
{
	const u64 choice = trace_draw(t) % 100;

	if (choice < 8) {
		if (trace_draw(t) % 32 == 0)
			trace_drop(t, LONG);
		if (t->frames[LONG] < t->memory / 50 * op / ops)
			trace_add(t, LONG);
	} else if (choice < 30) {
		const u64 want = t->memory / 200 + trace_wave(op, ops, SHORT_WAVES, t->memory / 50);

		if (t->frames[SHORT] > want || choice < 15)
			trace_drop(t, SHORT);
		if (t->frames[SHORT] < want)
			trace_add(t, SHORT);
	} else {
		trace_make_room(t, 64);
		if (choice < 50)
			trace_drop(t, CACHE);
		trace_add(t, CACHE);
	}
	if (op % POOL_STEP == 0) {
		const u64 want = trace_wave(op, ops, POOL_WAVES, t->memory / 10) / POOL_FRAMES;

		if (want > t->pool)
			trace_make_room(t, (want - t->pool) * POOL_FRAMES);
		t->pool = t->resize(want);
	}
}

/* The page cache fills memory, as in the first hours of a machine. False if it could not. */
static bool trace_fill(struct trace *t)
{
	while (trace_in_use(t) < t->memory / 100 * 90)
		if (!trace_add(t, CACHE))
			return false;
	return true;
}

/* Go on, of `ops` operations in all, until `until` of them are done. */
static void trace_go_on(struct trace *t, u64 until, u64 ops)
{
	while (t->done < until)
		trace_step(t, ++t->done, ops);
}

/* Free the pool and a random share of the page cache, in percent. */
static void trace_release(struct trace *t, u64 percent)
{
	const u64 keep = t->pages[CACHE] * (100 - percent) / 100;

	t->pool = t->resize(0);
	while (t->pages[CACHE] > keep)
		trace_drop(t, CACHE);
}
