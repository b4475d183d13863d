/* Operations of regular files and of directories (open_file.h). */
#include "kernel/program/open_file.h"

#include <arch/atomic.h>

#include "kernel/program/cut.h"

static s64 regular_read(struct file *file, struct span *to, u64 at)
{
	return contents_read(&file->inode->contents, to, at);
}

/* O_APPEND writes at the end, wherever the call wants to write. */
static s64 regular_write(struct file *file, struct span *from, u64 at)
{
	struct contents *contents = &file->inode->contents;
	const bool append = atomic_load_relaxed(&file->flags) & OPEN_APPEND;
	s64 done = file_may_write(file->inode, append ? contents_size(contents) : at, from->total);

	if (done < 0)
		return done;
	if (append)
		done = contents_append(contents, from, &at);
	else
		done = contents_write(contents, from, at);
	if (done > 0) {
		from->end = at + (u64)done;
		inode_touch(file->inode);
	}
	return done;
}

const struct file_ops regular_ops = {
	.read = regular_read,
	.write = regular_write,
	.seeks = true,
};

static s64 directory_read(struct file *file, struct span *to, u64 at)
{
	return -EISDIR;
}

const struct file_ops directory_ops = {.read = directory_read, .seeks = true};
