/*
 * Open files from the inside: what file.h hides, and the operations of each kind of file.
 *
 * Locking: `lock` guards the offset. A read or write of a file with an offset first takes its range
 * from the offset, so that CPUs which share an open file get different ranges, and then transfers
 * without a lock.
 */
#pragma once

#include "kernel/core/lock.h"
#include "kernel/program/inode.h"
#include "kernel/program/span.h"
#include "mm/vm/object.h"

/* Flags of open(2), as on Linux. */
enum {
	OPEN_ACCESS = 03, /* 0: read, 1: write, 2: both */
	OPEN_WRITE = 01,
	OPEN_BOTH = 02,
	OPEN_CREATE = 0100,
	OPEN_EXCLUSIVE = 0200,
	OPEN_TRUNCATE = 01000,
	OPEN_APPEND = 02000,
	OPEN_NONBLOCK = 04000,
	OPEN_LARGE = 0100000,
	OPEN_DIRECTORY = 0200000,
	OPEN_NO_FOLLOW = 0400000,
	OPEN_PATH = 010000000,
	OPEN_UNNAMED = 020000000,                   /* O_TMPFILE without O_DIRECTORY */
	OPEN_CHANGED = OPEN_APPEND | OPEN_NONBLOCK, /* flags that fcntl() can set */
};

/* Events of poll(2). */
enum {
	READY_IN = 0x001,
	READY_OUT = 0x004,
	READY_ERROR = 0x008,
	READY_HANGUP = 0x010,
	READY_INVALID = 0x020,
	READY_PLAIN = 0x040 | 0x100, /* POLLRDNORM, POLLWRNORM */
};

struct file {
	struct vm_object object; /* areas refer to the file by this; has its reference count */
	u32 flags;               /* of open(); atomic */
	const struct file_ops *ops;
	struct inode *inode; /* one reference */
	void *state;         /* of the kind: the pipe, the eventfd */
	struct spinlock lock;
	u64 offset;
};

struct file_ops {
	/*
	 * Transfer at most span->total bytes; `at` is the offset where there is one. Return the
	 * number of bytes or a negative errno. NULL: -EINVAL. No lock is held. Context: ordinary.
	 */
	s64 (*read)(struct file *file, struct span *to, u64 at);
	s64 (*write)(struct file *file, struct span *from, u64 at);
	bool seeks; /* the file has an offset */
	/* READY_... that hold now. NULL: reads and writes never wait */
	unsigned (*ready)(struct file *file);
	/*
	 * A number that differs after each change that could make the file ready, for epoll's
	 * edges. NULL: there is none
	 */
	u64 (*changes)(struct file *file);
	s64 (*waiting)(struct file *file); /* bytes that a read finds now. NULL: not known */
	/* The file is a terminal: isatty(). poll() cannot be woken and looks again and again */
	bool terminal;
	u32 device; /* st_rdev of a device */
	/* The last reference is dropped. NULL: nothing to do */
	void (*release)(struct file *file);
};

extern const struct file_ops regular_ops, directory_ops, null_ops, zero_ops, full_ops, random_ops,
	console_ops;

/* umask(); atomic. */
extern u32 file_umask;
