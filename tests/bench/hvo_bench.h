/*
 * The benchmark of the HVO series (Kravetz 2023), in parts: legs (hvo_bench.c), output
 * (hvo_print.c).
 */
#pragma once

#include <arch/check.h>

#include "kernel/core/shootdown.h"
#include "mm/hugetlb/pool.h"

enum { SOURCE_FRESH, SOURCE_RECYCLED, SOURCE_AGAIN, SOURCES, SOURCE_ALL = SOURCES };
extern const char *const hvo_source_names[];

/* Allocating returned blocks as small pages: in all, and a block at a time. */
struct split_debt {
	u64 ns, blocks;
	u64 ns_first, ns_p50, ns_p99, ns_max; /* of the first 4096 blocks */
};

struct leg {
	const struct hvo_mode *mode;
	const char *source;
	u64 pages; /* asked for */
	u64 done;
	u64 ns, debt_open_ns;
	struct check_spent spent; /* part of `ns` that simulation of hardware took; hosted only */
	struct split_debt split;  /* the same in both legs */
	u64 use_flushes;          /* grow: rounds of the first use of a page afterwards */
	struct shootdown_stats stats;
	u64 splits;
	unsigned threads; /* CPUs that made or restored pages */
	s64 saved;
};

struct reference {
	u64 grow_ps, shrink_ps, demote_ps; /* time per page of mode off */
	u64 grow_net_ps, shrink_net_ps;
};

enum { WARM_ROUNDS = 16 };      /* pages that warm up a mode with a round for each page */
extern u64 hvo_pages, hvo_runs; /* pages=, runs= */
struct pool *hvo_pool(void);
const char *hvo_size_name(void);

/*
 * Close all sections, open as many as the leg's `pages` of its mode need, and bring them to the
 * state `source`. leg->pages may be lowered to the number that fits. Returns false if this machine
 * cannot do it; that is logged and counted as skipped.
 */
bool hvo_leg_begin(struct leg *leg, unsigned source);

/* hvo_print.c */
u64 hvo_ps_per_page(const struct leg *leg);
/*
 * Picoseconds a page without the time that simulating hardware took. Wrong if several CPUs did the
 * leg at once, because their time is a total.
 */
u64 hvo_net_ps_per_page(const struct leg *leg);
void hvo_print_head(const char *source);
void hvo_print_legs(const struct leg *grow, const struct leg *shrink, u64 wanted,
		    const char *wanted_source, const struct reference *off);
/* 1 GiB pages that became pages of 2 MiB. */
void hvo_print_demotion(const struct leg *demote, const struct reference *off);
void hvo_record_leg(const struct leg *leg, const char *op, u64 run);

/* hvo_split.c */
/* Before the shrink: take all memory that is left but for some. Returns a chain of pages. */
struct page *hvo_hold_rest(u64 pages);
/* After it: split `pages`, and free them and the chain. */
struct split_debt hvo_split_debt(u64 pages, struct page *held);
/* Opening, growing, shrinking and splitting: ps a page. */
u64 hvo_cost_ps(const struct leg *grow, const struct leg *shrink);
void hvo_print_costs_head(void);
/* off_ps is the cost of mode off; 0: not known. */
void hvo_print_costs(const struct leg *grow, const struct leg *shrink, u64 off_ps);
