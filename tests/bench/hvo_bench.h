/*
 * The S0 benchmark's parts: legs (hvo_bench.c), what is printed of them (hvo_print.c), single pages (hvo_pages.c).
 */
#pragma once

#include "kernel/shootdown.h"
#include "mm/pool.h"

enum { SOURCE_FRESH, SOURCE_RECYCLED, SOURCE_AGAIN, SOURCES, SOURCE_ALL = SOURCES };
extern const char *const hvo_source_names[];

struct leg {
	const struct hvo_mode *mode;
	const char *source;
	u64 pages; /* asked for */
	u64 done;
	u64 ns, debt_open_ns, debt_split_ns;
	u64 recycled;    /* pages made of blocks that had struct pages */
	u64 debt_blocks; /* that were split for debt_split_ns */
	struct shootdown_stats stats;
	u64 splits;
	s64 saved;
	struct lock_holds zone, pool; /* the longest of their locks; lock_holds=on */
};

struct reference {
	u64 grow_ps, shrink_ps; /* off's, per page */
};

extern u64 hvo_pages, hvo_runs, hvo_busy; /* pages=, runs=, busy= */
struct pool *hvo_pool(void);
const char *hvo_size_name(void);

/*
 * All sections closed, as many opened as `leg->pages` of its mode need, brought to the state `source`. False, said why and
 * counted as skipped, if this machine cannot. leg->pages may be lowered to what fits.
 */
bool hvo_leg_begin(struct leg *leg, unsigned source);

/* CPUs that are kept busy while something is measured (busy=). */
void hvo_busy_begin(void);
void hvo_busy_end(void);

/* hvo_print.c */
u64 hvo_ps_per_page(const struct leg *leg);
void hvo_print_head(const char *source);
void hvo_print_legs(const struct leg *grow, const struct leg *shrink, u64 wanted, const char *wanted_source,
		    const struct reference *off);
void hvo_record_leg(const struct leg *leg, const char *op, u64 run);

/* hvo_pages.c: hist=, csv=. False if pages were lost. */
bool hvo_pages_wanted(void);
bool hvo_pages_run(const struct hvo_mode *mode, unsigned source, u64 pages);
