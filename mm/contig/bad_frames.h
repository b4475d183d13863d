/*
 * Bad frames: memory that is known to be faulty is kept out of use, one 4 KiB frame at a time, and
 * accounted as bad.
 *
 *   badram=START[+SIZE],...    at boot: reserved before anybody can have it
 *   page_mark_bad(pfn)         at run time: a memory test, a misused page
 *   mm_report_bad()            from any context: a machine check. Done as mm_mark_bad() by the next
 *                              CPU that allocates or frees pages
 *
 *   where the frame is    what is done                                                    result
 *   in the buddy          its block is made full and split around it                      bad now
 *   free in a pool        another page takes its page's place, or the pool becomes        bad now
 *                         smaller; if all its free pages are promised, it stays pending
 *   in use                its block is isolated, so that the frame can only come back     pending
 *                         to a list that is never given out; it is taken from there
 *                         after it was freed (bad_frames_withdraw())
 *   metadata              as in use, until metadata memory lets the block go,             pending
 *                         which may be never
 *
 * The struct page of a bad frame says PAGE_BAD | PAGE_RESERVED, and its block is never wholly free
 * again. The block therefore never merges and never becomes huge, bare or metadata memory, and its
 * section is never closed.
 *
 * Isolation: a pending frame holds the isolation of its block (of all 512 blocks of a 1 GiB page)
 * until it is withdrawn, and then hands it on to another pending frame of these blocks. A frame is
 * pending without an isolation if somebody else holds the isolation of its block, if its section is
 * opening or closing or could not be opened, or if its block belongs to several zones (RESERVED).
 * In these cases a frame in use may be given out once more before it is withdrawn. At most
 * BAD_FRAMES_MAX frames are noted or pending; further ones are refused, and reports of them lost.
 *
 * Source: Linux documentation, "hwpoison", 2009-09; memtest86+ and GRUB for the option's purpose.
 */
#pragma once

#include "mm/memmap/zone.h"

/* page_mark_bad() for any struct mm. */
int mm_mark_bad(struct mm *mm, pfn_t pfn);

/* Take noted frames, and pending ones that were freed meanwhile, out of use. No lock held. */
void bad_frames_withdraw(struct mm *mm);

/* Is one of these frames pending, or noted? Racy; any context. */
bool bad_frames_pending(const struct mm *mm, pfn_t pfn, u64 frames);

/*
 * Called before every free while any frame is pending: withdraw pending frames that were freed
 * earlier, less often after an attempt in vain.
 */
void bad_frames_freed(struct mm *mm, pfn_t pfn, unsigned order);

/*
 * mm_report_bad() does the work of mm_mark_bad() later; any context, machine checks included, and
 * before mm_init().
 *
 * bad_frames_take_reported() does what was reported and logs it. It is called while WATCH_REPORTED
 * is set where pages are allocated or freed, and by code that needs the reports done. No lock held.
 */
void mm_report_bad(struct mm *mm, pfn_t pfn);
void bad_frames_take_reported(struct mm *mm);

/*
 * Parse "START[+SIZE],..." (numbers as on the command line, rounded outwards to pages, SIZE one
 * page if absent) and call take() for each range. Returns 0, or -EINVAL or -ERANGE at the first
 * malformed range; take() was called for the ranges before it.
 */
int bad_ram_parse(const char *text, void (*take)(phys_t start, phys_t end, void *ctx), void *ctx);

/*
 * Reserve the memory that badram= names, so that it has no user. Call after memblock_sort_out() and
 * before anything is allocated.
 */
void bad_ram_reserve(void);
