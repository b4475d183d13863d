/*
 * Accounting: every 4 KiB frame of RAM has one owner, and a walk proves that the counters agree.
 *
 *   free + unopened + per-CPU + pool free + in use + META + gated + in transit + bad + reserved = RAM
 */
#pragma once

#include "mm/mm.h"

struct pool;

/* Counters, cheap. Exact when all other CPUs are parked. `pools` ends with NULL, or is NULL. */
void mm_usage_read(struct mm *mm, const struct pool *const pools[], struct mm_usage *usage);

/*
 * Walk everything (free lists, rings, pools, blocks, struct pages, page tables, META maps), owner by owner, and compare with the counters.
 * Every difference is printed. True if all agree. Other CPUs must be parked or idle.
 */
bool mm_account(struct mm *mm, const struct pool *const pools[]);

/*
 * Parts of mm_account(), each with its own walk: say so if two counts differ; a zone's free lists;
 * its isolations; pools, their nodes and lists; page tables of the vmemmap, and what is only
 * counted while something goes on; META, by its maps and by the users of its frames; struct pages
 * of what is in use, and entries and promises of huge mappings; what is kept back in a zone. True
 * if all is right.
 */
struct zone;
bool account_agree(const char *what, const struct zone *zone, u64 counted, u64 walked);
bool account_said(const char *what, u64 counted, u64 walked);
bool account_lists(struct zone *zone);
bool account_isolations(struct zone *zone);
bool account_pools(struct mm *mm, const struct pool *const pools[]);
bool account_tables(const struct mm *mm);
bool account_meta(struct mm *mm);
bool account_refs(struct mm *mm);
bool account_watermarks(const struct mm *mm);

/*
 * More than mm_account() may ask for while a program runs: each page in use has one reference, as when nobody shares pages; its struct
 * page names the function that took it, as page_owner=on has it since the first page. What is not so is printed. Others parked or idle.
 */
bool account_unshared(struct mm *mm);
bool account_callers(struct mm *mm);

/* The machine's, for mm_kernel. */
extern const struct pool *const machine_pools[];
