/*
 * eventfds: a count of 64 bits. A write adds to it, a read takes it (or 1 of it, with
 * EVENT_SEMAPHORE) and waits while it is 0.
 */
#include <arch/atomic.h>

#include "kernel/program/calls.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"

#define EVENT_MOST 0xfffffffffffffffeULL

enum { EVENT_SEMAPHORE = 1 };

struct event {
	struct stream stream;
	u64 count;
	u64 changes; /* of the count */
	bool semaphore;
};

static struct event *event_of(const struct file *file)
{
	return container_of(file->inode->stream, struct event, stream);
}

/*
 * With `more`: wait until the count has room for it, and add it. Without: wait until the count is
 * not 0, and take from it; *taken receives how much.
 */
static int change(struct file *file, u64 more, u64 *taken)
{
	struct event *event = event_of(file);
	struct stream *stream = &event->stream;
	int err = 0;

	spin_lock(&stream->lock);
	while (!err && (more ? more > EVENT_MOST - event->count : event->count == 0))
		err = atomic_load_relaxed(&file->flags) & OPEN_NONBLOCK
			      ? -EAGAIN
			      : sleepers_wait(&stream->sleepers, &stream->lock, 0);
	if (err) {
		spin_unlock(&stream->lock);
		return err;
	}
	*taken = more ? 0 : event->semaphore ? 1 : event->count;
	event->count += more - *taken;
	event->changes++;
	stream_changed(stream);
	return 0;
}

static s64 event_read(struct file *file, struct span *to, u64 at)
{
	u64 taken;
	int err = to->total < sizeof(taken) ? -EINVAL : change(file, 0, &taken);

	if (!err)
		err = span_write(to, &taken, sizeof(taken));
	return err ? err : (s64)sizeof(taken);
}

static s64 event_write(struct file *file, struct span *from, u64 at)
{
	u64 more, taken;
	int err = from->total < sizeof(more) ? -EINVAL : span_read(from, &more, sizeof(more));

	if (!err && more > EVENT_MOST)
		err = -EINVAL;
	if (!err && more > 0)
		err = change(file, more, &taken);
	return err ? err : (s64)sizeof(more);
}

static struct file_look event_look(struct file *file)
{
	struct event *event = event_of(file);
	struct file_look look = {.waiting = -1};

	spin_lock(&event->stream.lock);
	look.ready =
		(event->count > 0 ? READY_IN : 0) | (event->count < EVENT_MOST ? READY_OUT : 0);
	look.changes = event->changes;
	spin_unlock(&event->stream.lock);
	return look;
}

static const struct file_ops event_ops = {
	.read = event_read, .write = event_write, .look = event_look};

s64 call_eventfd2(const struct call_args *args)
{
	const u64 flags = args->arg[1];
	struct file *file;

	if (flags & ~(u64)(EVENT_SEMAPHORE | OPEN_NONBLOCK | OPEN_CLOSE_ON_EXEC))
		return -EINVAL;
	file = stream_new(&event_ops, OPEN_BOTH | ((u32)flags & OPEN_NONBLOCK),
			  sizeof(struct event));
	if (!file)
		return -ENOMEM;
	event_of(file)->count = (u32)args->arg[0];
	event_of(file)->semaphore = flags & EVENT_SEMAPHORE;
	return descriptor_for(file, 0);
}
