/* Touches: see touch.h. */
#include "mm/vm/touch.h"

#include "mm/vm/pages.h"

/* Pin the page if the area that the CPU found last has it, and nothing has changed since. */
static inline bool pin_again(struct space *space, u64 addr, const struct area_found *last)
{
	if (addr < last->area.start || addr >= last->area.end)
		return false;
	space_pin_only(space, addr, pages_level(space, &last->area, addr));
	if (likely(atomic_load_acquire(&space->tree.seq) == last->seq &&
		   !(last->area.flags & AREA_BUSY)))
		return true;
	space_unpin(space);
	return false;
}

static inline const struct area *pin_page(struct space *space, u64 addr)
{
	const struct area_found *last = &space_here(space)->found;
	struct area area;

	while (!pin_again(space, addr, last)) {
		if (!space_pin(space, addr, PT_PAGE, &area))
			return NULL;
		space_unpin(space); /* now it is the area found last */
	}
	return &last->area;
}

const struct area *space_pin_page(struct space *space, u64 addr)
{
	return pin_page(space, addr);
}

enum touch space_touch(struct space *space, u64 addr, enum user_access access)
{
	const struct area *area = pin_page(space, addr);
	int err;

	if (unlikely(!area))
		return TOUCH_NO_AREA;
	if (unlikely(!(area->rights & area_rights_for(access)))) {
		space_unpin(space);
		return TOUCH_NO_RIGHT;
	}
	err = pages_touch(space, area, addr, true);
	space_unpin(space);
	return likely(err == 0) ? TOUCH_DONE : err == -ENXIO ? TOUCH_BEYOND : TOUCH_NO_MEMORY;
}
