/*
 * Calls about descriptors: closing, duplicating, flags, ioctl, sizes, and files that never have a
 * name (pipes, eventfds, memfds). Descriptors are not closed by exec(), which does not exist, so
 * FD_CLOEXEC is accepted and forgotten.
 */
#include <arch/atomic.h>

#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/program/calls.h"
#include "kernel/program/event.h"
#include "kernel/program/cut.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/pipe.h"

enum { CLOSE_ON_EXEC = 02000000 };

static bool is_descriptor(u64 argument)
{
	return (u32)argument < DESCRIPTORS_MAX;
}

/* ---- close and dup ---- */

static s64 call_close(const struct call_args *args)
{
	struct file *file = NULL;

	if (is_descriptor(args->arg[0]))
		file = descriptor_set((int)args->arg[0], NULL);
	if (!file)
		return -EBADF;
	file_put(file);
	return 0;
}
CALL(close, 3);

enum { CLOSE_RANGE_UNSHARE = 2, CLOSE_RANGE_CLOEXEC = 4 };

static s64 call_close_range(const struct call_args *args)
{
	const u32 first = (u32)args->arg[0], last = (u32)args->arg[1], flags = (u32)args->arg[2];

	if (first > last || flags & ~(u32)(CLOSE_RANGE_UNSHARE | CLOSE_RANGE_CLOEXEC))
		return -EINVAL;
	if (flags & CLOSE_RANGE_CLOEXEC)
		return 0;
	for (u32 i = first; i <= last && i < DESCRIPTORS_MAX; i++)
		file_put(descriptor_set((int)i, NULL));
	return 0;
}
CALL(close_range, 436);

/* Give a file, whose reference the caller holds, a descriptor. */
static s64 give(struct file *file, int from)
{
	const int descriptor = descriptor_give(file, from);

	if (descriptor < 0)
		file_put(file);
	return descriptor;
}

static s64 call_dup(const struct call_args *args)
{
	struct file *file = file_of((int)args->arg[0]);

	return file ? give(file, 0) : -EBADF;
}
CALL(dup, 32);

static s64 duplicate_to(u64 from, u64 to)
{
	struct file *file;

	if (!is_descriptor(to))
		return -EBADF;
	file = file_of((int)from);
	if (!file)
		return -EBADF;
	file_put(descriptor_set((int)to, file));
	return (s64)(u32)to;
}

static s64 call_dup2(const struct call_args *args)
{
	return duplicate_to(args->arg[0], args->arg[1]);
}
CALL(dup2, 33);

static s64 call_dup3(const struct call_args *args)
{
	if ((u32)args->arg[0] == (u32)args->arg[1] || args->arg[2] & ~(u64)CLOSE_ON_EXEC)
		return -EINVAL;
	return duplicate_to(args->arg[0], args->arg[1]);
}
CALL(dup3, 292);

/* ---- fcntl ---- */

enum {
	F_DUPFD = 0,
	F_GETFD = 1,
	F_SETFD = 2,
	F_GETFL = 3,
	F_SETFL = 4,
	F_GETLK = 5,
	F_SETLK = 6,
	F_SETLKW = 7,
	F_OFD_GETLK = 36,
	F_OFD_SETLK = 37,
	F_OFD_SETLKW = 38,
	F_DUPFD_CLOEXEC = 1030,
	F_SETPIPE_SZ = 1031,
	F_GETPIPE_SZ = 1032,
	F_ADD_SEALS = 1033,
	F_GET_SEALS = 1034,
};

struct program_flock {
	int16_t type, whence;
	u32 pad;
	s64 start, length;
	s32 owner;
	u32 pad2;
};

enum { F_UNLCK = 2 };

/* There is one process, and its own locks never stand in its way. */
static s64 nobody_locks(user_t to)
{
	struct program_flock flock;
	int err = user_read(&flock, to, sizeof(flock));

	if (err)
		return err;
	flock.type = F_UNLCK;
	err = user_write(to, &flock, sizeof(flock));
	return err;
}

