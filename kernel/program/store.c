/*
 * Memory of files: see store.h. Each class has a list of free objects, linked through their first
 * word, and a list of its pages. The lock of a class guards both lists.
 */
#include "kernel/program/store.h"

#include <arch/atomic.h>

#include "kernel/core/fail.h"
#include "kernel/core/lock.h"
#include "kernel/lib/string.h"
#include "mm/mm.h"

enum { CLASSES = 5, SMALLEST = 64, HEADER = 64 };

struct chained {
	void *next;
};

struct page_header {
	struct page_header *next;
	struct page *page;
};

struct class
{
	struct spinlock lock;
	struct chained *free;
	struct page_header *pages;
};

static struct class classes[CLASSES] = {
	[0 ... CLASSES - 1] = {.lock = {.rank = LOCK_LEAF, .holder = CPU_NONE}}};

static u64 objects; /* in use; atomic */

struct fail_plan store_fails;

struct page *store_pages(unsigned order, unsigned request)
{
	if (fail_here(&store_fails, FAIL_ALLOC))
		return NULL;
	return page_alloc(order, USE_UNMOVABLE, request, NODE_NONE);
}

struct page *store_page(void)
{
	return store_pages(0, PAGE_ZERO);
}

static unsigned class_of(size_t size)
{
	unsigned n = 0;

	while (((size_t)SMALLEST << n) < size)
		n++;
	return n;
}

static void *take(struct class *class)
{
	struct chained *object;

	spin_lock(&class->lock);
	object = class->free;
	if (object)
		class->free = object->next;
	spin_unlock(&class->lock);
	return object;
}

/* Cut a page into objects. */
static bool grow(struct class *class, size_t bytes)
{
	struct page *page = store_page();
	struct page_header *header;
	u8 *start;

	if (!page)
		return false;
	header = page_address(page);
	header->page = page;
	start = (u8 *)header + HEADER;
	spin_lock(&class->lock);
	header->next = class->pages;
	class->pages = header;
	for (size_t at = 0; at + bytes <= PAGE_SIZE - HEADER; at += bytes) {
		struct chained *object = (struct chained *)(start + at);

		object->next = class->free;
		class->free = object;
	}
	spin_unlock(&class->lock);
	return true;
}

void *store_alloc(size_t size)
{
	const unsigned n = class_of(size);
	struct class *class = &classes[n];
	const bool fails = fail_here(&store_fails, FAIL_ALLOC);
	void *object = fails ? NULL : take(class);

	/* another CPU may take all objects of the new page */
	while (!object && !fails && grow(class, (size_t)SMALLEST << n))
		object = take(class);
	if (object) {
		memset(object, 0, size);
		atomic_add_relaxed(&objects, 1);
	}
	return object;
}

void store_free(void *object, size_t size)
{
	struct class *class = &classes[class_of(size)];
	struct chained *chained = object;

	atomic_add_relaxed(&objects, (u64)-1);
	spin_lock(&class->lock);
	chained->next = class->free;
	class->free = chained;
	spin_unlock(&class->lock);
}

u64 store_objects(void)
{
	return atomic_load_relaxed(&objects);
}

void store_end(void)
{
	for (unsigned n = 0; n < CLASSES; n++) {
		struct page_header *header = classes[n].pages;

		classes[n].free = NULL;
		classes[n].pages = NULL;
		while (header) {
			struct page *page = header->page;

			header = header->next;
			page_put(page);
		}
	}
}
