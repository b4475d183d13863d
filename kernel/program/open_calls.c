/* Calls that open files by their names: open, openat, creat. */
#include <arch/atomic.h>

#include "kernel/lib/format.h"
#include "kernel/program/calls.h"
#include "kernel/program/cut.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/path.h"
#include "kernel/program/proc_text.h"

static bool wants_write(u32 flags)
{
	return (flags & OPEN_ACCESS) != 0;
}

/* A new file with the text that the row writes now. */
static int make_text(const struct proc_text *row, struct inode **inode)
{
	struct text_sink sink = {0};

	*inode = inode_new(INODE_REGULAR, 0444);
	if (!*inode)
		return -ENOMEM;
	format((*inode)->label, sizeof((*inode)->label), "%s", row->path);
	sink.contents = &(*inode)->contents;
	row->write(&sink);
	if (sink.err)
		inode_put(*inode);
	return sink.err;
}

/* Operations of an inode that may be opened in this way, or NULL with *err. */
static const struct file_ops *ops_for(const struct inode *inode, u32 flags, int *err)
{
	if (flags & OPEN_DIRECTORY && inode->kind != INODE_DIRECTORY) {
		*err = -ENOTDIR;
		return NULL;
	}
	if (flags & OPEN_PATH)
		return inode->kind == INODE_DIRECTORY ? &directory_ops : &regular_ops;
	switch (inode->kind) {
	case INODE_DIRECTORY:
		*err = -EISDIR;
		return wants_write(flags) || flags & OPEN_CREATE ? NULL : &directory_ops;
	case INODE_REGULAR:
		return &regular_ops;
	case INODE_DEVICE:
		return inode->device;
	case INODE_TEXT:
		*err = -EACCES;
		return wants_write(flags) ? NULL : &regular_ops;
	default:
		*err = -ELOOP; /* a link, and links are not to be followed */
		return NULL;
	}
}

/* Open an inode, whose reference passes here, and give it a descriptor. */
static s64 open_inode(struct inode *inode, u32 flags)
{
	int err = 0;
	const struct file_ops *ops = ops_for(inode, flags, &err);
	struct file *file;
	int descriptor;

	if (ops && inode->kind == INODE_TEXT && !(flags & OPEN_PATH)) {
		struct inode *text;

		err = make_text(inode->text, &text);
		inode_put(inode);
		if (err)
			return err;
		inode = text;
	} else if (ops && ops == &regular_ops && flags & OPEN_TRUNCATE && wants_write(flags) &&
		   inode->kind == INODE_REGULAR) {
		err = file_resize(inode, 0);
		inode_touch(inode);
	} else if (ops) {
		err = 0;
	}
	file = err ? NULL
		   : file_new(inode, ops,
			      flags & ~(u32)(OPEN_CREATE | OPEN_EXCLUSIVE | OPEN_TRUNCATE));
	if (!file) {
		inode_put(inode);
		return err ? err : -ENOMEM;
	}
	descriptor = descriptor_give(file, 0);
	if (descriptor < 0)
		file_put(file);
	return descriptor;
}

/* The inode of a path, with one reference. */
static int look_up(const struct path_text *text, enum path_link link, struct inode **inode)
{
	struct path path;
	int err;

	names_lock();
	err = path_walk(&path, text->start, text->text, link);
	if (!err && !path.inode)
		err = -ENOENT;
	if (!err) {
		inode_get(path.inode);
		*inode = path.inode;
	}
	names_unlock();
	return err;
}

/* Create the file, or find the one that is there. */
static int create(const struct path_text *text, enum path_link link, u32 flags, u32 mode,
		  struct inode **inode)
{
	const u32 allowed = mode & ~atomic_load_relaxed(&file_umask);
	struct inode *fresh, *there = NULL;
	int err = flags & OPEN_EXCLUSIVE ? -ENOENT : look_up(text, link, inode);

	if (err != -ENOENT)
		return err;
	fresh = inode_new(INODE_REGULAR, allowed);
	if (!fresh)
		return -ENOMEM;
	inode_get(fresh);
	err = path_add(text, link, fresh, flags & OPEN_EXCLUSIVE ? NULL : &there);
	if (err)
		inode_put(fresh); /* the reference that was for the name */
	if (err == -EEXIST && there) {
		inode_put(fresh);
		*inode = there;
		return 0;
	}
	if (err)
		inode_put(fresh);
	*inode = fresh;
	return err;
}

/* A file without a name, for O_TMPFILE. The directory must exist. */
static int create_unnamed(const struct path_text *text, u32 mode, struct inode **inode)
{
	struct inode *directory;
	int err = look_up(text, PATH_FOLLOW, &directory);

	if (err)
		return err;
	err = directory->kind == INODE_DIRECTORY ? 0 : -ENOTDIR;
	inode_put(directory);
	if (err)
		return err;
	*inode = inode_new(INODE_REGULAR, mode & ~atomic_load_relaxed(&file_umask));
	return *inode ? 0 : -ENOMEM;
}

static s64 open_at(u64 directory, user_t path, u32 flags, u32 mode)
{
	const bool no_follow =
		flags & OPEN_NO_FOLLOW || (flags & OPEN_CREATE && flags & OPEN_EXCLUSIVE);
	const enum path_link link = no_follow ? PATH_NO_FOLLOW : PATH_FOLLOW;
	struct path_text text;
	struct inode *inode;
	int err;

	if ((flags & OPEN_ACCESS) == OPEN_ACCESS)
		return -EINVAL;
	if (flags & OPEN_PATH)
		flags &= OPEN_PATH | OPEN_DIRECTORY | OPEN_NO_FOLLOW;
	err = path_text_begin(&text, (int)directory, path);
	if (err)
		return err;
	if (flags & OPEN_UNNAMED) {
		err = wants_write(flags) ? create_unnamed(&text, mode, &inode) : -EINVAL;
		flags &= ~(u32)(OPEN_UNNAMED | OPEN_DIRECTORY);
	} else if (flags & OPEN_CREATE) {
		err = create(&text, link, flags, mode, &inode);
	} else {
		err = look_up(&text, link, &inode);
	}
	path_text_end(&text);
	return err ? err : open_inode(inode, flags);
}

static s64 call_open(const struct call_args *args)
{
	return open_at((u64)PATH_CURRENT, args->arg[0], (u32)args->arg[1], (u32)args->arg[2]);
}
CALL(open, 2);

static s64 call_creat(const struct call_args *args)
{
	return open_at((u64)PATH_CURRENT, args->arg[0], OPEN_CREATE | OPEN_TRUNCATE | OPEN_WRITE,
		       (u32)args->arg[1]);
}
CALL(creat, 85);

static s64 call_openat(const struct call_args *args)
{
	return open_at(args->arg[0], args->arg[1], (u32)args->arg[2], (u32)args->arg[3]);
}
CALL(openat, 257);
