/*
 * epoll: a file that keeps a set of other files to wait for, by descriptor: watch[descriptor].
 *
 * A watch does not hold its file. It remembers the file and its inode's number, which together
 * never come back, and is dropped when its descriptor is found to refer to anything else. So a
 * watch ends when its descriptor is closed, even if a duplicate keeps the file open; on Linux it
 * would end with the last duplicate.
 *
 * Edges: file_look.changes counts what happens to a file. A watch with EPOLLET reports a ready file
 * once per change.
 *
 * Locking: the lock of the stream guards the watches. Files are looked at without it, and what was
 * copied from the watch is compared again afterwards, so that two threads do not report one edge.
 *
 * Source: Linux man-pages, epoll(7), epoll_ctl(2), epoll_wait(2).
 */
#include <arch/atomic.h>

#include "kernel/program/calls.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/poll_calls.h"
#include "kernel/program/store.h"
#include "mm/mm.h"

#define WATCH_ONCE  (1u << 30) /* EPOLLONESHOT */
#define WATCH_EDGES (1u << 31) /* EPOLLET */

enum { EPOLL_ADD = 1, EPOLL_DELETE, EPOLL_CHANGE };
enum { WATCHES_ORDER = 4 };
enum { ALWAYS_REPORTED = READY_ERROR | READY_HANGUP }; /* reported without being asked for */

struct watch {
	const struct file *file; /* only compared; NULL: nothing is watched */
	u64 inode;
	u64 data, seen; /* changes at the last report */
	u32 events;
	bool silent; /* after a report with WATCH_ONCE */
};
_Static_assert(sizeof(struct watch) * DESCRIPTORS_MAX <= PAGE_SIZE << WATCHES_ORDER, "watches fit");

struct epoll {
	struct stream stream;
	struct page *page;
	struct watch *watch; /* DESCRIPTORS_MAX, on the page */
	int end;             /* no watch is there from this descriptor on */
	int next;            /* where the next look begins, so that no file starves; atomic */
};

/* As in the program's memory. */
struct program_event {
	u32 events;
	u64 data;
} __packed;

static struct epoll *epoll_of(const struct file *file)
{
	return container_of(file->inode->stream, struct epoll, stream);
}

/* ---- watches; lock held ---- */

/* The watch of that descriptor, if it is of this file. One of another file is dropped. */
static struct watch *watch_of_file(struct epoll *epoll, int descriptor, const struct file *file)
{
	struct watch *watch = &epoll->watch[descriptor];

	if (watch->file && watch->file == file && watch->inode == file->inode->number)
		return watch;
	watch->file = NULL;
	return NULL;
}

/* The first watched descriptor of a range, or DESCRIPTORS_MAX. */
static int next_watched(struct epoll *epoll, int from, int to)
{
	spin_lock(&epoll->stream.lock);
	to = MIN(to, epoll->end);
	while (from < to && !epoll->watch[from].file)
		from++;
	spin_unlock(&epoll->stream.lock);
	return from < to ? from : DESCRIPTORS_MAX;
}

/* ---- looking ---- */

enum take { TAKE, ONLY_LOOK };

/* Store a report in the watch of its file, if that is as it was when the file was looked at. */
static bool report(struct epoll *epoll, int descriptor, const struct file *file,
		   const struct watch *before, u64 changes)
{
	struct watch *watch;
	bool mine;

	spin_lock(&epoll->stream.lock);
	watch = watch_of_file(epoll, descriptor, file);
	mine = watch && !watch->silent && watch->seen == before->seen &&
	       watch->events == before->events;
	if (mine) {
		watch->seen = changes;
		watch->silent = watch->events & WATCH_ONCE;
		atomic_store_relaxed(&epoll->next, (descriptor + 1) % DESCRIPTORS_MAX);
	}
	spin_unlock(&epoll->stream.lock);
	return mine;
}

/* Look at one file. Returns its events, 0 for none. */
static unsigned look_at_file(struct epoll *epoll, int descriptor, enum take take, u64 *data,
			     bool *console)
{
	struct file *file = file_of(descriptor);
	const struct watch *watch;
	struct watch before = {.silent = true};
	unsigned ready = 0;

	spin_lock(&epoll->stream.lock);
	watch = watch_of_file(epoll, descriptor, file);
	if (watch)
		before = *watch;
	spin_unlock(&epoll->stream.lock);
	if (!before.silent) {
		const struct file_look look = file_look(file);

		*console |= file->ops->terminal;
		if (!(before.events & WATCH_EDGES) || look.changes == NO_EDGES ||
		    look.changes != before.seen)
			ready = look.ready & (before.events | ALWAYS_REPORTED);
		if (ready && take == TAKE &&
		    !report(epoll, descriptor, file, &before, look.changes))
			ready = 0;
	}
	*data = before.data;
	file_put(file);
	return ready;
}

/* Look at the watched descriptors of a range until the program's array is full. */
static struct look look_at_range(const struct question *question, int from, int to,
				 struct look look)
{
	struct epoll *epoll = container_of(question->state, struct epoll, stream);

