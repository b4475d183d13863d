/*
 * A space: what is mapped where in a part of the addresses, and how calls change it while other
 * CPUs touch the memory.
 *
 * Two words decide every race:
 *
 *   BUSY   A flag of an area. The call that set it alone may change the area, its page-table
 *          entries and its page tables, until it clears the flag or removes the area. A touch that
 *          meets a busy area waits.
 *   pin    A word of each CPU and space: the page that the CPU brings or copies at this moment. The
 *          CPU writes its pin, executes a fence, and then looks for the area.
 *
 * A call sets BUSY, executes a fence, and waits until no CPU's pin lies in the range. This is the
 * store-buffering pattern: either the CPU sees BUSY, or the call sees the pin. From then on nobody
 * but the call uses entries of the range, so it needs no lock while it changes them, starts its one
 * round, and frees pages. `lock` is held for steps that take no longer than a change of the tree. A
 * pin also keeps the object of the area, whose reference is dropped only after that wait.
 *
 * Areas and claims lie where space_has() says. A space has whole entries of the root table, so it
 * shares no other table with its neighbours. A hull extends at most up to its borders.
 *
 * Neighbours with equal attributes become one area as soon as neither is busy. If they show an
 * object, it must be the same, and the higher one must go on where the lower one ends.
 */
#pragma once

#include <arch/barrier.h>
#include <arch/pgtable.h>
#include <arch/user.h>

#include "kernel/core/lock.h"
#include "kernel/core/percpu.h"
#include "kernel/lib/types.h"
#include "mm/vm/area_tree.h"
#include "mm/vm/object.h"

/* What a CPU has of a space. Only the CPU itself writes it. */
struct space_cpu {
	/* The page it brings or copies: its address, and its level + 1 in the low bits. 0: none */
	__cacheline_aligned u64 pin;
	u64 leaves[3];               /* leaves that it brought less those that it took, by level */
	u64 brought[3];              /* pages that it brought, by level */
	struct memory_policy policy; /* for areas without one */
	struct area_found found;     /* space_pin() */
};

/* Which of the areas that could have 2 MiB pages get them: all, those with AREA_HUGE, none. */
enum space_huge { SPACE_HUGE_ALWAYS, SPACE_HUGE_ASKED, SPACE_HUGE_NEVER };

struct space_range {
	u64 start, end; /* its addresses */
	u64 top;        /* a program's: space_place() chooses addresses below this */
};

struct space {
	struct space_range range;
	u64 align; /* of areas for which space_place() chooses the addresses */
	bool user; /* entries are for ring 3, and not global */
	/* for areas with PT_PAGE: enum space_huge; read at each touch. NULL: none */
	const unsigned *huge;
	bool (*ended)(void);       /* must the work that this CPU does for its owner end? */
	bool (*interrupted)(void); /* or be cut short? */

	pte_t *root;           /* the root table, of which the space has some entries */
	struct space_cpu *cpu; /* by cpu_t */
	struct spinlock lock;
	struct area_tree tree;
	u64 bytes; /* in areas, busy ones included; changed under the lock */
	/*
	 * Between full_top and range.top no full_size bytes are free in one piece. Without this,
	 * each new mapping would look at all areas above it.
	 */
	u64 full_top, full_size;
	u64 next;          /* the kernel's spaces: where the next area begins, if there is room */
	u64 resident_most; /* pages_count.h */
	char *boot_nodes;  /* NODES_AT_BOOT pages, of which none is freed; NULL: it has none */
};

/*
 * Begin a space without areas; the caller has set the fields before `root`. `memory` points to
 * space_boot_bytes() of zeros, in whole pages, which the space keeps for ever. If it is NULL, the
 * space allocates what it needs, until space_free(). Returns 0 or -ENOMEM. Context: ordinary.
 */
u64 space_boot_bytes(void);
int space_init(struct space *space, void *memory);

/* Addresses may have the sign of an error, so results that are either are told apart by this. */
static inline bool space_failed(s64 result)
{
	return result < 0 && result >= -4095;
}

/*
 * Forget all areas, which takes no memory; *hull receives all addresses, for their pages and
 * tables. Nobody works in the space, and no page is being moved (movable_end()). Context: ordinary.
 */
struct hull;
void space_forget(struct space *space, struct hull *hull);

/* Free the nodes, and what CPUs have of the space. No area is left. Context: ordinary. */
void space_free(struct space *space);

/* ---- touching ---- */

/*
 * Pin the page of `level` that contains `addr`, and find its area. A busy area is waited for.
 * Returns false, with no pin, if there is no area. space_unpin() ends the pin. A CPU has one pin of
 * a space at a time. Context: ordinary.
 */
bool space_pin(struct space *space, u64 addr, enum pt_level level, struct area *area);
/*
 * Pin the 4 KiB page of `addr` if it lies in an area that is not busy, and copy the area. Waits for
 * nothing. Returns false, with no pin, otherwise. For reports and holders of a lock.
 */
bool space_try_pin(struct space *space, u64 addr, struct area *area);

/*
 * Copy the area of `addr`, or the first that ends above it, busy or not, without a pin afterwards.
 * False if there is none. Any context.
 */
bool space_look(struct space *space, u64 addr, struct area *area);
bool space_next(struct space *space, u64 addr, struct area *area);

/* Wait, holding nothing, until no busy area lies at `addr`. */
void space_wait_settled(struct space *space, u64 addr);

static inline struct space_cpu *space_here(const struct space *space)
{
	return &space->cpu[cpu_id()];
}

