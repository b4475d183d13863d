/*
 * epoll: a file that keeps a set of other files to wait for, by descriptor.
 *
 *	group[descriptor / 64] -> page: [used, a bit per watch][watch] x 64
 *
 * A watch does not hold its file. It remembers the file and its inode's number, which together
 * never come back, and is dropped when its descriptor is found to refer to anything else. So a
 * watch ends when its descriptor is closed, even if a duplicate keeps the file open; on Linux it
 * would end with the last duplicate.
 *
 * Edges: file_ops.changes() counts what happens to a file. A watch with EPOLLET reports a ready
 * file once per change.
 *
 * Locking: `lock` guards the groups. Files are looked at without it, and what was copied from the
 * watch is compared again afterwards, so that two threads do not report one edge.
 *
 * Source: Linux man-pages, epoll(7), epoll_ctl(2), epoll_wait(2).
 */
#include <arch/atomic.h>
#include <arch/memory.h>

#include "kernel/lib/format.h"
#include "kernel/program/calls.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/poll_calls.h"
#include "kernel/program/sleepers.h"
#include "kernel/program/store.h"
#include "mm/mm.h"

#define WATCH_ONCE  (1u << 30) /* EPOLLONESHOT */
#define WATCH_EDGES (1u << 31) /* EPOLLET */

enum { CLOSE_ON_EXEC = 02000000 };
enum { EPOLL_ADD = 1, EPOLL_DELETE, EPOLL_CHANGE };
enum { GROUP = 64, GROUPS = DESCRIPTORS_MAX / GROUP };
enum { ALWAYS_REPORTED = READY_ERROR | READY_HANGUP }; /* reported without being asked for */

struct watch {
	const struct file *file; /* only compared */
	u64 inode;
	u64 data, seen; /* changes() at the last report */
	u32 events;     /* 0 after a report with WATCH_ONCE */
	bool silent;    /* after that report */
};

struct group {
	u64 used;
	struct watch watch[GROUP];
};

struct epoll {
	struct spinlock lock;
	struct page *group[GROUPS]; /* NULL: no watch yet */
	int next; /* where the next look begins, so that no file starves; atomic */
};

/* As in the program's memory. */
struct program_event {
	u32 events;
	u64 data;
} __packed;

/* ---- watches; lock held ---- */

static struct watch *watch_of(const struct epoll *epoll, int descriptor)
{
	struct page *page = epoll->group[descriptor / GROUP];
	struct group *group = page ? page_address(page) : NULL;

	return group && group->used >> descriptor % GROUP & 1 ? &group->watch[descriptor % GROUP]
							      : NULL;
}

static void drop_watch(struct epoll *epoll, int descriptor)
{
	struct group *group = page_address(epoll->group[descriptor / GROUP]);

	group->used &= ~(1ULL << descriptor % GROUP);
}

/* The watch of that descriptor, if it is of this file. One of another file is dropped. */
static struct watch *watch_of_file(struct epoll *epoll, int descriptor, const struct file *file)
{
	struct watch *watch = watch_of(epoll, descriptor);

	if (watch && file && watch->file == file && watch->inode == file->inode->number)
		return watch;
	if (watch)
		drop_watch(epoll, descriptor);
	return NULL;
}

/* The first watched descriptor from `from` on, or DESCRIPTORS_MAX. */
static int next_watched(const struct epoll *epoll, int from)
{
	while (from < DESCRIPTORS_MAX) {
		const struct page *page = epoll->group[from / GROUP];
		const struct group *group = page ? page_address(page) : NULL;
		const u64 rest = group ? group->used >> from % GROUP : 0;

		if (rest)
			return from + __builtin_ctzll(rest);
		from = (from / GROUP + 1) * GROUP;
	}
	return DESCRIPTORS_MAX;
}

/* ---- looking ---- */

enum take { TAKE, ONLY_LOOK };

