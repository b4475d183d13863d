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
#include "kernel/program/signal.h"
#include "mm/mm.h"

enum direction { READ, WRITE };

/* Instead of a place: transfer at the offset of the open file, and move it. */
enum { AT_OFFSET = -1 };

static bool may(const struct file *file, enum direction direction)
{
	const u32 flags = atomic_load_relaxed(&file->flags);
	const u32 access = flags & OPEN_ACCESS;

	if (flags & OPEN_PATH)
		return false;
	return direction == READ ? access != OPEN_WRITE : access != 0;
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

	if (!file->ops->seeks ||
	    (direction == WRITE && atomic_load_relaxed(&file->flags) & OPEN_APPEND))
		return transfer_at(file, direction, span, 0);
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

static s64 transfer(u64 descriptor, enum direction direction, struct span *span, s64 at)
{
	struct file *file = file_of((int)descriptor);
	s64 result;

	if (!file)
		return -EBADF;
	if (!may(file, direction))
		result = -EBADF;
	else if (at == AT_OFFSET)
		result = transfer_here(file, direction, span);
	else if (!file->ops->seeks)
		result = -ESPIPE;
	else
		result = at < 0 ? -EINVAL : transfer_at(file, direction, span, (u64)at);
	file_put(file);
	return tell(result, direction);
}

static s64 transfer_one(const struct call_args *args, enum direction direction, s64 at)
{
	struct span span = span_of(args->arg[1], args->arg[2]);

	if ((s64)args->arg[2] < 0)
		return -EINVAL;
	return transfer(args->arg[0], direction, &span, at);
}

static s64 transfer_vector(const struct call_args *args, enum direction direction, s64 at)
{
	struct span span;
	const int err = span_of_vector(&span, args->arg[1], args->arg[2]);

	return err ? err : transfer(args->arg[0], direction, &span, at);
}

/* A place that a call names. AT_OFFSET is no place. */
static s64 place(u64 argument)
{
	return (s64)argument < 0 ? AT_OFFSET - 1 : (s64)argument;
}

static s64 call_read(const struct call_args *args)
{
	return transfer_one(args, READ, AT_OFFSET);
}
CALL(read, 0);

static s64 call_write(const struct call_args *args)
{
	return transfer_one(args, WRITE, AT_OFFSET);
}
CALL(write, 1);

static s64 call_pread64(const struct call_args *args)
{
	return transfer_one(args, READ, place(args->arg[3]));
}
CALL(pread64, 17);

static s64 call_pwrite64(const struct call_args *args)
{
	return transfer_one(args, WRITE, place(args->arg[3]));
}
CALL(pwrite64, 18);

static s64 call_readv(const struct call_args *args)
{
	return transfer_vector(args, READ, AT_OFFSET);
}
CALL(readv, 19);

static s64 call_writev(const struct call_args *args)
{
	return transfer_vector(args, WRITE, AT_OFFSET);
}
CALL(writev, 20);

static s64 call_preadv(const struct call_args *args)
{
	return transfer_vector(args, READ, place(args->arg[3]));
}
CALL(preadv, 295);

static s64 call_pwritev(const struct call_args *args)
{
	return transfer_vector(args, WRITE, place(args->arg[3]));
}
CALL(pwritev, 296);

/* The place -1 means the offset. No flag is known. */
static s64 transfer_vector2(const struct call_args *args, enum direction direction)
{
	if (args->arg[5] != 0)
		return -ENOTSUP;
	return transfer_vector(args, direction,
			       (s64)args->arg[3] == -1 ? AT_OFFSET : place(args->arg[3]));
}

static s64 call_preadv2(const struct call_args *args)
{
	return transfer_vector2(args, READ);
}
CALL(preadv2, 327);

static s64 call_pwritev2(const struct call_args *args)
{
	return transfer_vector2(args, WRITE);
}
CALL(pwritev2, 328);

/* ---- from one file to another ---- */

/*
 * Send up to `count` bytes of a file from `at` on, page by page through `buffer`. Returns the
 * number of bytes, or the error of the first page.
 */
static s64 send_through(struct file *to, struct file *from, u64 at, u64 count, void *buffer)
{
	u64 sent = 0;
	s64 put = 0;

	while (sent < count && !thread_must_end(thread_current())) {
		struct span span = span_of_kernel(buffer, MIN(count - sent, PAGE_SIZE));
		const s64 got = transfer_at(from, READ, &span, at + sent);

		put = got;
		if (got <= 0)
			break;
		span = span_of_kernel(buffer, (u64)got);
		put = transfer_here(to, WRITE, &span);
		if (put <= 0)
			break;
		sent += (u64)put;
		if (put < got)
			break;
	}
	return sent > 0 ? (s64)sent : put;
}

static s64 send_bytes(struct file *to, struct file *from, u64 at, u64 count)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
	s64 sent;

	if (!page)
		return -ENOMEM;
	sent = send_through(to, from, at, MIN(count, SPAN_BYTES_MAX), page_address(page));
	page_free(page);
	return sent;
}

