/*
 * Calls about descriptors: closing, duplicating, flags, ioctl, sizes, and files that never have a
 * name (pipes, sockets, memfds). Descriptors are not closed by exec(), which does not exist, so
 * FD_CLOEXEC is accepted and forgotten.
 */
#include <arch/atomic.h>

#include "kernel/lib/format.h"
#include "kernel/program/calls.h"
#include "kernel/program/cut.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/pipe.h"

static bool is_descriptor(u64 argument)
{
	return (u32)argument < DESCRIPTORS_MAX;
}

/* ---- close and dup ---- */

s64 call_close(const struct call_args *args)
{
	struct file *file =
		descriptor_set((int)args->arg[0], NULL); /* args->file, or a later one */

	file_put(file);
	return file ? 0 : -EBADF;
}

static s64 duplicate(struct file *file, u64 from)
{
	file_get(file);
	return descriptor_for(file, (int)from);
}

s64 call_dup(const struct call_args *args)
{
	return duplicate(args->file, 0);
}

s64 call_dup2(const struct call_args *args)
{
	if (!is_descriptor(args->arg[1]))
		return -EBADF;
	file_get(args->file);
	file_put(descriptor_set((int)args->arg[1], args->file));
	return (s64)(u32)args->arg[1];
}

s64 call_dup3(const struct call_args *args)
{
	if ((u32)args->arg[0] == (u32)args->arg[1] || args->arg[2] & ~(u64)OPEN_CLOSE_ON_EXEC)
		return -EINVAL;
	return call_dup2(args);
}

/* ---- fcntl ---- */

enum { F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW };
enum { F_OFD_GETLK = 36, F_OFD_SETLK, F_OFD_SETLKW };
enum { F_DUPFD_CLOEXEC = 1030, F_ADD_SEALS = 1033, F_GET_SEALS };
enum { F_UNLCK = 2 };

static s64 set_flags(struct file *file, u32 flags)
{
	u32 old = atomic_load_relaxed(&file->flags);

	while (!atomic_cas(&file->flags, old, (old & ~(u32)OPEN_CHANGED) | (flags & OPEN_CHANGED)))
		old = atomic_load_relaxed(&file->flags);
	return 0;
}

/* Locks of the only process never stand in its way: the type in struct flock becomes F_UNLCK. */
s64 call_fcntl(const struct call_args *args)
{
	const u64 argument = args->arg[2];
	const u16 unlocked = F_UNLCK;

	switch ((u32)args->arg[1]) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return is_descriptor(argument) ? duplicate(args->file, argument) : -EINVAL;
	case F_GETFL:
		return atomic_load_relaxed(&args->file->flags) | OPEN_LARGE;
	case F_SETFL:
		return set_flags(args->file, (u32)argument);
	case F_GETLK:
	case F_OFD_GETLK:
		return user_write(argument, &unlocked, sizeof(unlocked));
	case F_GETFD:
	case F_SETFD:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return 0;
	case F_ADD_SEALS:
		return file_add_seals(args->file, argument);
	case F_GET_SEALS:
		if (!file_has_seal(args->file->inode, SEALS_THERE))
			return -EINVAL;
		return atomic_load_relaxed(&args->file->inode->seals) & SEALS_ALL;
	default:
		return -EINVAL;
	}
}

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

s64 call_ioctl(const struct call_args *args)
{
	struct file *file = args->file;
	const u32 others = atomic_load_relaxed(&file->flags) & ~(u32)OPEN_NONBLOCK;
	const user_t at = args->arg[2];
	const bool terminal = file->ops->terminal;
	s64 waiting;
	int value = 0;

	switch ((u32)args->arg[1]) {
	case FIONREAD:
		waiting = file_look(file).waiting;
		value = (int)MIN(waiting, 0x7fffffff);
		return waiting < 0 ? -ENOTTY : user_write(at, &value, sizeof(value));
	case FIONBIO:
		if (user_read(&value, at, sizeof(value)) < 0)
			return -EFAULT;
		return set_flags(file, others | (value ? OPEN_NONBLOCK : 0));
	case FIOCLEX:
	case FIONCLEX:
		return 0;
	case TCGETS:
		return terminal ? user_write(at, &termios, sizeof(termios)) : -ENOTTY;
	case TCSETS:
	case TCSETSW:
	case TCSETSF:
		return terminal ? 0 : -ENOTTY;
	case TIOCGWINSZ:
		return terminal ? user_write(at, &winsize, sizeof(winsize)) : -ENOTTY;
	default:
		return -ENOTTY;
	}
}

/* ---- sizes ---- */

static bool is_writable(const struct file *file)
{
	return (atomic_load_relaxed(&file->flags) & OPEN_ACCESS) != 0 &&
	       file->inode->kind == INODE_REGULAR;
}

s64 call_ftruncate(const struct call_args *args)
{
	if ((s64)args->arg[1] < 0 || !is_writable(args->file))
		return -EINVAL;
	return file_resize(args->file->inode, args->arg[1]);
}

enum { FALLOC_KEEP_SIZE = 1, FALLOC_PUNCH_HOLE = 2 };