/* Store a report in the watch of its file, if that is as it was when the file was looked at. */
static bool report(struct epoll *epoll, int descriptor, const struct file *file,
		   const struct watch *before, u64 changes)
{
	struct watch *watch;
	bool mine;

	spin_lock(&epoll->lock);
	watch = watch_of_file(epoll, descriptor, file);
	mine = watch && !watch->silent && watch->seen == before->seen &&
	       watch->events == before->events;
	if (mine) {
		watch->seen = changes;
		watch->silent = watch->events & WATCH_ONCE;
		atomic_store_relaxed(&epoll->next, (descriptor + 1) % DESCRIPTORS_MAX);
	}
	spin_unlock(&epoll->lock);
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
	u64 changes = 0;

	spin_lock(&epoll->lock);
	watch = watch_of_file(epoll, descriptor, file);
	if (watch)
		before = *watch;
	spin_unlock(&epoll->lock);
	if (!before.silent) {
		*console |= file->ops->terminal;
		if (before.events & WATCH_EDGES && file->ops->changes)
			changes = file->ops->changes(file);
		if (!(before.events & WATCH_EDGES && file->ops->changes) || changes != before.seen)
			ready = poll_events(file) & (before.events | ALWAYS_REPORTED);
		if (ready && take == TAKE && !report(epoll, descriptor, file, &before, changes))
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
	struct epoll *epoll = question->state;

	while ((u64)look.found < question->count) {
		struct program_event event;
		u64 data;
		int err = 0;

		spin_lock(&epoll->lock);
		from = next_watched(epoll, from);
		spin_unlock(&epoll->lock);
		if (from >= to)
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
		from++;
	}
	return look;
}

static struct look look_at_watches(const struct question *question, bool last)
{
	const struct epoll *epoll = question->state;
	const int start = atomic_load_relaxed(&epoll->next);
	struct look look;

	look = look_at_range(question, start, DESCRIPTORS_MAX, (struct look){0});
	return look.found < 0 ? look : look_at_range(question, 0, start, look);
}

/* ---- the file ---- */

/* For poll() of an epoll file. */
static unsigned epoll_ready(struct file *file)
{
	struct epoll *epoll = file->state;
	bool console = false;
	int at = 0;
	u64 data;

	for (;; at++) {
		spin_lock(&epoll->lock);
		at = next_watched(epoll, at);
		spin_unlock(&epoll->lock);
		if (at >= DESCRIPTORS_MAX)
			return 0;
		if (look_at_file(epoll, at, ONLY_LOOK, &data, &console))
			return READY_IN;
	}
}

static void epoll_release(struct file *file)
{
	struct epoll *epoll = file->state;

	for (unsigned i = 0; i < GROUPS; i++) {
		if (epoll->group[i])
			page_put(epoll->group[i]);
	}
	store_free(epoll, sizeof(*epoll));
}

static const struct file_ops epoll_ops = {.ready = epoll_ready, .release = epoll_release};

static struct file *epoll_new(void)
{
	struct epoll *epoll = store_alloc(sizeof(*epoll));
	struct inode *inode = inode_new(INODE_STREAM, 0600);
	struct file *file = epoll && inode ? file_new(inode, &epoll_ops, OPEN_BOTH) : NULL;

	if (file) {
		epoll->lock = SPINLOCK_INIT(LOCK_LEAF);
		format(inode->label, sizeof(inode->label), "anon_inode:[eventpoll]");
		file->state = epoll;
		return file;
	}
	inode_put(inode);
	if (epoll)
		store_free(epoll, sizeof(*epoll));
	return NULL;
}

/* ---- calls ---- */

static s64 create(void)
{
	struct file *file = epoll_new();
	int descriptor;

	if (!file)
		return -ENOMEM;
	descriptor = descriptor_give(file, 0);
	if (descriptor < 0)
		file_put(file);
	return descriptor;
}

s64 call_epoll_create(const struct call_args *args)
{
	return (s32)args->arg[0] <= 0 ? -EINVAL : create();
}

s64 call_epoll_create1(const struct call_args *args)
{
	return args->arg[0] & ~(u64)CLOSE_ON_EXEC ? -EINVAL : create();
}

/* Make sure that there is a page for the watch. */
static int make_group(struct epoll *epoll, int descriptor)
{
	struct page **place = &epoll->group[descriptor / GROUP];
	struct page *page;

	if (atomic_load_relaxed(place))
		return 0;
	page = store_page();
	if (!page)
		return -ENOMEM;
	spin_lock(&epoll->lock);
	if (!*place) {
		atomic_store_relaxed(place, page);
		page = NULL;
	}
	spin_unlock(&epoll->lock);
	if (page)
		page_put(page);
	return 0;
}

static int change(struct epoll *epoll, u64 how, int descriptor, const struct watch *wanted)
{
	struct watch *watch;
	int err = 0;

	spin_lock(&epoll->lock);
	watch = watch_of_file(epoll, descriptor, wanted->file);
	if (how == EPOLL_ADD && watch) {
		err = -EEXIST;
	} else if (how != EPOLL_ADD && !watch) {
		err = -ENOENT;
	} else if (how == EPOLL_DELETE) {
		drop_watch(epoll, descriptor);
	} else {
		struct group *group = page_address(epoll->group[descriptor / GROUP]);

		group->used |= 1ULL << descriptor % GROUP;
		group->watch[descriptor % GROUP] = *wanted;
	}
	spin_unlock(&epoll->lock);
	return err;
}

/* One change of the set of `epoll`. An epoll file cannot be in the set of another (ELOOP). */
static int control(struct file *epoll, u64 how, int descriptor, struct file *file, user_t from)
{
	struct program_event event = {0};
	struct watch wanted = {.file = file, .inode = file->inode->number};
	int err = 0;

	if (!file->ops->ready)
		return -EPERM;
	if (epoll->ops != &epoll_ops || epoll == file || how < EPOLL_ADD || how > EPOLL_CHANGE)
		return -EINVAL;
	if (file->ops == &epoll_ops)
		return -ELOOP;
	if (how != EPOLL_DELETE)
		err = user_read(&event, from, sizeof(event));
	if (!err && how == EPOLL_ADD)
		err = make_group(epoll->state, descriptor);
	if (err)
		return err;
	wanted.events = event.events;
	wanted.data = event.data;
	wanted.seen = file->ops->changes ? file->ops->changes(file) - 1 : 0;
	err = change(epoll->state, how, descriptor, &wanted);
	poll_wake();
	return err;
}

s64 call_epoll_ctl(const struct call_args *args)
{
	const int descriptor = (int)args->arg[2];
	struct file *epoll = file_of((int)args->arg[0]);
	struct file *file = file_of(descriptor);
	int err = -EBADF;

	if (epoll && file)
		err = control(epoll, args->arg[1], descriptor, file, args->arg[3]);
	file_put(epoll);
	file_put(file);
	return err;
}

static s64 wait_for_events(const struct call_args *args, const struct poll_limit *limit,
			   user_t mask)
{
	const s32 most = (s32)args->arg[2];
	struct file *file = file_of((int)args->arg[0]);
	s64 result = -EINVAL;

	if (!file)
		return -EBADF;
	if (file->ops == &epoll_ops && most > 0) {
		const struct question question = {.look = look_at_watches,
						  .set = {args->arg[1]},
						  .count = MIN((u32)most, (u32)DESCRIPTORS_MAX),
						  .state = file->state};

		result = poll_for_masked(args, mask, args->arg[5], &question, limit);
	}
	file_put(file);
	return result;
}

s64 call_epoll_pwait(const struct call_args *args)
{
	const struct poll_limit limit = poll_limit_ms((s32)args->arg[3]);

	return wait_for_events(args, &limit, args->arg[4]);
}

s64 call_epoll_pwait2(const struct call_args *args)
{
	struct poll_limit limit;
	const int err = poll_limit_read(args->arg[3], 1, &limit);

	return err ? err : wait_for_events(args, &limit, args->arg[4]);
}