/* Where pages for the area come from when this CPU touches it. */
static inline struct memory_policy space_policy(const struct space *space, const struct area *area)
{
	return area->policy.how == POLICY_NEAR ? space_here(space)->policy : area->policy;
}

/* The first half of a pin. The tree must be looked at behind it. */
static inline void space_pin_only(struct space *space, u64 addr, enum pt_level level)
{
	atomic_store_relaxed(&space_here(space)->pin,
			     ALIGN_DOWN(addr, pt_level_size(level)) | (level + 1));
	fence_full(); /* pairs with wait_unpinned() */
}

static inline void space_unpin(struct space *space)
{
	atomic_store_release(&space_here(space)->pin, 0);
}

/* ---- making areas ---- */

/* Is all of [start, end) the space's? */
static inline bool space_has(const struct space *space, u64 start, u64 end)
{
	const struct space_range *range = &space->range;

	return start >= range->start && start < end && end <= range->end;
}

/*
 * Choose addresses for area->end - area->start bytes, aligned to `align`, and insert the area
 * there. In a program's space: at area->start if the range is possible and free, else as high as
 * possible. In the kernel's: in a circle, so that addresses are used again as late as possible.
 * Returns the start, or -ENOMEM. The area keeps the caller's reference to its object.
 */
s64 space_place(struct space *space, const struct area *area, u64 align);

/*
 * Insert the area where it is, if that is simple. Returns 0; -ENOMEM, also if the range is not
 * possible or there are too many areas; or -EEXIST if the range is not free, even if only for as
 * long as a claim lasts; space_claim() waits for that.
 */
int space_add(struct space *space, const struct area *area);

/*
 * Make [start, end) one busy area without contents, so that the range is the caller's. Areas that
 * were there are removed (their pages stay mapped), and busy ones are waited for. No CPU has a
 * pin in the range afterwards.
 *
 *   0         success
 *   -EEXIST   SPACE_MUST_BE_FREE, and there is an area; nothing was changed
 *   -EINVAL   the range would cut a page of a pool
 *   -ENOMEM   no memory, or the range is not possible; here and for -EINVAL *hull is the part that
 *             was claimed until then. The caller unmaps and releases it, unless it is empty
 *
 * The claim extends over the free space around the range as far as page tables reach that then
 * serve nobody: *hull receives it. The caller may free those tables.
 *
 * space_release() gives the range back. space_settle() puts an area in place of it, which lies
 * inside the range; the rest is given back.
 */
enum space_claim { SPACE_REPLACE, SPACE_MUST_BE_FREE };
struct hull {
	u64 start, end;
	u64 promised[3]; /* pages that removed areas had promised by pools, by level */
};
int space_claim(struct space *space, u64 start, u64 end, enum space_claim how, struct hull *hull);
void space_release(struct space *space, const struct hull *hull);
void space_settle(struct space *space, const struct hull *hull, const struct area *area);

/* ---- changing areas ---- */

/*
 * Make the first area that overlaps [*at, end) busy, cut to that range, and copy it (without BUSY).
 * Returns 1 and moves *at to its end; 0 if there is no more; -EINVAL if that would cut a page of a
 * pool; -ENOMEM. No CPU has a pin in it afterwards. space_take_to_release() may use the nodes that
 * are kept so that releasing needs no memory, and cut an area where there are too many.
 *
 * space_put_back() stores the area with other attributes and clears BUSY. space_claim_taken() makes
 * a claim of it (0 or -ENOMEM), and space_remove_taken() frees its range; the caller then has the
 * reference to its object.
 *
 * A call that keeps one range busy may wait only for ranges above it. Calls that wait for each
 * other would be a circle.
 */
int space_take(struct space *space, u64 *at, u64 end, struct area *area);
int space_take_to_release(struct space *space, u64 *at, u64 end, struct area *area);
void space_put_back(struct space *space, const struct area *area);
int space_claim_taken(struct space *space, const struct area *area, struct hull *hull);
void space_remove_taken(struct space *space, const struct area *area);

/*
 * Make the area that contains all of [start, end) busy, whole, if that takes no waiting. False if
 * no area contains it, or if it is busy, or if a CPU has a pin in the range, the calling one
 * included. Other ranges of the area may still be pinned. space_put_back() ends it.
 */
bool space_try_take(struct space *space, u64 start, u64 end, struct area *area);

/* The size of the pages that no call may cut: more than 4 KiB with AREA_WHOLE. */
u64 area_page_bytes(const struct area *area);

/* Has a pool promised pages of the area's size to it? */
static inline bool area_is_promised(const struct area *area)
{
	return (area->flags & AREA_POOL) && !(area->flags & AREA_NO_RESERVE);
}

/* Does it show pages of its object, and no zeros? */
static inline bool area_has_contents(const struct area *area)
{
	return area->object && area->object->ops->page;
}

/*
 * How many, touched or not. A page that several areas share counts for the one in which it begins.
 */
u64 area_promised(const struct area *area);

/* The first address from `at` on that is in no area, at most `end`. Context: any. */
u64 space_mapped_until(struct space *space, u64 at, u64 end);

/* Rights of which an access needs one: no entry of x86 can be written or executed and not read. */
static inline u8 area_rights_for(enum user_access access)
{
	static const u8 rights[] = {[USER_READ] =
					    USER_RIGHT_READ | USER_RIGHT_WRITE | USER_RIGHT_EXEC,
				    [USER_WRITE] = USER_RIGHT_WRITE,
				    [USER_EXEC] = USER_RIGHT_EXEC};

	return rights[access];
}
