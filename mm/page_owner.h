/*
 * Page owner: who holds which pages, for people who look for a leak (page_owner=on; always on while test cases run).
 *
 * The head's struct page says who allocated it (code address and CPU) and when. It keeps saying so after it was freed, and who did
 * that, until it is handed out again: that is how a double free or a write after free names both. Struct pages that
 * are taken away (a block that becomes bare) take the memory with them.
 *
 * Source: Linux documentation, "Page owner: tracking about who allocated each page", 2014-12.
 */
#pragma once

#include "mm/zone.h"

/* A code address and a CPU in one word: addresses are canonical, 48 bits say them. */
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
void page_owner_freed(struct page *page, virt_t caller);

/* "foo+0x12 on CPU 3" of a packed owner, or "nobody known". */
void page_owner_text(u64 owner, char *buf, size_t size);

/*
 * Each page in use, but those given out at boot: visit() gets a copy of its struct page. Reads every struct page in use: other CPUs
 * may run, then it is a snapshot with a blur. No lock held.
 */
typedef void page_visit_fn(const struct page *page, pfn_t pfn, unsigned order, void *arg);
void page_owner_visit(struct mm *mm, page_visit_fn *visit, void *arg);

/*
 * Table of who holds pages since `since` (ns; 0: all), the largest holders first, at most `lines` of them. Reads every struct page in
 * use: other CPUs may run, then it is a snapshot with a blur. Returns the frames that are accounted for in it. No lock held.
 */
u64 page_owner_summary(struct mm *mm, u64 since, unsigned lines);
