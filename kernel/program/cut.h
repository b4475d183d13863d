/*
 * Removing bytes from files and from their mappings (ftruncate(), holes), and the seals that forbid
 * changes of a file.
 *
 * A touch behind the new end is SIGBUS; a touch of a hole finds zeros. A private copy of a page
 * stays, unless it lies behind the end.
 *
 * Sources: truncate(2), fallocate(2), memfd_create(2), fcntl(2).
 */
#pragma once

#include "kernel/lib/types.h"

struct file;
struct inode;

enum seals {
	SEAL_SEAL = 1,
	SEAL_SHRINK = 2,
	SEAL_GROW = 4,
	SEAL_WRITE = 8,
	SEAL_FUTURE_WRITE = 16,
	SEAL_EXEC = 32,
	SEALS_ALL = 63,
	SEALS_THERE = 64, /* the file was made by memfd_create() and can have seals */
};

/* Has the file any of these seals? Any context. */
bool file_has_seal(const struct inode *inode, u32 seals);

/* -EPERM, if seals forbid to write [at, at + bytes), else 0. A write that is under way goes on. */
int file_may_write(const struct inode *inode, u64 at, u64 bytes);

/*
 * F_ADD_SEALS. Returns 0; -EINVAL for unknown seals, or if the file has none; -EPERM if the file is
 * not open for writing, or if it was sealed against more; -EBUSY if SEAL_WRITE finds a mapping that
 * could write. Another thread's mmap() at the same time may be too late to be found. Context:
 * ordinary.
 */
int file_add_seals(struct file *file, u64 seals);

/*
 * One thread at a time (wait_turn()) cuts a file or moves a mapping: a cut looks for mappings in
 * the order of their addresses, and would miss one that moves meanwhile, with its private copies.
 */
extern u32 file_cut_turn;

/* contents_resize() and contents_punch(), also for mappings; or -EPERM. Context: ordinary. */
int file_resize(struct inode *inode, u64 size);
int file_punch(struct inode *inode, u64 at, u64 size);
