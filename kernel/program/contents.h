/*
 * Contents of a regular file: pages found by their index in a tree, as in a page table.
 *
 *	height 0   root = the page with index 0
 *	height 1   root = a node of 512 pages
 *	height h   root = a node of 512 trees of height h - 1
 *
 * A file of FILES= starts with `source`, its bytes in the cpio image. A page gets a copy of them
 * when it is first written or mapped; until then, reads come from the image. Bytes beyond the end
 * of the file are zero in every page. A page without source that nobody has written does not exist.
 *
 * The pages of a file of huge pages (memfd_create()) have 2 MiB or 1 GiB of a pool, and no bytes of
 * an image. A slot of the tree may have the pool's promise of a page. One CPU at a time, which has
 * the `turn`, brings pages and promises, or takes them away.
 *
 * `lock` guards all fields. Pages are copied without the lock, by a holder of a reference. A writer
 * notes `cuts` before it copies and looks again afterwards, so that no byte written to a page that
 * the file has lost meanwhile counts as written.
 */
#pragma once

#include <arch/pgtable.h>

#include "kernel/core/lock.h"
#include "kernel/program/span.h"

struct page;

#define CONTENTS_MAX (1ULL << 47) /* bytes of a file */

struct contents {
	struct spinlock lock;
	u32 cuts;        /* how often the file became shorter */
	u32 turn;        /* wait_turn(), of a file of huge pages */
	unsigned level;  /* enum pt_level, of an entry for a page; set once */
	unsigned height; /* of the tree */
	struct page *root;
	u64 size;    /* bytes */
	u64 written; /* where the last of the bytes ends that writes have stored */
	u64 pages;   /* that exist */
	const u8 *source;
	u64 source_size;
};

void contents_init(struct contents *contents, const void *source, u64 size);

/* Drop all pages. Nobody may use the file. Context: ordinary. */
void contents_end(struct contents *contents);

u64 contents_size(const struct contents *contents); /* bytes; any context */
static inline u64 contents_page_bytes(const struct contents *contents)
{
	return pt_level_size(contents->level);
}
/* Bytes that the pages take, or that the image has for the file, whichever is more. */
u64 contents_stored(struct contents *contents);

/* Small pages that all files have together, mapped or not. Any context. */
u64 contents_pages(void);

/*
 * Read or write the bytes from `at` on. Both return the number of bytes, which is less than
 * to->total at the end of the file and where memory runs out, or an error if there were none:
 * -EFAULT, -ENOSPC if there is no memory, -EFBIG beyond CONTENTS_MAX. A thread that must end
 * transfers one page at most from then on. Context: ordinary, in a thread.
 */
s64 contents_read(struct contents *contents, struct span *to, u64 at);
s64 contents_write(struct contents *contents, struct span *from, u64 at);

/*
 * Write at the end. The place is chosen before the bytes are copied, so that two CPUs never write
 * to the same place. Another CPU that reads meanwhile may find zeros there. *at receives the place.
 */
s64 contents_append(struct contents *contents, struct span *from, u64 *at);

/* Append `size` bytes of the kernel. Returns 0 or an error. One caller at a time. */
int contents_add(struct contents *contents, const void *from, u64 size);

/*
 * Set the size; no memory is taken. Pages beyond the end are dropped before the size changes, and
 * meanwhile read as zeros; a mapping keeps its own references. Returns 1 if the file became
 * shorter, 0 if not, or -EFBIG. Context: ordinary.
 */
int contents_resize(struct contents *contents, u64 size);

/*
 * Let the bytes of [at, at + size) be zero, and free the pages that lie in it whole; the size
 * stays. Returns 0, or -EINTR if the thread must end. Pages of the image need memory to be zero:
 * -ENOSPC, and then the bytes before them are. Context: ordinary, in a thread.
 */
int contents_punch(struct contents *contents, u64 at, u64 size);

/*
 * Let all pages of [at, at + size) exist. With `extend`, the file ends at at + size at least.
 * Returns 0, -EFBIG, -ENOSPC, or -EINTR if the thread must end. After an error some of the pages
 * may exist. Context: ordinary, in a thread.
 */
enum contents_extend { CONTENTS_KEEP_SIZE, CONTENTS_EXTEND };
int contents_reserve(struct contents *contents, u64 at, u64 size, enum contents_extend extend);

/*
 * Let the pool promise the pages of [at, at + size) that a file of huge pages does not have and has
 * no promise of; a promise is given back with the part of the file. With `extend`, the same turn
 * makes the file at least at + size long, so no cut comes between its promises and its size.
 * Returns 0, or -ENOMEM with nothing promised. contents_extend() makes the file at least `end`
 * long. Context: ordinary.
 */
int contents_promise(struct contents *contents, u64 at, u64 size, enum contents_extend extend);
void contents_extend(struct contents *contents, u64 end);

/*
 * The bytes of one page from `at` on, in the direct map, or NULL for zeros; *bytes receives how
 * many there are before the end of the page and of the file. For files that nobody uses any more.
 */
const void *contents_bytes(const struct contents *contents, u64 at, u64 *bytes);

/*
 * The page that holds bytes [index * 4096, + 4096) of the file, with one reference more that the
 * caller drops with page_put(); always the same page for an index while the file exists. Bytes
 * beyond the end of the file are zero. *err receives -ENXIO if the page lies wholly beyond the end
 * (a touch is then SIGBUS), -ENOMEM if there is no memory; NULL is returned. Context: ordinary.
 */
struct page *contents_page(struct contents *contents, u64 index, int *err);

/* vm_object_ops.copy of the file. No page is brought. */
int contents_copy(struct contents *contents, u64 at, void *to, u64 bytes);
