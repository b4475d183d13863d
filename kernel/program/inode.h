/*
 * Inodes: what names and open files refer to. An inode is freed with its last reference. Each name,
 * each open file and the current directory hold one.
 */
#pragma once

#include "kernel/program/contents.h"

enum inode_kind {
	INODE_DIRECTORY,
	INODE_REGULAR,
	INODE_LINK,   /* symbolic */
	INODE_DEVICE, /* what it does: file_ops of device.h */
	INODE_TEXT,   /* generated when it is opened: proc_text.h */
	INODE_STREAM, /* a pipe, a socket, an eventfd, an epoll file; it has no name */
};

/* Type and permission bits of stat(2). */
enum {
	MODE_TYPE = 0170000,
	MODE_STREAM = 0010000,
	MODE_CHARACTER = 0020000,
	MODE_DIRECTORY = 0040000,
	MODE_REGULAR = 0100000,
	MODE_LINK = 0120000,
	MODE_SOCKET = 0140000,
	MODE_EXECUTE = 0111,
	MODE_PERMISSIONS = 07777,
};

struct entry;
struct file_ops;
struct proc_text;
struct stream;

struct directory {
	struct inode *parent;       /* itself for the root; NULL after rmdir() */
	struct entry *first, *last; /* in the order in which they were added */
	u64 cookie;                 /* of the newest entry */
};

enum { INODE_LABEL_MAX = 64 };

struct inode {
	u32 refs; /* atomic */
	u32 mode; /* type and permissions */
	enum inode_kind kind;
	bool given;          /* a file of FILES= that has not been renamed or changed; atomic */
	bool moved;          /* renamed, and with a directory all that is in it; names.lock */
	u32 links;           /* names; names.c */
	u32 seals;           /* cut.h; atomic */
	u64 number;          /* for st_ino; not used again */
	u64 mtime_ns;        /* of the last change, since 1970 (clocks.h); atomic */
	struct entry *entry; /* one of its names, or NULL; names.c */
	union {
		struct contents contents;   /* INODE_REGULAR */
		struct directory directory; /* names.c */
		struct {
			char *text; /* not terminated */
			u32 length;
		} link;
		const struct file_ops *device;
		const struct proc_text *text;
		struct stream *stream; /* INODE_STREAM: open_file.h */
	};
	char label[INODE_LABEL_MAX]; /* of an inode without a name: "/memfd:x" */
};

/*
 * A new inode with one reference and no name, or NULL if there is no memory. The type in `mode`
 * follows from the kind. Context: ordinary.
 */
struct inode *inode_new(enum inode_kind kind, u32 permissions);

void inode_get(struct inode *inode);
void inode_put(struct inode *inode); /* NULL: does nothing. Context: ordinary. */

/*
 * A new symbolic link with a copy of the text, of 1 to STORE_OBJECT_MAX bytes. -ENAMETOOLONG or
 * -ENOMEM.
 */
int inode_new_link(const char *text, size_t length, struct inode **inode);

u64 inode_size(const struct inode *inode); /* bytes, as in st_size */
/* Of entries for the pages of the file; PT_PAGE: it has no huge pages. */
static inline enum pt_level inode_level(const struct inode *inode)
{
	return inode->kind == INODE_REGULAR ? inode->contents.level : PT_PAGE;
}
void inode_touch(struct inode *inode); /* it was changed now */
