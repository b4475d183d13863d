/*
 * The source of an area's contents, for example a file. mm/vm knows it only through these calls.
 *
 * Each area with an object has a reference to it. An area without an object shows memory that is
 * zero at first and nobody else's.
 */
#pragma once

#include <arch/atomic.h>

#include "kernel/lib/types.h"

struct page;
struct vm_object;

struct vm_object_ops {
	/*
	 * The page that holds bytes [index * 4096, + 4096), with one reference more, which is
	 * dropped with page_put(): a small page, or one of the level of the areas that show the
	 * object. NULL: *err is -ENOMEM, or -ENXIO beyond the end. Context: ordinary. Without this
	 * function the object shows zeros, as an area without an object.
	 */
	struct page *(*page)(struct vm_object *object, u64 index, int *err);
	/*
	 * Copy [at, at + bytes) for a private page, zeros beyond the end. Returns 0, or -ENXIO if
	 * all of it is beyond. Context: ordinary. There is one if there is page().
	 */
	int (*copy)(struct vm_object *object, u64 at, void *to, u64 bytes);
	/* May writes to a shared area reach it? */
	bool (*can_write)(const struct vm_object *object);
	/* The last reference was dropped. Context: ordinary. */
	void (*release)(struct vm_object *object);
};

struct vm_object {
	const struct vm_object_ops *ops;
	u32 refs;  /* atomic */
	u64 bytes; /* that may be touched, if they show zeros; atomic, because it may grow */
};

/* With NULL both do nothing. */
static inline void vm_object_get(struct vm_object *object)
{
	if (object)
		atomic_fetch_add(&object->refs, 1);
}

static inline void vm_object_put(struct vm_object *object)
{
	if (object && atomic_fetch_sub(&object->refs, 1) == 1)
		object->ops->release(object);
}
