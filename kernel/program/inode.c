/* Inodes: see inode.h. */
#include "kernel/program/inode.h"

#include <arch/atomic.h>
#include <arch/clock.h>

#include "kernel/lib/string.h"
#include "kernel/program/clocks.h"
#include "kernel/program/open_file.h"
#include "kernel/program/store.h"

static const u32 type_of[] = {
	[INODE_DIRECTORY] = MODE_DIRECTORY, [INODE_REGULAR] = MODE_REGULAR,
	[INODE_LINK] = MODE_LINK,           [INODE_DEVICE] = MODE_CHARACTER,
	[INODE_TEXT] = MODE_REGULAR,        [INODE_STREAM] = MODE_STREAM,
};

static u64 last_number; /* atomic */

struct inode *inode_new(enum inode_kind kind, u32 permissions)
{
	struct inode *inode = store_alloc(sizeof(*inode));

	if (!inode)
		return NULL;
	inode->refs = 1;
	inode->kind = kind;
	inode->mode = type_of[kind] | (permissions & MODE_PERMISSIONS);
	inode->number = atomic_fetch_add(&last_number, 1) + 1;
	inode->mtime_ns = clock_date_ns() + clock_ns();
	if (kind == INODE_REGULAR)
		contents_init(&inode->contents, NULL, 0);
	return inode;
}

int inode_new_link(const char *text, size_t length, struct inode **result)
{
	struct inode *inode;

	if (length > STORE_OBJECT_MAX)
		return -ENAMETOOLONG;
	inode = inode_new(INODE_LINK, 0777);
	if (inode)
		inode->link.text = store_alloc(length);
	if (!inode || !inode->link.text) {
		inode_put(inode);
		return -ENOMEM;
	}
	inode->link.length = (u32)length;
	memcpy(inode->link.text, text, length);
	*result = inode;
	return 0;
}

void inode_get(struct inode *inode)
{
	atomic_fetch_add(&inode->refs, 1);
}

void inode_put(struct inode *inode)
{
	if (!inode || atomic_fetch_sub(&inode->refs, 1) != 1)
		return;
	if (inode->kind == INODE_REGULAR)
		contents_end(&inode->contents);
	if (inode->kind == INODE_LINK && inode->link.text)
		store_free(inode->link.text, inode->link.length);
	if (inode->kind == INODE_STREAM && inode->stream)
		store_free(inode->stream, inode->stream->bytes);
	store_free(inode, sizeof(*inode));
}

u64 inode_size(const struct inode *inode)
{
	if (inode->kind == INODE_REGULAR)
		return contents_size(&inode->contents);
	return inode->kind == INODE_LINK ? inode->link.length : 0;
}

void inode_touch(struct inode *inode)
{
	atomic_store_relaxed(&inode->given, false);
	atomic_store_relaxed(&inode->mtime_ns, clock_date_ns() + clock_ns());
}
