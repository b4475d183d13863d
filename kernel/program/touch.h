/*
 * Touches of a program's memory: a page fault in ring 3, or an access by the kernel on the
 * program's behalf.
 */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"
#include "kernel/program/areas.h"

struct thread;

/* The areas of the program. */
extern struct areas program_areas;

enum touch {
	TOUCH_DONE,      /* the page is present now */
	TOUCH_NO_AREA,   /* SIGSEGV, nothing is mapped there */
	TOUCH_NO_RIGHT,  /* SIGSEGV, the area does not allow this access */
	TOUCH_BEYOND,    /* SIGBUS, beyond the end of a file */
	TOUCH_NO_MEMORY, /* SIGBUS, there is no page */
};

/* Make the page of `addr` present for this access. Context: ordinary. */
enum touch program_touch(struct thread *self, u64 addr, enum user_access access);
