/* eventfds: see event.h. */
#include "kernel/program/event.h"

#include <arch/atomic.h>

#include "kernel/lib/format.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/sleepers.h"
#include "kernel/program/store.h"

#define EVENT_MOST 0xfffffffffffffffeULL

struct event {
	struct spinlock lock;
	struct sleepers sleepers;
	u64 count;
	u64 changes; /* of the count */
	bool semaphore;
};

/* Wait, unless the file does not block. Lock held. */
static int event_wait(struct event *event, const struct file *file)
{
	if (atomic_load_relaxed(&file->flags) & OPEN_NONBLOCK)
		return -EAGAIN;
	return sleepers_wait(&event->sleepers, &event->lock, 0);
}

static s64 event_read(struct file *file, struct span *to, u64 at)
{
	struct event *event = file->state;
	u64 taken = 0;
	int err = 0;

	if (to->total < sizeof(taken))
		return -EINVAL;
	spin_lock(&event->lock);
	while (event->count == 0 && !err)
		err = event_wait(event, file);
	if (!err) {
		taken = event->semaphore ? 1 : event->count;
		event->count -= taken;
		event->changes++;
		sleepers_wake(&event->sleepers);
	}
	spin_unlock(&event->lock);
	if (err)
		return err;
	poll_wake();
	err = span_write(to, &taken, sizeof(taken));
	return err ? err : (s64)sizeof(taken);
}

static s64 event_write(struct file *file, struct span *from, u64 at)
{
	struct event *event = file->state;
	u64 more;
	int err;

	if (from->total < sizeof(more))
		return -EINVAL;
	err = span_read(from, &more, sizeof(more));
	if (err)
		return err;
	if (more > EVENT_MOST)
		return -EINVAL;
	spin_lock(&event->lock);
	while (more > EVENT_MOST - event->count && !err)
		err = event_wait(event, file);
	if (!err) {
		event->count += more;
		event->changes++;
		sleepers_wake(&event->sleepers);
	}
	spin_unlock(&event->lock);
	if (err)
		return err;
	poll_wake();
	return sizeof(more);
}

static unsigned event_ready(struct file *file)
{
	struct event *event = file->state;
	unsigned ready;

	spin_lock(&event->lock);
	ready = (event->count > 0 ? READY_IN : 0) | (event->count < EVENT_MOST ? READY_OUT : 0);
	spin_unlock(&event->lock);
	return ready;
}

static u64 event_changes(struct file *file)
{
	struct event *event = file->state;
	u64 changes;

	spin_lock(&event->lock);
	changes = event->changes;
	spin_unlock(&event->lock);
	return changes;
}

static void event_release(struct file *file)
{
	store_free(file->state, sizeof(struct event));
}

static const struct file_ops event_ops = {
	.read = event_read,
	.write = event_write,
	.ready = event_ready,
	.changes = event_changes,
	.release = event_release,
};

struct file *event_new(u64 count, bool semaphore, u32 flags)
{
	struct event *event = store_alloc(sizeof(*event));
	struct inode *inode = inode_new(INODE_STREAM, 0600);
	struct file *file = NULL;

	if (event && inode)
		file = file_new(inode, &event_ops, flags | OPEN_BOTH);
	if (file) {
		*event = (struct event){
			.lock = SPINLOCK_INIT(LOCK_LEAF), .count = count, .semaphore = semaphore};
		format(inode->label, sizeof(inode->label), "anon_inode:[eventfd]");
		file->state = event;
		return file;
	}
	inode_put(inode);
	if (event)
		store_free(event, sizeof(*event));
	return NULL;
}
