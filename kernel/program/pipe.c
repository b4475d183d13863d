/* Pipes: see pipe.h. `lock` guards all fields of a pipe but the bytes of the ring. */
#include "kernel/program/pipe.h"

#include <arch/atomic.h>

#include "kernel/lib/format.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/sleepers.h"
#include "kernel/program/store.h"
#include "mm/mm.h"

enum { PIPE_ORDER = 4 };

struct pipe {
	struct spinlock lock;
	struct sleepers sleepers; /* of both ends */
	struct page *page;
	u64 head, tail;
	bool reader_open, writer_open;
	bool reading, writing; /* a thread has the turn */
};

static bool is_nonblocking(const struct file *file)
{
	return atomic_load_relaxed(&file->flags) & OPEN_NONBLOCK;
}

static u64 filled(const struct pipe *pipe)
{
	return pipe->head - pipe->tail;
}

/* The piece of the ring that begins with byte number `at`, `bytes` long at most. */
static u64 piece(const struct pipe *pipe, u64 at, u64 bytes, u8 **start)
{
	const u64 offset = at % PIPE_SIZE;

	*start = (u8 *)page_address(pipe->page) + offset;
	return MIN(bytes, PIPE_SIZE - offset);
}

static void changed(struct pipe *pipe) __releases(&pipe->lock)
{
	sleepers_wake(&pipe->sleepers);
	spin_unlock(&pipe->lock);
	poll_wake();
}

/* ---- reading ---- */

/* Wait for bytes and take the turn. Returns how many there are, 0 at the end, or an error. */
static s64 begin_read(struct pipe *pipe, const struct file *file)
{
	s64 result = 0;

	spin_lock(&pipe->lock);
	for (;;) {
		int err;

		if (!pipe->reading && filled(pipe) > 0) {
			pipe->reading = true;
			result = (s64)filled(pipe);
			break;
		}
		if (filled(pipe) == 0 && !pipe->writer_open)
			break;
		if (filled(pipe) == 0 && is_nonblocking(file)) {
			result = -EAGAIN;
			break;
		}
		err = sleepers_wait(&pipe->sleepers, &pipe->lock, 0);
		if (err) {
			result = err;
			break;
		}
	}
	spin_unlock(&pipe->lock);
	return result;
}

static s64 pipe_read(struct file *file, struct span *to, u64 at)
{
	struct pipe *pipe = file->state;
	s64 there, done = 0;
	int err = 0;

	if (to->total == 0)
		return 0;
	there = begin_read(pipe, file);
	if (there <= 0)
		return there;
	there = MIN(there, (s64)to->total);
	while (done < there && !err) {
		u8 *start;
		const u64 part = piece(pipe, pipe->tail + (u64)done, (u64)(there - done), &start);

		err = span_write(to, start, part);
		if (!err)
			done += (s64)part;
	}
	spin_lock(&pipe->lock);
	pipe->tail += (u64)done;
	pipe->reading = false;
	changed(pipe);
	return done > 0 ? done : err;
}

/* ---- writing ---- */

/* Wait for room for `least` bytes and take the turn. Returns the room, or an error. */
static s64 begin_write(struct pipe *pipe, const struct file *file, u64 least)
{
	s64 result;

	spin_lock(&pipe->lock);
	for (;;) {
		const u64 room = PIPE_SIZE - filled(pipe);

		if (!pipe->reader_open) {
			result = -EPIPE;
			break;
		}
		if (!pipe->writing && room >= least) {
			pipe->writing = true;
			result = (s64)room;
			break;
		}
		if (room < least && is_nonblocking(file)) {
			result = -EAGAIN;
			break;
		}
		result = sleepers_wait(&pipe->sleepers, &pipe->lock, 0);
		if (result)
			break;
	}
	spin_unlock(&pipe->lock);
	return result;
}

/* Fill `room` bytes of the ring at most, and give the turn back. */
static s64 fill(struct pipe *pipe, struct span *from, u64 room)
{
	const u64 bytes = MIN(room, from->total);
	u64 done = 0;
	int err = 0;

	while (done < bytes && !err) {
		u8 *start;
		const u64 part = piece(pipe, pipe->head + done, bytes - done, &start);

		err = span_read(from, start, part);
		if (!err)
			done += part;
	}
	spin_lock(&pipe->lock);
	/* a write that must be whole leaves nothing behind if it fails */
	if (!err || bytes > PIPE_ATOMIC)
		pipe->head += done;
	else
		done = 0;
	pipe->writing = false;
	changed(pipe);
	return done > 0 ? (s64)done : err;
}

