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
#include "kernel/program/sleepers.h"
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
	OPEN_CLOSE_ON_EXEC = 02000000,              /* means nothing: there is no exec() */
	OPEN_PATH = 010000000,                      /* a place in the tree only */
	OPEN_CHANGED = OPEN_APPEND | OPEN_NONBLOCK, /* flags that fcntl() can set */
};

/* Events of poll(2). */
enum {
	READY_IN = 0x001,
	READY_OUT = 0x004,
	READY_ERROR = 0x008,
	READY_HANGUP = 0x010,
	READY_INVALID = 0x020,
	READY_PLAIN_IN = 0x040,  /* POLLRDNORM */
	READY_PLAIN_OUT = 0x100, /* POLLWRNORM */
};

struct file;

/* The state of a file that can be waited for. */
struct file_look {
	unsigned ready; /* READY_... */
	/* differs after each change that could make the file ready; NO_EDGES: not known */
	u64 changes;
	s64 waiting; /* bytes that a read finds; negative: not known */
};
#define NO_EDGES (~0ULL)

struct file_look file_look(struct file *file);

/*
 * A file that threads wait for: a pipe, an eventfd, an epoll file. It has no name. The state of its
 * kind begins with this and lives as long as the inode.
 */
struct stream {
	struct spinlock lock;
	struct sleepers sleepers;
	size_t bytes; /* of the state */
};

struct file {
	struct vm_object object; /* areas refer to the file by this; has its reference count */
	u32 flags;               /* of open(); atomic */
	const struct file_ops *ops;
	struct inode *inode;   /* one reference */
	struct pipe *in, *out; /* of the end of a pipe or a socket */
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
	bool seeks;                                  /* the file has an offset */
	struct file_look (*look)(struct file *file); /* NULL: reads and writes never wait */
	/* The file is a terminal: isatty(). poll() cannot be woken and looks again and again */
	bool terminal;
	u32 device; /* st_rdev of a device */
	/* The last reference is dropped. NULL: nothing to do */
	void (*release)(struct file *file);
};

extern const struct file_ops regular_ops, huge_ops, directory_ops, null_ops, zero_ops, full_ops,
	random_ops, console_ops;

/*
 * A new open file of a new stream, whose state has `bytes` zeroed bytes; NULL if there is no
 * memory. Context: ordinary.
 */
struct file *stream_new(const struct file_ops *ops, u32 flags, size_t bytes);

/* Wake all who wait for the stream. The lock is held, and dropped. */
void stream_changed(struct stream *stream) __releases(&stream->lock);

/* umask(); atomic. */
extern u32 file_umask;
