/* Files that threads wait for, regular files and directories: see open_file.h. */
#include "kernel/program/open_file.h"

#include <arch/atomic.h>

#include "kernel/program/cut.h"
#include "kernel/program/file.h"
#include "kernel/program/poll_calls.h"
#include "kernel/program/store.h"

struct file *stream_new(const struct file_ops *ops, u32 flags, size_t bytes)
{
	struct inode *inode = inode_new(INODE_STREAM, 0600);

	if (inode)
		inode->stream = store_alloc(bytes);
	if (!inode || !inode->stream) {
		inode_put(inode);
		return NULL;
	}
	*inode->stream = (struct stream){.lock = SPINLOCK_INIT(LOCK_LEAF), .bytes = bytes};
	return file_new(inode, ops, flags);
}

struct file_look file_look(struct file *file)
{
	struct file_look look = {READY_IN | READY_OUT, NO_EDGES, -1};

	if (file->ops->look)
		look = file->ops->look(file);
	look.ready |= look.ready & (READY_IN | READY_HANGUP) ? READY_PLAIN_IN : 0;
	look.ready |= look.ready & READY_OUT ? READY_PLAIN_OUT : 0;
	return look;
}

void stream_changed(struct stream *stream) __releases(&stream->lock)
{
	sleepers_wake(&stream->sleepers);
	spin_unlock(&stream->lock);
	poll_wake();
}

/* ---- regular files and directories ---- */

static s64 regular_read(struct file *file, struct span *to, u64 at)
{
	return contents_read(&file->inode->contents, to, at);
}

/* O_APPEND writes at the end, wherever the call wants to write. */
static s64 regular_write(struct file *file, struct span *from, u64 at)
{
	struct contents *contents = &file->inode->contents;
	const bool append = atomic_load_relaxed(&file->flags) & OPEN_APPEND;
	s64 done = file_may_write(file->inode, append ? contents_size(contents) : at, from->total);

	if (done < 0)
		return done;
	if (append)
		done = contents_append(contents, from, &at);
	else
		done = contents_write(contents, from, at);
	if (done > 0) {
		from->end = at + (u64)done;
		inode_touch(file->inode);
	}
	return done;
}

const struct file_ops regular_ops = {
	.read = regular_read,
	.write = regular_write,
	.seeks = true,
};

const struct file_ops huge_ops = {.read = regular_read, .seeks = true};

static s64 directory_read(struct file *file, struct span *to, u64 at)
{
	return -EISDIR;
}

const struct file_ops directory_ops = {.read = directory_read, .seeks = true};
