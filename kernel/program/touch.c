/* Touches: see touch.h. */
#include "kernel/program/touch.h"

#include "kernel/program/pages.h"
#include "kernel/program/thread.h"

struct areas program_areas;

enum touch program_touch(struct thread *self, u64 addr, enum user_access access)
{
	struct area area;
	enum pt_level level;
	int err;

	if (addr < USER_START || addr >= USER_END ||
	    !areas_pin(&program_areas, self, addr, PT_PAGE, &area))
		return TOUCH_NO_AREA;
	level = pages_level(&area, addr);
	/* a wider pin first, and then the area again: it may have changed in between */
	while (level != PT_PAGE) {
		pin_drop(self);
		if (!areas_pin(&program_areas, self, addr, level, &area))
			return TOUCH_NO_AREA;
		if (pages_level(&area, addr) <= level)
			break;
		level = pages_level(&area, addr);
	}
	if (!(area.rights & area_rights_for(access))) {
		pin_drop(self);
		return TOUCH_NO_RIGHT;
	}
	err = pages_touch(&area, addr);
	pin_drop(self);
	return err == 0 ? TOUCH_DONE : err == -ENXIO ? TOUCH_BEYOND : TOUCH_NO_MEMORY;
}
