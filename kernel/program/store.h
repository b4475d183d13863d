/*
 * Memory of files: pages, and small objects that are cut from pages.
 *
 *	page: [next page][object][object] ... all of one class: 64, 128, 256, 512 or 1024 bytes
 *
 * Pages of objects stay here until store_end(), so an object that is freed is found again quickly.
 */
#pragma once

#include "kernel/lib/types.h"

struct fail_plan;
struct page;

enum { STORE_OBJECT_MAX = 1024 };

/*
 * One zeroed page with one reference, or NULL if there is no memory. The owner drops it with
 * page_put(). Context: ordinary.
 */
struct page *store_page(void);

/*
 * 2^order pages as one compound page with one reference, or NULL; `request` is as for page_alloc():
 * without PAGE_ZERO they have any contents. Context: ordinary.
 */
struct page *store_pages(unsigned order, unsigned request);

/*
 * A zeroed object of 1 to STORE_OBJECT_MAX bytes, or NULL if there is no memory. store_free() takes
 * the same size. Context: ordinary.
 */
void *store_alloc(size_t size);
void store_free(void *object, size_t size);

/* Free the pages of all objects. No object may be in use. Context: ordinary. */
void store_end(void);

/* Objects in use now. Any context. */
u64 store_objects(void);

/* FAIL_ALLOC: a request for a page or an object, for tests. */
extern struct fail_plan store_fails;