static s64 pipe_write(struct file *file, struct span *from, u64 at)
{
	struct pipe *pipe = file->state;
	const bool whole = from->total <= PIPE_ATOMIC;
	s64 done = 0;

	while (from->total > 0) {
		s64 result = begin_write(pipe, file, whole ? from->total : 1);

		if (result > 0)
			result = fill(pipe, from, (u64)result);
		if (result < 0)
			return done > 0 ? done : result;
		done += result;
	}
	return done;
}

/* ---- both ends ---- */

static unsigned ready_to_read(struct file *file)
{
	struct pipe *pipe = file->state;
	unsigned ready;

	spin_lock(&pipe->lock);
	ready = (filled(pipe) > 0 ? READY_IN : 0) | (pipe->writer_open ? 0 : READY_HANGUP);
	spin_unlock(&pipe->lock);
	return ready;
}

static unsigned ready_to_write(struct file *file)
{
	struct pipe *pipe = file->state;
	unsigned ready;

	spin_lock(&pipe->lock);
	ready = (PIPE_SIZE - filled(pipe) >= PIPE_ATOMIC ? READY_OUT : 0) |
		(pipe->reader_open ? 0 : READY_ERROR);
	spin_unlock(&pipe->lock);
	return ready;
}

/* `head` and `tail` only rise, and an end closes once. */
static u64 changes_to_read(struct file *file)
{
	struct pipe *pipe = file->state;
	u64 changes;

	spin_lock(&pipe->lock);
	changes = pipe->head + !pipe->writer_open;
	spin_unlock(&pipe->lock);
	return changes;
}

static u64 changes_to_write(struct file *file)
{
	struct pipe *pipe = file->state;
	u64 changes;

	spin_lock(&pipe->lock);
	changes = pipe->tail + !pipe->reader_open;
	spin_unlock(&pipe->lock);
	return changes;
}

static s64 pipe_waiting(struct file *file)
{
	struct pipe *pipe = file->state;
	s64 bytes;

	spin_lock(&pipe->lock);
	bytes = (s64)filled(pipe);
	spin_unlock(&pipe->lock);
	return bytes;
}

/* One end is closed. The pipe ends with the second. */
static void close_end(struct pipe *pipe, bool *open)
{
	bool last;

	spin_lock(&pipe->lock);
	*open = false;
	last = !pipe->reader_open && !pipe->writer_open;
	changed(pipe);
	if (!last)
		return;
	page_put(pipe->page);
	store_free(pipe, sizeof(*pipe));
}

static void release_reader(struct file *file)
{
	struct pipe *pipe = file->state;

	close_end(pipe, &pipe->reader_open);
}

static void release_writer(struct file *file)
{
	struct pipe *pipe = file->state;

	close_end(pipe, &pipe->writer_open);
}

static const struct file_ops reader_ops = {
	.read = pipe_read,
	.ready = ready_to_read,
	.changes = changes_to_read,
	.waiting = pipe_waiting,
	.release = release_reader,
};

static const struct file_ops writer_ops = {
	.write = pipe_write,
	.ready = ready_to_write,
	.changes = changes_to_write,
	.waiting = pipe_waiting,
	.release = release_writer,
};

int pipe_new(u32 flags, struct file **read_end, struct file **write_end)
{
	struct pipe *pipe = store_alloc(sizeof(*pipe));
	struct inode *inode = inode_new(INODE_STREAM, 0600);

	*read_end = *write_end = NULL;
	if (pipe)
		pipe->page = store_pages(PIPE_ORDER, 0);
	if (pipe && pipe->page && inode) {
		*read_end = file_new(inode, &reader_ops, flags);
		if (*read_end)
			*write_end = file_new(inode, &writer_ops, flags | OPEN_WRITE);
	}
	if (*write_end) {
		inode_get(inode);
		format(inode->label, sizeof(inode->label), "pipe:[%llu]", inode->number);
		pipe->lock = SPINLOCK_INIT(LOCK_LEAF);
		pipe->reader_open = pipe->writer_open = true;
		(*read_end)->state = (*write_end)->state = pipe;
		return 0;
	}
	if (*read_end)
		store_free(*read_end, sizeof(**read_end));
	inode_put(inode);
	if (pipe && pipe->page)
		page_put(pipe->page);
	if (pipe)
		store_free(pipe, sizeof(*pipe));
	return -ENOMEM;
}
