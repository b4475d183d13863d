/* Touches: see touch.h. */
#include "mm/vm/touch.h"

#include "mm/vm/pages.h"

enum touch space_touch(struct space *space, u64 addr, enum user_access access)
{
	struct area area;
	enum pt_level level;
	int err;

	if (addr < space->range.start || addr >= space->range.end ||
	    !space_pin(space, addr, PT_PAGE, &area))
		return TOUCH_NO_AREA;
	level = pages_level(space, &area, addr);
	/* a wider pin first, and then the area again: it may have changed in between */
	while (level != PT_PAGE) {
		space_unpin(space);
		if (!space_pin(space, addr, level, &area))
			return TOUCH_NO_AREA;
		if (pages_level(space, &area, addr) <= level)
			break;
		level = pages_level(space, &area, addr);
	}
	if (!(area.rights & area_rights_for(access))) {
		space_unpin(space);
		return TOUCH_NO_RIGHT;
	}
	err = pages_touch(space, &area, addr);
	space_unpin(space);
	return err == 0 ? TOUCH_DONE : err == -ENXIO ? TOUCH_BEYOND : TOUCH_NO_MEMORY;
}
