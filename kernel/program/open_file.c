/* What files that threads wait for have in common: see open_file.h. */
#include "kernel/program/open_file.h"

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
