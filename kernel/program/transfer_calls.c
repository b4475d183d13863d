/*
 * Calls that transfer bytes: read, write and their relatives, lseek.
 *
 * A transfer at the offset of an open file first takes its range from the offset, and gives back
 * what it did not transfer, if no other thread has used the offset meanwhile.
 */
#include <arch/atomic.h>

#include "kernel/program/calls.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/pipe.h"
#include "kernel/program/signal.h"
#include "mm/mm.h"

enum direction { READ, WRITE };

static bool may(const struct file *file, enum direction direction)
{
	const u32 flags = atomic_load_relaxed(&file->flags), access = flags & OPEN_ACCESS;

	return !(flags & OPEN_PATH) && (direction == READ ? access != OPEN_WRITE : access != 0);
}

static s64 transfer_at(struct file *file, enum direction direction, struct span *span, u64 at)
{
	const struct file_ops *ops = file->ops;

	if (direction == READ)
		return ops->read ? ops->read(file, span, at) : -EINVAL;
	return ops->write ? ops->write(file, span, at) : -EINVAL;
}

static s64 transfer_here(struct file *file, enum direction direction, struct span *span)
{
	const u64 size = inode_size(file->inode);
	s64 done;
	u64 at, end;

	if (!file->ops->seeks)
		return transfer_at(file, direction, span, 0);
	if (direction == WRITE && atomic_load_relaxed(&file->flags) & OPEN_APPEND) {
		done = transfer_at(file, direction, span, 0);
		spin_lock(&file->lock);
		if (done > 0)
			file->offset = span->end;
		spin_unlock(&file->lock);
		return done;
	}
	spin_lock(&file->lock);
	at = file->offset;
	if (direction == READ)
		span->total = MIN(span->total, saturating_sub(size, at));
	end = at + span->total;
	file->offset = end;
	spin_unlock(&file->lock);
	done = transfer_at(file, direction, span, at);
	if (at + (u64)MAX(done, 0) != end) {
		spin_lock(&file->lock);
		if (file->offset == end)
			file->offset = at + (u64)MAX(done, 0);
		spin_unlock(&file->lock);
	}
	return done;
}

/* Result for the thread: a signal restarts the call, and a pipe that nobody reads sends one. */
static s64 tell(s64 result, enum direction direction)
{
	const struct signal_info info = {.signal = SIGPIPE, .code = SI_USER};

	if (result == -EINTR)
		return -ERESTARTSYS;
	if (result == -EPIPE && direction == WRITE)
		signal_send(thread_current(), SIGPIPE, &info);
	return result;
}

/*
 * (descriptor, address, size, place), or with `vector` (descriptor, vectors, count, place). At
 * `place`, or without it at the offset of the open file, which moves.
 */
static s64 transfer(const struct call_args *args, enum direction direction, bool vector, bool place)
{
	struct span span = span_of(args->arg[1], args->arg[2]);
	struct file *file = args->file;
	int err = 0;

	if (vector)
		err = span_of_vector(&span, args->arg[1], args->arg[2]);
	else if ((s64)args->arg[2] < 0)
		err = -EINVAL;
	if (err)
		return err;
	if (!may(file, direction))
		return -EBADF;
	if (!place)
		return tell(transfer_here(file, direction, &span), direction);
	if (!file->ops->seeks)
		return -ESPIPE;
	if ((s64)args->arg[3] < 0)
		return -EINVAL;
	return tell(transfer_at(file, direction, &span, args->arg[3]), direction);
}

#define CALLS(name, function, ...)                                                                 \
	s64 call_##name(const struct call_args *args)                                              \
	{                                                                                          \
		return function(args, __VA_ARGS__);                                                \
	}
CALLS(read, transfer, READ, false, false)
CALLS(write, transfer, WRITE, false, false)
CALLS(pread64, transfer, READ, false, true)
CALLS(pwrite64, transfer, WRITE, false, true)
CALLS(readv, transfer, READ, true, false)
CALLS(writev, transfer, WRITE, true, false)
CALLS(preadv, transfer, READ, true, true)
CALLS(pwritev, transfer, WRITE, true, true)

/* ---- sockets ---- */

enum { MSG_DONTWAIT = 0x40, MSG_NOSIGNAL = 0x4000 };

