/*
 * Page owner: who holds which pages, for people who look for a leak (debug.page_owner=on; always on
 * while test cases run).
 *
 * The head's struct page records who allocated the page (code address and CPU) and when. After the
 * page is freed it keeps that record, with the code that freed it, until the page is handed out
 * again; a report of a double free or a write after free can therefore name both. When struct pages
 * are taken away (a block becomes bare), the record goes with them.
 *
 * Source: Linux documentation, "Page owner: tracking about who allocated each page", 2014-12.
 */
#pragma once

#include "mm/memmap/zone.h"

/* Pack a code address and a CPU into one word. Addresses are canonical, so 48 bits suffice. */
static inline u64 page_owner_pack(virt_t code, cpu_t cpu)
{
	return (u64)code << 16 | (u16)cpu;
}

static inline virt_t page_owner_code(u64 owner)
{
	return (virt_t)((s64)owner >> 16);
}

static inline cpu_t page_owner_cpu(u64 owner)
{
	return (cpu_t)(owner & 0xffff);
}

void page_owner_allocated(struct page *page, virt_t caller);

/* The text "foo+0x12 on CPU 3" for a packed owner, or "an unknown owner". */
void page_owner_text(u64 owner, char *buf, size_t size);

/*
 * Visit each page in use, except those given out at boot. visit() gets a copy of the struct page.
 * Reads every struct page in use. Other CPUs may run; the result is then an inexact snapshot. No
 * lock held.
 */
typedef void page_visit_fn(const struct page *page, pfn_t pfn, unsigned order, void *arg);
void page_owner_visit(struct mm *mm, page_visit_fn *visit, void *arg);

/*
 * Print a table of the holders of pages allocated since `since` (ns; 0: all), the largest first, at
 * most `lines` of them. Reads every struct page in use. Other CPUs may run; the table is then an
 * inexact snapshot. Returns the number of frames it accounts for. No lock held.
 */
u64 page_owner_summary(struct mm *mm, u64 since, unsigned lines);
