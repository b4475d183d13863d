/*
 * Bad frames: memory that is known to be faulty is kept out of use, one 4 KiB frame at a time, and accounted as bad.
 *
 *   badram=START[+SIZE],...    at boot: reserved before anybody can have it
 *   page_mark_bad(pfn)         at run time: a memory test, a misused page
 *   mm_report_bad()            the same from any context: a machine check. Done by the next CPU that takes or gives back pages
 *
 *   in the buddy     its block is made full and split around it                                       -> bad now
 *   in use           its block is isolated, so that it can only come back to a list that is never
 *                    given out; taken from there when it was freed (bad_frames_settle())              -> pending
 *   META's           the same; until META lets the block go, which may be never, it uses the frame     -> pending
 *
 * A bad frame's struct page says PAGE_BAD | PAGE_RESERVED, its block is never wholly free again: it never merges, never
 * becomes huge, bare or META, and its section is never closed.
 *
 * Isolation: a pending frame holds the isolation of its block (of all 512 blocks of a 1 GiB page)
 * until it is settled, and hands it on to another pending frame of these blocks. Frames are pending
 * without one where others hold it, where the section opens or closes, and in blocks of several
 * zones (RESERVED): a frame in use there may be given out once more before it is settled.
 *
 * Source: Linux documentation, "hwpoison", 2009-09; memtest86+ and GRUB for the option's purpose.
 */
#pragma once

#include "mm/memblock.h"
#include "mm/zone.h"

/*
 * Parse "START[+SIZE],..." (numbers as on the command line, rounded outwards to pages, SIZE one page if absent) and call take()
 * for each range. 0, or -EINVAL or -ERANGE at the first that is malformed; those before it were taken.
 */
int bad_ram_parse(const char *text, void (*take)(phys_t start, phys_t end, void *ctx), void *ctx);

/* What badram= names is nobody's. After memblock_init(), before anything is allocated. */
void bad_ram_reserve(void);

/* page_mark_bad() of any struct mm. */
int mm_mark_bad(struct mm *mm, pfn_t pfn);

/* Is it out of use? Or pending? Any context. */
bool bad_frame_is_out(struct mm *mm, pfn_t pfn);
bool bad_frames_pending(const struct mm *mm, pfn_t pfn, u64 frames);

/*
 * As mm_mark_bad(), from any context, machine checks included; before mm_init() too. And: do what was reported; said on the log.
 * Called where pages are taken or given back, no lock held, while WATCH_REPORTED is set; and by who wants to see it done.
 */
void mm_report_bad(struct mm *mm, pfn_t pfn);
void bad_frames_take_reported(struct mm *mm);

/* Take out what was freed meanwhile. Returns how many frames are still pending. No lock held. */
unsigned bad_frames_settle(struct mm *mm);

/* The same, from every free while anything is pending, before it: what was freed earlier. Not so often when it was tried in vain. */
void bad_frames_freed(struct mm *mm, pfn_t pfn, unsigned order);