static s64 pass(const struct call_args *args, enum direction direction)
{
	struct span span = span_of(args->arg[1], args->arg[2]);
	const u64 flags = args->arg[3];
	s64 result;

	if (!pipe_is_socket(args->file))
		return -ENOTSOCK;
	if ((u32)flags & ~(u32)(MSG_DONTWAIT | MSG_NOSIGNAL))
		return -ENOTSUP;
	span.no_wait = flags & MSG_DONTWAIT;
	result = transfer_at(args->file, direction, &span, 0);
	return flags & MSG_NOSIGNAL && result == -EPIPE ? result : tell(result, direction);
}

/* Addresses are neither needed nor told. */
CALLS(sendto, pass, WRITE)
CALLS(recvfrom, pass, READ)

/* ---- from one file to another ---- */

/*
 * Send up to `count` bytes of a file from `at` on, page by page through `buffer`. Returns the
 * number of bytes, or the error of the first page.
 */
static s64 send_through(struct file *to, struct file *from, u64 at, u64 count, void *buffer)
{
	u64 sent = 0;
	s64 got = 1, put = 1;

	while (sent < count && put == got && !thread_must_end(thread_current())) {
		struct span span = span_of_kernel(buffer, MIN(count - sent, PAGE_SIZE));

		put = got = transfer_at(from, READ, &span, at + sent);
		if (got <= 0)
			break;
		span = span_of_kernel(buffer, (u64)got);
		put = transfer_here(to, WRITE, &span);
		sent += (u64)MAX(put, 0);
	}
	return sent > 0 ? (s64)sent : MIN(put, 0);
}

/* At the place that the program names, which moves on, or else at the offset, which does. */
static s64 send_file(struct file *to, struct file *from, user_t place_at, u64 count)
{
	u64 at = from->offset;
	struct page *page;
	s64 sent;

	if (place_at && user_read(&at, place_at, sizeof(at)) < 0)
		return -EFAULT;
	if ((s64)at < 0)
		return -EINVAL;
	page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	if (!page)
		return -ENOMEM;
	sent = send_through(to, from, at, MIN(count, SPAN_BYTES_MAX), page_address(page));
	page_free(page);
	if (sent <= 0)
		return sent;
	at += (u64)sent;
	if (place_at)
		return user_write(place_at, &at, sizeof(at)) < 0 ? -EFAULT : sent;
	spin_lock(&from->lock);
	from->offset = at;
	spin_unlock(&from->lock);
	return sent;
}

s64 call_sendfile(const struct call_args *args)
{
	struct file *to = args->file, *from = file_of((int)args->arg[1]);
	s64 result;

	if (!from || !may(to, WRITE) || !may(from, READ))
		result = -EBADF;
	else if (!from->ops->seeks)
		result = args->arg[2] ? -ESPIPE : -EINVAL;
	else if (atomic_load_relaxed(&to->flags) & OPEN_APPEND || (s64)args->arg[3] < 0)
		result = -EINVAL;
	else
		result = send_file(to, from, args->arg[2], args->arg[3]);
	file_put(from);
	return tell(result, WRITE);
}

/* ---- the offset ---- */

enum whence { SEEK_SET, SEEK_CURRENT, SEEK_END, SEEK_DATA, SEEK_HOLE };

/* The new offset. All of a file counts as data, and its end as the only hole. Lock held. */
static s64 sought(const struct file *file, s64 by, u64 whence)
{
	const s64 size = (s64)inode_size(file->inode);
	const s64 from[] = {[SEEK_CURRENT] = (s64)file->offset, [SEEK_END] = size, [SEEK_HOLE] = 0};
	s64 to;

	if (whence > SEEK_HOLE)
		return -EINVAL;
	if (whence >= SEEK_DATA && (by < 0 || by >= size))
		return -ENXIO;
	if (whence == SEEK_HOLE)
		return size;
	if (__builtin_add_overflow(from[whence], by, &to))
		return -EOVERFLOW;
	return to < 0 ? -EINVAL : to;
}

s64 call_lseek(const struct call_args *args)
{
	struct file *file = args->file;
	s64 to;

	if (!file->ops->seeks) /* devices without an offset are always at 0 */
		return file->inode->kind == INODE_DEVICE && !file->ops->terminal ? 0 : -ESPIPE;
	spin_lock(&file->lock);
	to = sought(file, (s64)args->arg[1], args->arg[2]);
	if (to >= 0)
		file->offset = (u64)to;
	spin_unlock(&file->lock);
	return to;
}