static int allocate(struct file *file, u64 mode, u64 at, u64 size)
{
	struct inode *inode = file->inode;
	const u32 flags = atomic_load_relaxed(&file->flags);

	if ((flags & OPEN_ACCESS) == 0)
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

s64 call_fallocate(const struct call_args *args)
{
	const s64 at = (s64)args->arg[2], size = (s64)args->arg[3];
	const u64 mode = args->arg[1];
	int err;

	if (at < 0 || size <= 0)
		return -EINVAL;
	if (mode > (FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE) || mode == FALLOC_PUNCH_HOLE)
		return -ENOTSUP;
	err = allocate(args->file, mode, (u64)at, (u64)size);
	if (!err)
		inode_touch(args->file->inode);
	return err;
}

/* ---- files without a name ---- */

static s64 make_pair(enum pipe_kind kind, u64 flags, user_t to)
{
	struct file *ends[2];
	int pair[2], err;

	if (flags & ~(u64)(OPEN_NONBLOCK | OPEN_CLOSE_ON_EXEC))
		return -EINVAL;
	err = pipe_new(kind, (u32)flags & OPEN_NONBLOCK, ends);
	if (err)
		return err;
	pair[0] = descriptor_for(ends[0], 0);
	pair[1] = descriptor_for(ends[1], 0);
	err = MIN(pair[0], pair[1]) < 0 ? -EMFILE : user_write(to, pair, sizeof(pair));
	for (unsigned i = 0; err && i < 2; i++)
		if (pair[i] >= 0)
			file_put(descriptor_set(pair[i], NULL));
	return err;
}

s64 call_pipe2(const struct call_args *args)
{
	return make_pair(PIPE_ONE_WAY, args->arg[1], args->arg[0]);
}

enum { AF_UNIX = 1, SOCK_STREAM = 1 };

s64 call_socketpair(const struct call_args *args)
{
	const u32 kind = (u32)args->arg[1];

	if (args->arg[0] != AF_UNIX)
		return -EAFNOSUPPORT;
	if ((kind & 0xf) != SOCK_STREAM || args->arg[2] > AF_UNIX)
		return -EPROTONOSUPPORT;
	return make_pair(PIPE_SOCKETS, kind & ~0xfu, args->arg[3]);
}

/* SHUT_RD, SHUT_WR and SHUT_RDWR are 0, 1 and 2. */
s64 call_shutdown(const struct call_args *args)
{
	if (!pipe_is_socket(args->file))
		return -ENOTSOCK;
	if (args->arg[1] > 2)
		return -EINVAL;
	pipe_shut(args->file, (unsigned)args->arg[1] + 1);
	return 0;
}

/* The address is only a family: the socket has no name. */
s64 call_getsockname(const struct call_args *args)
{
	const u16 family = AF_UNIX;
	u32 room, bytes = sizeof(family);

	if (!pipe_is_socket(args->file))
		return -ENOTSOCK;
	if (user_read(&room, args->arg[2], sizeof(room)) < 0 ||
	    user_write(args->arg[1], &family, MIN(room, bytes)) < 0)
		return -EFAULT;
	return user_write(args->arg[2], &bytes, sizeof(bytes));
}

/* MFD_CLOEXEC and MFD_EXEC mean nothing here. */
enum { MFD_CLOEXEC = 1, MFD_ALLOW_SEALING = 2, MFD_HUGETLB = 4 };
enum { MFD_NOEXEC_SEAL = 8, MFD_EXEC = 16, MFD_ALL = 31 };
enum { MEMFD_NAME_MAX = 249 };

s64 call_memfd_create(const struct call_args *args)
{
	char name[MEMFD_NAME_MAX + 1];
	const s64 length = user_read_text(name, args->arg[0], sizeof(name));
	const u64 flags = args->arg[1];
	const enum pt_level level = flags & MFD_HUGETLB ? huge_level(flags) : PT_PAGE;
	struct inode *inode;
	struct file *file;

	if (length < 0)
		return length == -ENAMETOOLONG ? -EINVAL : length;
	if ((flags & ~(MFD_ALL | (flags & MFD_HUGETLB ? 0x3fULL << 26 : 0))) ||
	    ((flags & MFD_EXEC) && (flags & MFD_NOEXEC_SEAL)))
		return -EINVAL;
	if ((flags & MFD_HUGETLB) && level == PT_PAGE)
		return -ENODEV;
	inode = inode_new(INODE_REGULAR, flags & MFD_NOEXEC_SEAL ? 0666 : 0777);
	if (inode) {
		inode->contents.level = level;
		inode->seals = SEALS_THERE | (flags & MFD_NOEXEC_SEAL     ? SEAL_EXEC
					      : flags & MFD_ALLOW_SEALING ? 0
									  : SEAL_SEAL);
		format(inode->label, sizeof(inode->label), "/memfd:%s", name);
	}
	file = file_new(inode, level > PT_PAGE ? &huge_ops : &regular_ops, OPEN_BOTH);
	return file ? descriptor_for(file, 0) : -ENOMEM;
}
