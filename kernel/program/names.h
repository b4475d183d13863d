/*
 * The name space: directories and the names in them. One lock guards all names, the links of every
 * inode, the tree of directories and the current directory. A table finds a name by its directory
 * and its hash; a list per directory has its names in the order in which they were added.
 *
 * Under the lock nothing is allocated, freed or copied to the program. Callers make entries before
 * and free them afterwards.
 */
#pragma once

#include "kernel/program/inode.h"

enum { NAME_LENGTH_MAX = 255 };

struct entry {
	struct inode *directory, *inode;
	struct entry *next, *before; /* in the directory */
	struct entry *chain;         /* with the same hash */
	u64 cookie;                  /* rises along the directory; where getdents() goes on */
	u32 hash;
	u16 length, room; /* of the name */
	char name[];      /* not terminated */
};

extern struct names {
	struct spinlock lock;
	struct inode *root, *current; /* one reference to each */
} names;

/* Make an empty root, which is the current directory. 0 or -ENOMEM. Context: ordinary. */
int names_begin(void);
/* Remove all names. No call may be in progress. Context: ordinary. */
void names_end(void);

/*
 * An entry with room for a name of `room` bytes (at most NAME_LENGTH_MAX), or NULL if there is no
 * memory. No lock held.
 */
struct entry *entry_new(size_t room);
void entry_free(struct entry *entry); /* NULL: does nothing */

/* The lock is held in all the rest. References are not taken unless it is said. */

/* The entry of a name, or NULL. */
struct entry *names_find(const struct inode *directory, const char *name, size_t length);

/*
 * Add a name that is not there yet. The entry, which has room for it, takes over a reference to
 * `inode`. False, and nothing is done, if the directory was removed.
 */
bool names_add(struct inode *directory, const char *name, size_t length, struct entry *entry,
	       struct inode *inode);

/* Take a name away. The entry and its reference to the inode pass to the caller. */
void names_remove(struct entry *entry);

/* Let a name mean another inode. Returns the former one, whose reference passes to the caller. */
struct inode *names_replace(struct entry *entry, struct inode *inode);

/* The next of all names, NULL for the first; with `inner`, those in a directory follow it. */
struct entry *names_next(const struct entry *entry, bool inner);

/* Is `directory` the same as `inner`, or a directory above it? */
bool names_is_above(const struct inode *directory, const struct inode *inner);

/*
 * The absolute path of an inode, or its label if it has no name, and " (deleted)" if it had one.
 * Returns the length it would have without a limit of size - 1 characters.
 */
size_t names_path(const struct inode *inode, char *buf, size_t size);
size_t names_path_of(const struct entry *entry, char *buf, size_t size); /* of this name */
