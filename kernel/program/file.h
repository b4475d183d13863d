/*
 * Files of a program: what its descriptors refer to. In memory only: the read-only files of FILES=
 * (a cpio module), files that the program creates, devices, pipes, eventfds and texts of /proc.
 *
 * A struct file is an open file with an offset and a count of references. It is freed when the last
 * one is dropped. Mappings hold a reference to the file they show.
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/user_copy.h"

struct file;
struct vm_object;

/*
 * The open file of a descriptor, with one reference more, or NULL if there is none. Any thread may
 * close the descriptor meanwhile. Context: ordinary.
 */
struct file *file_of(int descriptor);
void file_get(struct file *file);
void file_put(struct file *file);

/* The file that an area shows (struct area), or the other way round; NULL gives NULL. */
static inline struct file *file_of_object(struct vm_object *object)
{
	return (struct file *)object;
}
static inline struct vm_object *file_object(struct file *file)
{
	return (struct vm_object *)file;
}

/*
 * Why the file cannot be mapped, -EBADF, -EACCES, -EPERM (seals) or -ENODEV; or 0. Is it /dev/zero,
 * of which a mapping is memory without a file?
 */
int file_map_error(const struct file *file, bool shared, bool write);
bool file_is_zeros(const struct file *file);

/*
 * The level of entries for the pages of a pool that the flags of mmap() or memfd_create() ask for,
 * or PT_PAGE: this machine has no such pages.
 */
enum pt_level huge_level(u64 flags);

/* For /proc/self/maps and messages; at most size - 1 characters. */
void file_name(const struct file *file, char *buf, size_t size);

/*
 * Before the program starts: descriptors 0, 1 and 2 are the console. `cpio` is the image of FILES=
 * (format "newc"), NULL for none; it stays in place while the program runs. After the program has
 * ended: everything that it left open or created is freed.
 */
int files_begin(const void *cpio, u64 size);
void files_end(void);

/*
 * After files_begin(), before the program starts: the bytes of a file of FILES=, in the image; NULL
 * if the path leads to none. *size receives their number. Context: ordinary.
 */
const void *files_bytes(const char *path, u64 *size);

/*
 * After files_begin(): what /proc/self/exe, cmdline and environ say. Returns 0 or a negative errno.
 * Context: ordinary.
 */
struct arguments;
int files_name_program(const char *path, const struct arguments *args,
		       const struct arguments *environment);

/*
 * A new open file with one reference. It takes over the reference to `inode`, which may be NULL.
 * Returns NULL then, and if there is no memory. `flags` are those of open(2). Context: ordinary.
 */
struct file_ops;
struct inode;
struct file *file_new(struct inode *inode, const struct file_ops *ops, u32 flags);

/*
 * Give a file the lowest free descriptor from `from` on. The reference passes to the descriptor.
 * Returns the descriptor, or -EMFILE; the reference is then dropped. Context: ordinary.
 */
enum { DESCRIPTORS_MAX = 1024 };
int descriptor_for(struct file *file, int from);

/*
 * Let a descriptor (0..DESCRIPTORS_MAX - 1) refer to `file`, whose reference passes to it; NULL
 * closes it. Returns the file it referred to, whose reference passes to the caller, or NULL.
 */
struct file *descriptor_set(int descriptor, struct file *file);
