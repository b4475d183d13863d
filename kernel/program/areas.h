/*
 * The areas of a program: what is mapped where, and how calls change it while other threads touch
 * the memory.
 *
 * Two words decide every race:
 *
 *   BUSY   A flag of an area. The call that set it alone may change the area, its page-table
 *          entries and its page tables, until it clears the flag or removes the area. A touch that
 *          meets a busy area waits.
 *   pin    A word of each thread: the page that it brings or copies at this moment. The thread
 *          writes its pin, executes a fence, and then looks for the area.
 *
 * A call sets BUSY, executes a fence, and waits until no thread's pin lies in the range. This is
 * the store-buffering pattern: either the thread sees BUSY, or the call sees the pin. From then on
 * nobody but the call uses entries of the range, so it needs no lock while it changes them, starts
 * its one round, and frees pages. `lock` is held for steps that take no longer than a change of the
 * tree. A pin also keeps the file of the area, whose reference is dropped only after that wait.
 *
 * Areas and claims lie where area_is_possible() says. A hull has no part of the hole, whose borders
 * are those of entries of the root table. A hull extends at most up to these.
 *
 * Neighbours with equal attributes become one area as soon as neither is busy. If they show a file,
 * it must be the same, and the higher one must go on where the lower one ends.
 */
#pragma once

#include <arch/pgtable.h>
#include <arch/user.h>

#include "kernel/core/lock.h"
#include "kernel/lib/types.h"
#include "kernel/program/area_tree.h"

struct thread;

struct areas {
	struct spinlock lock;
	struct area_tree tree;
	u64 bytes; /* in areas, busy ones included; changed under the lock */
	u64 top;   /* areas_place() chooses addresses below this */
	/*
	 * Between full_top and top no full_size bytes are free in one piece. Without this, each
	 * new mapping would look at all areas above it.
	 */
	u64 full_top, full_size;
};

void areas_init(struct areas *areas, u64 top);

/*
 * Forget all areas, which takes no memory; *hull receives all addresses, for their pages and
 * tables. No thread is left, and no page is being moved (movable_end()). Context: ordinary.
 */
struct hull;
void areas_forget(struct areas *areas, struct hull *hull);

/* Free the nodes. No area is left, and no thread. Context: ordinary. */
void areas_free(struct areas *areas);

/* ---- touching ---- */

/*
 * Pin the page of `level` that contains `addr`, and find its area. A busy area is waited for.
 * Returns false, with no pin, if there is no area. pin_drop() ends the pin. A thread has one pin at
 * a time. Context: ordinary.
 */
bool areas_pin(struct areas *areas, struct thread *self, u64 addr, enum pt_level level,
	       struct area *area);
/*
 * Pin the 4 KiB page of `addr` if it lies in an area that is not busy, and copy the area. Waits for
 * nothing. Returns false, with no pin, otherwise. For reports and holders of a lock.
 */
bool areas_try_pin(struct areas *areas, struct thread *self, u64 addr, struct area *area);
void pin_page(struct thread *self, u64 addr, enum pt_level level);
void pin_drop(struct thread *self);

/* ---- making areas ---- */

/* Is all of [start, end) the program's: inside [USER_START, USER_END) and outside the hole? */
static inline bool area_is_possible(u64 start, u64 end)
{
	return start >= USER_START && start < end && end <= USER_END &&
	       (end <= USER_HOLE_START || start >= USER_HOLE_END);
}

/*
 * Choose addresses for area->end - area->start bytes, aligned to `align`, and insert the area
 * there: at area->start if the range is possible and free, else as high as possible. Returns the
 * start, or -ENOMEM. The area keeps the caller's reference to its file.
 */
s64 areas_place(struct areas *areas, const struct area *area, u64 align);

/*
 * Insert the area where it is, if that is simple. Returns 0; -ENOMEM, also if the range is not
 * possible; or -EEXIST if the range is not free, even if only for as long as a claim lasts;
 * areas_claim() waits for that.
 */
int areas_add(struct areas *areas, const struct area *area);

/*
 * Make [start, end) one busy area without contents, so that the range is the caller's. Areas that
 * were there are removed (their pages stay mapped), and busy ones are waited for. No thread has a
 * pin in the range afterwards.
 *
 *   0         success
 *   -EEXIST   AREAS_MUST_BE_FREE, and there is an area; nothing was changed
 *   -EINVAL   the range would cut a page of a pool
 *   -ENOMEM   no memory, or the range is not possible; here and for -EINVAL *hull is the part that
 *             was claimed until then. The caller unmaps and releases it, unless it is empty
 *
 * The claim extends over the free space around the range as far as page tables reach that then
 * serve nobody: *hull receives it. The caller may free those tables.
 *
 * areas_release() gives the range back. areas_settle() puts an area in place of it, which lies
 * inside the range; the rest is given back.
 */
enum areas_claim { AREAS_REPLACE, AREAS_MUST_BE_FREE };
struct hull {
	u64 start, end;
	u64 promised[3]; /* pages that removed areas had promised by pools, by level */
};
int areas_claim(struct areas *areas, u64 start, u64 end, enum areas_claim how, struct hull *hull);
void areas_release(struct areas *areas, const struct hull *hull);
void areas_settle(struct areas *areas, const struct hull *hull, const struct area *area);

/* ---- changing areas ---- */

/*
 * Make the first area that overlaps [*at, end) busy, cut to that range, and copy it (without BUSY).
 * Returns 1 and moves *at to its end; 0 if there is no more; -EINVAL if that would cut a page of a
 * pool; -ENOMEM. No thread has a pin in it afterwards. areas_put_back() stores it with other
 * attributes and clears BUSY. areas_claim_taken() makes a claim of it (0 or -ENOMEM) and leaves the
 * reference to its file to the caller.
 *
 * A call that keeps one range busy may wait only for ranges above it. Calls that wait for each
 * other would be a circle.
 */
int areas_take(struct areas *areas, u64 *at, u64 end, struct area *area);
void areas_put_back(struct areas *areas, const struct area *area);
int areas_claim_taken(struct areas *areas, const struct area *area, struct hull *hull);

/*
 * Make the area that contains all of [start, end) busy, whole, if that takes no waiting. False if
 * no area contains it, or if it is busy, or if a thread has a pin in the range, the calling one
 * included. Other ranges of the area may still be pinned. areas_put_back() ends it.
 */
bool areas_try_take(struct areas *areas, u64 start, u64 end, struct area *area);

/* The size of the area's pages, which no call may cut: more than 4 KiB where they are a pool's. */
u64 area_page_bytes(const struct area *area);

/* Is all of [start, end) covered by areas? */
bool areas_cover(const struct areas *areas, u64 start, u64 end);

/* Rights that an access needs. */
u8 area_rights_for(enum user_access access);