static s64 set_flags(struct file *file, u32 flags)
{
	u32 old = atomic_load_relaxed(&file->flags);

	while (!atomic_cas(&file->flags, old, (old & ~(u32)OPEN_CHANGED) | (flags & OPEN_CHANGED)))
		old = atomic_load_relaxed(&file->flags);
	return 0;
}

static s64 control(struct file *file, u32 command, u64 argument)
{
	const bool is_pipe = file->inode->kind == INODE_STREAM && file->ops->waiting;

	switch (command) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		if (!is_descriptor(argument))
			return -EINVAL;
		file_get(file);
		return give(file, (int)argument);
	case F_GETFD:
	case F_SETFD:
		return 0;
	case F_GETFL:
		return atomic_load_relaxed(&file->flags) | OPEN_LARGE;
	case F_SETFL:
		return set_flags(file, (u32)argument);
	case F_GETLK:
	case F_OFD_GETLK:
		return nobody_locks(argument);
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return 0;
	case F_GETPIPE_SZ:
		return is_pipe ? PIPE_SIZE : -EBADF;
	case F_SETPIPE_SZ:
		if (!is_pipe)
			return -EBADF;
		return argument <= PIPE_SIZE ? PIPE_SIZE : -EPERM;
	case F_ADD_SEALS:
		return file_add_seals(file, argument);
	case F_GET_SEALS:
		if (!file_has_seal(file->inode, SEALS_THERE))
			return -EINVAL;
		return atomic_load_relaxed(&file->inode->seals) & SEALS_ALL;
	default:
		return -EINVAL;
	}
}

static s64 call_fcntl(const struct call_args *args)
{
	struct file *file = file_of((int)args->arg[0]);
	s64 result;

	if (!file)
		return -EBADF;
	result = control(file, (u32)args->arg[1], args->arg[2]);
	file_put(file);
	return result;
}
CALL(fcntl, 72);

/* ---- ioctl ---- */

enum {
	TCGETS = 0x5401,
	TCSETS = 0x5402,
	TCSETSW = 0x5403,
	TCSETSF = 0x5404,
	TIOCGWINSZ = 0x5413,
	FIONREAD = 0x541b,
	FIONBIO = 0x5421,
	FIONCLEX = 0x5450,
	FIOCLEX = 0x5451,
};

/* struct termios of the kernel's ABI. */
struct program_termios {
	u32 input, output, control, local;
	u8 line, character[19];
};

struct program_winsize {
	u16 rows, columns, x, y;
};

/* Lines are edited and echoed, and a newline goes out as carriage return and newline. */
static const struct program_termios termios = {
	.input = 0400 /* ICRNL */,
	.output = 05 /* OPOST, ONLCR */,
	.control = 0277 /* 38400 baud, 8 bits, CREAD */,
	.local = 032 /* ICANON, ECHO, ECHOE */,
	.character = {[2] = 127 /* VERASE */, [3] = 21 /* VKILL */, [4] = 4 /* VEOF */},
};

static const struct program_winsize winsize = {.rows = 25, .columns = 80};

static s64 waiting_bytes(struct file *file, user_t to)
{
	s64 bytes;
	int count;

	if (!file->ops->waiting)
		return -ENOTTY;
	bytes = file->ops->waiting(file);
	count = (int)MIN(bytes, 0x7fffffff);
	return user_write(to, &count, sizeof(count));
}

static s64 set_nonblocking(struct file *file, user_t from)
{
	int on;
	const int err = user_read(&on, from, sizeof(on));
	const u32 others = atomic_load_relaxed(&file->flags) & ~(u32)OPEN_NONBLOCK;

	return err ? err : set_flags(file, others | (on ? OPEN_NONBLOCK : 0));
}

