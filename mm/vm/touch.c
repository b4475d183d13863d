/* Touches: see touch.h. */
#include "mm/vm/touch.h"

#include "mm/vm/pages.h"

/* The level to pin first: that of the area found last, where it has the address. */
static enum pt_level likely_level(const struct space *space, u64 addr)
{
	const struct area *last = &space_here(space)->found.area;

	return addr >= last->start && addr < last->end ? pages_level(space, last, addr) : PT_PAGE;
}

bool space_pin_page(struct space *space, u64 addr, struct area *area)
{
	enum pt_level level = likely_level(space, addr);

	for (;;) {
		enum pt_level needed;

		if (!space_pin(space, addr, level, area))
			return false;
		needed = pages_level(space, area, addr);
		if (needed <= level)
			return true;
		/* a wider pin, and then the area again: it may have changed in between */
		space_unpin(space);
		level = needed;
	}
}

enum touch space_touch(struct space *space, u64 addr, enum user_access access)
{
	struct area area;
	int err;

	if (addr < space->range.start || addr >= space->range.end ||
	    !space_pin_page(space, addr, &area))
		return TOUCH_NO_AREA;
	if (!(area.rights & area_rights_for(access))) {
		space_unpin(space);
		return TOUCH_NO_RIGHT;
	}
	err = pages_touch(space, &area, addr, true);
	space_unpin(space);
	return err == 0 ? TOUCH_DONE : err == -ENXIO ? TOUCH_BEYOND : TOUCH_NO_MEMORY;
}
