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
	TOUCH_BEYOND,    /* beyond the end of the object */
	TOUCH_NO_MEMORY, /* there is no page */
};

/*
 * space_pin() of the page that a touch of `addr` brings, whatever its size. Returns the area, which
 * stays while the pin does; NULL, without a pin, if there is none.
 */
const struct area *space_pin_page(struct space *space, u64 addr);

/* Make the page of `addr` present for this access. Context: ordinary. */
enum touch space_touch(struct space *space, u64 addr, enum user_access access);