static s64 device_control(struct file *file, u32 request, user_t argument)
{
	switch (request) {
	case FIONREAD:
		return waiting_bytes(file, argument);
	case FIONBIO:
		return set_nonblocking(file, argument);
	case FIOCLEX:
	case FIONCLEX:
		return 0;
	default:
		break;
	}
	if (!file->ops->terminal)
		return -ENOTTY;
	switch (request) {
	case TCGETS:
		return user_write(argument, &termios, sizeof(termios));
	case TCSETS:
	case TCSETSW:
	case TCSETSF:
		return 0;
	case TIOCGWINSZ:
		return user_write(argument, &winsize, sizeof(winsize));
	default:
		return -ENOTTY;
	}
}

static s64 call_ioctl(const struct call_args *args)
{
	struct file *file = file_of((int)args->arg[0]);
	s64 result;

	if (!file)
		return -EBADF;
	if (atomic_load_relaxed(&file->flags) & OPEN_PATH)
		result = -EBADF;
	else
		result = device_control(file, (u32)args->arg[1], args->arg[2]);
	file_put(file);
	return result;
}
CALL(ioctl, 16);

/* ---- sizes ---- */

/* The file of a descriptor if it is regular and open for writing, else an error. */
static int writable_file(u64 descriptor, struct file **file)
{
	int err = 0;
	u32 flags;

	*file = file_of((int)descriptor);
	if (!*file)
		return -EBADF;
	flags = atomic_load_relaxed(&(*file)->flags);
	if ((flags & OPEN_ACCESS) == 0 || flags & OPEN_PATH ||
	    (*file)->inode->kind != INODE_REGULAR)
		err = -EINVAL;
	if (err)
		file_put(*file);
	return err;
}

static s64 call_ftruncate(const struct call_args *args)
{
	struct file *file;
	int err = (s64)args->arg[1] < 0 ? -EINVAL : writable_file(args->arg[0], &file);

	if (err)
		return err;
	err = file_resize(file->inode, args->arg[1]);
	inode_touch(file->inode);
	file_put(file);
	return err;
}
CALL(ftruncate, 77);

enum { FALLOC_KEEP_SIZE = 1, FALLOC_PUNCH_HOLE = 2 };

static int allocate(struct file *file, u64 mode, u64 at, u64 size)
{
	struct inode *inode = file->inode;
	const u32 flags = atomic_load_relaxed(&file->flags);

	if ((flags & OPEN_ACCESS) == 0 || (flags & OPEN_PATH))
		return -EBADF;
	if (inode->kind != INODE_REGULAR)
		return inode->kind == INODE_STREAM ? -ESPIPE : -ENODEV;
	if (at + size > CONTENTS_MAX)
		return -EFBIG;
	if (mode & FALLOC_PUNCH_HOLE)
		return file_punch(inode, at, size);
	if (file_has_seal(inode, SEAL_GROW) && at + size > inode_size(inode))
		return -EPERM;
	return contents_reserve(&inode->contents, at, size,
				mode ? CONTENTS_KEEP_SIZE : CONTENTS_EXTEND);
}

static s64 call_fallocate(const struct call_args *args)
{
	const s64 at = (s64)args->arg[2], size = (s64)args->arg[3];
	const u64 mode = args->arg[1];
	struct file *file = file_of((int)args->arg[0]);
	int err;

	if (!file)
		return -EBADF;
	if (at < 0 || size <= 0)
		err = -EINVAL;
	else if (mode > (FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE) || mode == FALLOC_PUNCH_HOLE)
		err = -ENOTSUP;
	else
		err = allocate(file, mode, (u64)at, (u64)size);
	if (!err)
		inode_touch(file->inode);
	file_put(file);
	return err;
}
CALL(fallocate, 285);

/* ---- calls with nothing to do for files in memory ---- */

static s64 nothing_for(u64 descriptor)
{
	struct file *file = file_of((int)descriptor);

	if (!file)
		return -EBADF;
	file_put(file);
	return 0;
}

static s64 call_fsync(const struct call_args *args)
{
	return nothing_for(args->arg[0]);
}
CALL(fsync, 74);

static s64 call_fdatasync(const struct call_args *args)
{
	return nothing_for(args->arg[0]);
}
CALL(fdatasync, 75);

