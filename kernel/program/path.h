/*
 * Paths: from a text to an inode. A path is absolute, or relative to a directory. "." and ".." are
 * understood in every place, and at most PATH_LINKS_MAX symbolic links are followed.
 *
 *	struct path_text text;
 *	struct path path;
 *
 *	err = path_text_begin(&text, AT_FDCWD, user);       the text, and where it starts
 *	spin_lock(&names.lock);
 *	err = path_walk(&path, text.start, text.text, strlen(text.text), PATH_FOLLOW);
 *	(path.inode, or path.directory and path.last for a new name)
 *	spin_unlock(&names.lock);
 *	path_text_end(&text);
 */
#pragma once

#include "kernel/program/names.h"
#include "kernel/program/user_copy.h"

enum { PATH_LINKS_MAX = 8, PATH_TEXT_MAX = 4096 };

/* Flags of calls with paths. */
enum {
	AT_SYMLINK_NOFOLLOW = 0x100,
	AT_REMOVEDIR = 0x200, /* of unlinkat() */
	AT_EACCESS = 0x200,   /* of faccessat2() */
	AT_NO_AUTOMOUNT = 0x800,
	AT_EMPTY_PATH = 0x1000,
	AT_STATX_SYNC = 0x6000,
};

/* A symbolic link as the last part: followed, only if a slash follows it, or never. */
enum path_link { PATH_FOLLOW, PATH_NO_FOLLOW, PATH_NAME };

/* A path read from the program. */
struct path_text {
	char *text;          /* PATH_TEXT_MAX bytes of the thread's own: reading takes no memory */
	struct inode *start; /* of a relative path; one reference */
};

/*
 * Read the text at `path`, to be seen from the directory that `descriptor` refers to (PATH_CURRENT:
 * the current directory). Returns 0, -EFAULT, -ENAMETOOLONG, -EBADF or -ENOTDIR. After 0 the caller
 * calls path_text_end(). A thread has at most THREAD_TEXTS at once, and ends the last one first. No
 * lock held. Context: ordinary.
 */
enum { PATH_CURRENT = -100 }; /* AT_FDCWD */
int path_text_begin(struct path_text *text, int descriptor, user_t path);
void path_text_end(struct path_text *text);

struct path {
	struct inode
		*directory; /* that holds the last part; NULL for "/", "." and ".." at the end */
	const char *last;   /* the last part, in the text or in a link */
	size_t length;
	struct inode *inode; /* NULL if there is no such name in the directory */
	struct entry *entry; /* its name there; NULL as well for "/", "." and ".." */
	bool slash;          /* a slash follows the last part: only a directory may be meant */
};

/*
 * Walk along a text. References are not taken. Returns 0 also if only the last part is missing;
 * -ENOENT if another part is missing or the text is empty, -ENOTDIR, -ELOOP or -ENAMETOOLONG. With
 * PATH_NAME the caller looks at `slash`. The caller holds names.lock, and uses the result under it.
 */
int path_walk(struct path *path, struct inode *start, const char *text, size_t length,
	      enum path_link link);

/*
 * The inode that the text names, or the text at `path`, or that relative paths start from, with one
 * reference. Return 0 or a negative errno. No lock held. Context: ordinary.
 */
int path_inode(const struct path_text *text, enum path_link link, struct inode **inode);
int path_start(int descriptor, struct inode **start);
int path_find(int descriptor, user_t path, enum path_link link, struct inode **inode);

/*
 * Give an inode a new name. The reference passes to the name if 0 is returned. -EEXIST: there is
 * such a name, and *there (if not NULL) receives its inode, with one reference. No lock held.
 * Context: ordinary.
 */
int path_add(struct inode *start, const char *text, size_t length, enum path_link link,
	     struct inode *inode, struct inode **there);

/*
 * Let a path mean an inode, whose reference passes here, and make the directories above it. For
 * the files that are there before the program starts. A name that exists is replaced, except that a
 * directory stays. 0 or a negative errno. No lock held. Context: ordinary.
 */
int path_make(const char *text, struct inode *inode);
