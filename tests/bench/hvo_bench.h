/*
 * The benchmark of the HVO series (Kravetz 2023), in parts: legs (hvo_bench.c), output
 * (hvo_print.c).
 */
#pragma once

#include <arch/check.h>

#include "kernel/core/shootdown.h"
#include "mm/hugetlb/pool.h"
#include "tests/bench/work.h"

enum { SOURCE_FRESH, SOURCE_RECYCLED, SOURCE_AGAIN, SOURCES, SOURCE_ALL = SOURCES };
extern const char *const hvo_source_names[];

/* Allocating returned blocks as small pages: in all, and a block at a time. */
struct split_debt {
	u64 ns, blocks;
	struct work work;
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
	struct leg_work work;
	unsigned threads; /* CPUs that made or restored pages */
	s64 saved;
};

enum hvo_op { GROW, SHRINK, DEMOTE, OPS };

/* The time of a page, divided by that of mode off, in hundredths; 0 if off was not measured. */
struct hvo_ratio {
	u64 fastest, low, high; /* low, high: of one run */
	const struct leg *off;
};

enum { WARM_ROUNDS = 16 };      /* pages that warm up a mode with a round for each page */
extern u64 hvo_pages, hvo_runs; /* pages=, runs= */
struct pool *hvo_pool(void);
const char *hvo_size_name(void);

/*
 * Close all sections, open as many as the leg's `pages` of its mode need, and bring them to the
 * state `source`. leg->pages may be lowered to the number that fits. Returns false if this machine
 * cannot do it; that is logged and counted as skipped. Memory that is not in that state is logged
 * and counted as failed.
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
void hvo_print_leg(const struct leg *leg, enum hvo_op op, const struct hvo_ratio *ratio);
/* What differs from what was asked for: `wanted` pages, memory in the state `source`. */
void hvo_print_notes(const struct leg *grow, const struct leg *shrink, u64 wanted,
		     const char *source);
/* "0.25 (0.24 to 0.31)", or "-". */
void hvo_format_ratio(char *text, size_t size, const struct hvo_ratio *ratio);
void hvo_print_counts_head(void);
void hvo_print_counts(const struct leg *leg, enum hvo_op op);
void hvo_record_leg(const struct leg *leg, enum hvo_op op, u64 run);

/* hvo_split.c */
/* Before the shrink: take all memory that is left but for some. Returns a chain of pages. */
struct page *hvo_hold_rest(u64 pages);
/* After it: split `pages`, and free them and the chain. */
struct split_debt hvo_split_debt(u64 pages, struct page *held);
/* Opening, growing, shrinking and splitting: ps a page. */
u64 hvo_cost_ps(const struct leg *grow, const struct leg *shrink);
void hvo_print_costs_head(void);
void hvo_print_costs(const struct leg *grow, const struct leg *shrink,
		     const struct hvo_ratio *ratio);