static s64 call_flock(const struct call_args *args)
{
	return nothing_for(args->arg[0]);
}
CALL(flock, 73);

static s64 call_fadvise64(const struct call_args *args)
{
	return nothing_for(args->arg[0]);
}
CALL(fadvise64, 221);

static s64 call_sync(const struct call_args *args)
{
	return 0;
}
CALL(sync, 162);

/* ---- files without a name ---- */

static s64 make_pipe(user_t to, u64 flags)
{
	struct file *read_end, *write_end;
	int pair[2], err;

	if (flags & ~(u64)(OPEN_NONBLOCK | CLOSE_ON_EXEC))
		return -EINVAL;
	err = pipe_new((u32)flags & OPEN_NONBLOCK, &read_end, &write_end);
	if (err)
		return err;
	pair[0] = descriptor_give(read_end, 0);
	pair[1] = pair[0] < 0 ? pair[0] : descriptor_give(write_end, 0);
	if (pair[1] >= 0) {
		err = user_write(to, pair, sizeof(pair));
		if (!err)
			return 0;
		file_put(descriptor_set(pair[1], NULL));
		file_put(descriptor_set(pair[0], NULL));
		return err;
	}
	if (pair[0] >= 0)
		file_put(descriptor_set(pair[0], NULL));
	else
		file_put(read_end);
	file_put(write_end);
	return -EMFILE;
}

static s64 call_pipe(const struct call_args *args)
{
	return make_pipe(args->arg[0], 0);
}
CALL(pipe, 22);

static s64 call_pipe2(const struct call_args *args)
{
	return make_pipe(args->arg[0], args->arg[1]);
}
CALL(pipe2, 293);

static s64 make_event(u64 count, u64 flags)
{
	struct file *file;

	if (flags & ~(u64)(EVENT_SEMAPHORE | OPEN_NONBLOCK | CLOSE_ON_EXEC))
		return -EINVAL;
	file = event_new((u32)count, flags & EVENT_SEMAPHORE, (u32)flags & OPEN_NONBLOCK);
	return file ? give(file, 0) : -ENOMEM;
}

static s64 call_eventfd(const struct call_args *args)
{
	return make_event(args->arg[0], 0);
}
CALL(eventfd, 284);

static s64 call_eventfd2(const struct call_args *args)
{
	return make_event(args->arg[0], args->arg[1]);
}
CALL(eventfd2, 290);

/* MFD_CLOEXEC and MFD_EXEC mean nothing here. */
enum { MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2, MFD_NOEXEC_SEAL = 8, MFD_EXEC = 16 };
enum { MFD_ALL = MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | MFD_EXEC };
enum { MEMFD_NAME_MAX = 249 };

static s64 call_memfd_create(const struct call_args *args)
{
	char name[MEMFD_NAME_MAX + 1];
	const s64 length = user_read_text(name, args->arg[0], sizeof(name));
	const u64 flags = args->arg[1];
	struct inode *inode;
	struct file *file;

	if (length < 0)
		return length == -ENAMETOOLONG ? -EINVAL : length;
	if ((flags & ~(u64)MFD_ALL) || ((flags & MFD_EXEC) && (flags & MFD_NOEXEC_SEAL)))
		return -EINVAL;
	inode = inode_new(INODE_REGULAR, flags & MFD_NOEXEC_SEAL ? 0666 : 0777);
	if (!inode)
		return -ENOMEM;
	inode->seals = SEALS_THERE | (flags & MFD_NOEXEC_SEAL     ? SEAL_EXEC
				      : flags & MFD_ALLOW_SEALING ? 0
								  : SEAL_SEAL);
	format(inode->label, sizeof(inode->label), "/memfd:%s", name);
	file = file_new(inode, &regular_ops, OPEN_BOTH);
	if (!file) {
		inode_put(inode);
		return -ENOMEM;
	}
	return give(file, 0);
}
CALL(memfd_create, 319);
