/* Calls that open files by their names: open, openat, creat. */
#include <arch/atomic.h>

#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
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

/*
 * Get an inode ready to be opened in this way: a text is written and takes its place, and a file
 * that is to be truncated is. *ops receives its operations. Returns 0 or an error.
 */
static int prepare(struct inode **inode, u32 flags, const struct file_ops **ops)
{
	struct inode *text = *inode, *made;
	int err;

	if (flags & OPEN_DIRECTORY && text->kind != INODE_DIRECTORY)
		return -ENOTDIR;
	*ops = text->kind == INODE_DIRECTORY ? &directory_ops : &regular_ops;
	if (flags & OPEN_PATH)
		return 0;
	switch (text->kind) {
	case INODE_DIRECTORY:
		return wants_write(flags) || flags & OPEN_CREATE ? -EISDIR : 0;
	case INODE_REGULAR:
		if (!(flags & OPEN_TRUNCATE) || !wants_write(flags))
			return 0;
		return file_resize(text, 0);
	case INODE_DEVICE:
		*ops = text->device;
		return 0;
	case INODE_TEXT:
		err = wants_write(flags) ? -EACCES : make_text(text->text, &made);
		if (err)
			return err;
		inode_put(text);
		*inode = made;
		return 0;
	default:
		return -ELOOP; /* a link, and links are not to be followed */
	}
}

/* Open an inode, whose reference passes here, and give it a descriptor. */
static s64 open_inode(struct inode *inode, u32 flags)
{
	const u32 forgotten = OPEN_CREATE | OPEN_EXCLUSIVE | OPEN_TRUNCATE;
	const struct file_ops *ops;
	const int err = prepare(&inode, flags, &ops);
	struct file *file;

	if (err) {
		inode_put(inode);
		return err;
	}
	file = file_new(inode, ops, flags & ~forgotten);
	return file ? descriptor_for(file, 0) : -ENOMEM;
}

/* Create the file, or find the one that is there. */
static int create(const struct path_text *text, enum path_link link, u32 flags, u32 mode,
		  struct inode **inode)
{
	const bool exclusive = flags & OPEN_EXCLUSIVE;
	struct inode *fresh, *there = NULL;
	int err = exclusive ? -ENOENT : path_inode(text, link, inode);

	if (err != -ENOENT)
		return err;
	fresh = inode_new(INODE_REGULAR, mode & ~atomic_load_relaxed(&file_umask));
	if (!fresh)
		return -ENOMEM;
	inode_get(fresh); /* for the name */
	err = path_add(text->start, text->text, strlen(text->text), link, fresh,
		       exclusive ? NULL : &there);
	*inode = there ? there : fresh;
	if (!err)
		return 0;
	inode_put(fresh);
	inode_put(fresh);
	return there ? 0 : err;
}

s64 call_openat(const struct call_args *args)
{
	const u32 wanted = (u32)args->arg[2], of_path = OPEN_PATH | OPEN_DIRECTORY | OPEN_NO_FOLLOW;
	const u32 flags = wanted & OPEN_PATH ? wanted & of_path : wanted;
	const bool stay = flags & OPEN_NO_FOLLOW || (flags & OPEN_CREATE && flags & OPEN_EXCLUSIVE);
	const enum path_link link = stay ? PATH_NO_FOLLOW : PATH_FOLLOW;
	struct path_text text;
	struct inode *inode;
	int err;

	if ((flags & OPEN_ACCESS) == OPEN_ACCESS)
		return -EINVAL;
	err = path_text_begin(&text, (int)args->arg[0], args->arg[1]);
	if (err)
		return err;
	err = flags & OPEN_CREATE ? create(&text, link, flags, (u32)args->arg[3], &inode)
				  : path_inode(&text, link, &inode);
	path_text_end(&text);
	return err ? err : open_inode(inode, flags);
}