	for (; (u64)look.found < question->count; from++) {
		struct program_event event;
		u64 data;
		int err = 0;

		from = next_watched(epoll, from, to);
		if (from == DESCRIPTORS_MAX)
			break;
		event.events = look_at_file(epoll, from, TAKE, &data, &look.console);
		event.data = data;
		if (event.events)
			err = user_write(question->set[0] + (u64)look.found * sizeof(event), &event,
					 sizeof(event));
		if (err) {
			look.found = look.found ? look.found : err;
			break;
		}
		look.found += event.events != 0;
	}
	return look;
}

static struct look look_at_watches(const struct question *question, bool last)
{
	struct epoll *epoll = container_of(question->state, struct epoll, stream);
	const int start = atomic_load_relaxed(&epoll->next);
	struct look look;

	look = look_at_range(question, start, DESCRIPTORS_MAX, (struct look){0});
	return look.found < 0 ? look : look_at_range(question, 0, start, look);
}

/* ---- the file ---- */

static struct file_look epoll_look(struct file *file)
{
	struct epoll *epoll = epoll_of(file);
	struct file_look look = {.changes = NO_EDGES, .waiting = -1};
	bool console = false;
	u64 data;

	for (int at = 0; !look.ready; at++) {
		at = next_watched(epoll, at, DESCRIPTORS_MAX);
		if (at == DESCRIPTORS_MAX)
			break;
		if (look_at_file(epoll, at, ONLY_LOOK, &data, &console))
			look.ready = READY_IN;
	}
	return look;
}

static void epoll_release(struct file *file)
{
	struct page *page = epoll_of(file)->page;

	if (page)
		page_put(page);
}

static const struct file_ops epoll_ops = {.look = epoll_look, .release = epoll_release};

s64 call_epoll_create1(const struct call_args *args)
{
	struct file *file;
	struct epoll *epoll;

	if (args->arg[0] & ~(u64)OPEN_CLOSE_ON_EXEC)
		return -EINVAL;
	file = stream_new(&epoll_ops, OPEN_BOTH, sizeof(struct epoll));
	if (!file)
		return -ENOMEM;
	epoll = epoll_of(file);
	epoll->page = store_pages(WATCHES_ORDER, PAGE_ZERO);
	if (!epoll->page) {
		file_put(file);
		return -ENOMEM;
	}
	epoll->watch = page_address(epoll->page);
	return descriptor_for(file, 0);
}

s64 call_epoll_create(const struct call_args *args)
{
	return (s32)args->arg[0] <= 0 ? -EINVAL : call_epoll_create1(&(struct call_args){0});
}

static int change(struct epoll *epoll, u64 how, int descriptor, const struct watch *wanted)
{
	const struct watch *watch;
	int err = 0;

	spin_lock(&epoll->stream.lock);
	watch = watch_of_file(epoll, descriptor, wanted->file);
	if (how == EPOLL_ADD ? watch != NULL : !watch) {
		err = watch ? -EEXIST : -ENOENT;
	} else {
		epoll->watch[descriptor] = *wanted;
		if (how == EPOLL_DELETE)
			epoll->watch[descriptor].file = NULL;
		epoll->end = MAX(epoll->end, descriptor + 1);
	}
	spin_unlock(&epoll->stream.lock);
	return err;
}

/* One change of the set of `epoll`. An epoll file cannot be in the set of another (ELOOP). */
static int control(struct file *epoll, u64 how, int descriptor, struct file *file, user_t from)
{
	struct program_event event = {0};
	struct watch wanted = {.file = file, .inode = file->inode->number};
	int err = 0;

	if (!file->ops->look)
		return -EPERM;
	if (epoll->ops != &epoll_ops || epoll == file || how < EPOLL_ADD || how > EPOLL_CHANGE)
		return -EINVAL;
	if (file->ops == &epoll_ops)
		return -ELOOP;
	if (how != EPOLL_DELETE)
		err = user_read(&event, from, sizeof(event));
	if (err)
		return err;
	wanted.events = event.events;
	wanted.data = event.data;
	wanted.seen = file_look(file).changes - 1;
	err = change(epoll_of(epoll), how, descriptor, &wanted);
	poll_wake();
	return err;
}

s64 call_epoll_ctl(const struct call_args *args)
{
	const int descriptor = (int)args->arg[2];
	struct file *file = file_of(descriptor);
	int err = -EBADF;

	if (file)
		err = control(args->file, args->arg[1], descriptor, file, args->arg[3]);
	file_put(file);
	return err;
}

s64 call_epoll_pwait(const struct call_args *args)
{
	const struct question question = {.look = look_at_watches,
					  .set = {args->arg[1]},
					  .count = MIN((u32)args->arg[2], (u32)DESCRIPTORS_MAX),
					  .until_ns = poll_until((s32)args->arg[3]),
					  .state = args->file->inode->stream};

	if (args->file->ops != &epoll_ops || (s32)args->arg[2] <= 0)
		return -EINVAL;
	return poll_for_masked(args->arg[4], args->arg[5], &question);
}