/* At the place that the program names, which moves on, or else at the offset, which does. */
static s64 send_from(struct file *to, struct file *from, user_t place_at, u64 count)
{
	u64 at = from->offset;
	s64 sent;

	if (place_at && user_read(&at, place_at, sizeof(at)) < 0)
		return -EFAULT;
	if ((s64)at < 0)
		return -EINVAL;
	sent = send_bytes(to, from, at, count);
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

static s64 call_sendfile(const struct call_args *args)
{
	struct file *to = file_of((int)args->arg[0]), *from = file_of((int)args->arg[1]);
	s64 result;

	if (!to || !from || !may(to, WRITE) || !may(from, READ))
		result = -EBADF;
	else if (!from->ops->seeks)
		result = args->arg[2] ? -ESPIPE : -EINVAL;
	else if (atomic_load_relaxed(&to->flags) & OPEN_APPEND || (s64)args->arg[3] < 0)
		result = -EINVAL;
	else
		result = send_from(to, from, args->arg[2], args->arg[3]);
	file_put(to);
	file_put(from);
	return tell(result, WRITE);
}
CALL(sendfile, 40);

/* ---- the offset ---- */

enum whence { SEEK_SET, SEEK_CURRENT, SEEK_END, SEEK_DATA, SEEK_HOLE };

/* The new offset. All of a file counts as data, and its end as the only hole. Lock held. */
static s64 sought(const struct file *file, s64 by, u64 whence)
{
	const s64 size = (s64)inode_size(file->inode);

	switch (whence) {
	case SEEK_SET:
		return by < 0 ? -EINVAL : by;
	case SEEK_CURRENT:
	case SEEK_END: {
		const s64 from = whence == SEEK_END ? size : (s64)file->offset;
		s64 to;

		if (__builtin_add_overflow(from, by, &to))
			return -EOVERFLOW;
		return to < 0 ? -EINVAL : to;
	}
	case SEEK_DATA:
	case SEEK_HOLE:
		if (by < 0 || by >= size)
			return -ENXIO;
		return whence == SEEK_DATA ? by : size;
	default:
		return -EINVAL;
	}
}

static s64 call_lseek(const struct call_args *args)
{
	struct file *file = file_of((int)args->arg[0]);
	s64 to;

	if (!file)
		return -EBADF;
	if (!file->ops->seeks) {
		/* devices without an offset are always at 0 */
		to = file->inode->kind == INODE_DEVICE && !file->ops->terminal ? 0 : -ESPIPE;
	} else {
		spin_lock(&file->lock);
		to = sought(file, (s64)args->arg[1], args->arg[2]);
		if (to >= 0)
			file->offset = (u64)to;
		spin_unlock(&file->lock);
	}
	file_put(file);
	return to;
}
CALL(lseek, 8);
