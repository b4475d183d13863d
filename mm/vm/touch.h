/*
 * Touches of a space: a page fault, or an access by the kernel on the owner's behalf.
 */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"
#include "mm/vm/space.h"

enum touch {
	TOUCH_DONE,      /* the page is present now */
	TOUCH_NO_AREA,   /* nothing is mapped there */
	TOUCH_NO_RIGHT,  /* the area does not allow this access */
	TOUCH_GUARD,     /* there is a guard (pages_guard()) */
	TOUCH_BEYOND,    /* beyond the end of the object */
	TOUCH_NO_MEMORY, /* there is no page */
};

/* Make the page of `addr` present for this access. Context: ordinary. */
enum touch space_touch(struct space *space, u64 addr, enum user_access access);

/*
 * Make the pages of [start, end) present, which are of `size`, before they are used: all of each is
 * cleared alike. Those that may not be accessed are left out. Returns 0, also where nothing is
 * mapped, or -ENOMEM. Context: ordinary.
 */
int space_bring(struct space *space, u64 start, u64 end, u64 size);

/* A 2 MiB page for an area that has none of a pool, contents undefined; NULL: no memory. */
struct page;
struct page *touch_alloc_huge(const struct space *space, const struct area *area, u64 addr);
