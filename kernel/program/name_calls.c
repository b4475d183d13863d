/*
 * Calls that change or list names: mkdir, unlink, rename, links, getdents, and the current
 * directory.
 */
#include <arch/atomic.h>

#include "kernel/lib/string.h"
#include "kernel/program/calls.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/path.h"
#include "kernel/program/store.h"
#include "mm/mm.h"

/* ---- mkdir, symlink, link ---- */

/* Give an inode, whose reference passes here, a name. */
static s64 add(u64 directory, user_t path, struct inode *inode)
{
	struct path_text text;
	int err = path_text_begin(&text, (int)directory, path);

	if (!err) {
		err = path_add(text.start, text.text, strlen(text.text), PATH_NAME, inode, NULL);
		path_text_end(&text);
	}
	if (err)
		inode_put(inode);
	return err;
}

s64 call_mkdirat(const struct call_args *args)
{
	struct inode *inode =
		inode_new(INODE_DIRECTORY, (u32)args->arg[2] & ~atomic_load_relaxed(&file_umask));

	return inode ? add(args->arg[0], args->arg[1], inode) : -ENOMEM;
}

s64 call_symlinkat(const struct call_args *args)
{
	struct page *page = store_page();
	struct inode *inode;
	s64 length;
	int err;

	if (!page)
		return -ENOMEM;
	length = user_read_text(page_address(page), args->arg[0], PATH_TEXT_MAX);
	if (length == 0)
		length = -ENOENT;
	err = length < 0 ? (int)length : inode_new_link(page_address(page), (size_t)length, &inode);
	page_put(page);
	return err ? err : add(args->arg[1], args->arg[2], inode);
}

s64 call_linkat(const struct call_args *args)
{
	struct inode *inode;
	int err;

	if (args->arg[4] != 0)
		return -EINVAL;
	err = path_find((int)args->arg[0], args->arg[1], PATH_NO_FOLLOW, &inode);
	if (!err && inode->kind == INODE_DIRECTORY) {
		inode_put(inode);
		err = -EPERM;
	}
	return err ? err : add(args->arg[2], args->arg[3], inode);
}

/* ---- unlink and rmdir ---- */

/* May the name go, or another file take it? Lock held. */
static int may_remove(const struct path *path, bool directory)
{
	if (!path->inode)
		return -ENOENT;
	if (!directory)
		return path->inode->kind == INODE_DIRECTORY ? -EISDIR : path->slash ? -ENOTDIR : 0;
	if (path->inode->kind != INODE_DIRECTORY)
		return -ENOTDIR;
	if (path->inode->directory.first)
		return -ENOTEMPTY;
	return path->entry ? 0 : -EBUSY; /* "/", "." or ".." */
}

s64 call_unlinkat(const struct call_args *args)
{
	struct entry *removed = NULL;
	struct path_text text;
	struct path path;
	int err = args->arg[2] & ~(u64)AT_REMOVEDIR
			  ? -EINVAL
			  : path_text_begin(&text, (int)args->arg[0], args->arg[1]);

	if (err)
		return err;
	spin_lock(&names.lock);
	err = path_walk(&path, text.start, text.text, strlen(text.text), PATH_NAME);
	if (!err)
		err = may_remove(&path, args->arg[2]);
	if (!err) {
		removed = path.entry;
		names_remove(removed);
		inode_touch(path.directory);
	}
	spin_unlock(&names.lock);
	path_text_end(&text);
	if (removed)
		inode_put(removed->inode);
	entry_free(removed);
	return err;
}

/* ---- rename ---- */

static int may_rename(const struct path *from, const struct path *to)
{
	const bool directory = from->inode && from->inode->kind == INODE_DIRECTORY;

	if (!from->inode)
		return -ENOENT;
	if (!from->entry || !to->directory)
		return -EBUSY;
	if (!directory && (from->slash || to->slash))
		return -ENOTDIR;
	if (directory && names_is_above(from->inode, to->directory))
		return -EINVAL;
	if (!to->directory->directory.parent)
		return -ENOENT;
	return to->inode && to->inode != from->inode ? may_remove(to, directory) : 0;
}

/*
 * The names under one lock. *spare is an entry with room for the new name, NULL once it is used;
 * *entry and *former are what the rename leaves over. With PATH_NAME the new name is a part of its
 * text, for which *spare has room.
 */
static int rename_names(const struct path_text *texts, struct entry **spare, struct entry **entry,
			struct inode **former)
{
	struct path path[2], *from = &path[0], *to = &path[1];
	int err = 0;

	for (unsigned i = 0; i < 2 && !err; i++)
		err = path_walk(&path[i], texts[i].start, texts[i].text, strlen(texts[i].text),
				PATH_NAME);
	if (!err)
		err = may_rename(from, to);
	if (err || to->inode == from->inode)
		return err;
	names_remove(from->entry);
	*entry = from->entry;
	from->inode->moved = true;
	if (to->inode) {
		*former = names_replace(to->entry, from->inode);
	} else {
		names_add(to->directory, to->last, to->length, *spare, from->inode);
		*spare = NULL;
	}
	return 0;
}

s64 call_renameat2(const struct call_args *args)
{
	struct entry *spare = NULL, *entry = NULL;
	struct inode *former = NULL;
	struct path_text texts[2];
	int err = args->arg[4] ? -EINVAL
			       : path_text_begin(&texts[0], (int)args->arg[0], args->arg[1]);

	if (err)
		return err;
	err = path_text_begin(&texts[1], (int)args->arg[2], args->arg[3]);
	if (!err) {
		spare = entry_new(MIN(strlen(texts[1].text), (size_t)NAME_LENGTH_MAX));
		spin_lock(&names.lock);
		err = spare ? rename_names(texts, &spare, &entry, &former) : -ENOMEM;
		spin_unlock(&names.lock);
		path_text_end(&texts[1]);
	}
	path_text_end(&texts[0]);
	inode_put(former);
	entry_free(spare);
	entry_free(entry);
	return err;
}

/* ---- readlink ---- */

s64 call_readlinkat(const struct call_args *args)
{
	const s64 size = (int)args->arg[3];
	struct inode *inode;
	s64 length;
	int err = size <= 0 ? -EINVAL
			    : path_find((int)args->arg[0], args->arg[1], PATH_NO_FOLLOW, &inode);

	if (err)
		return err;
	length = MIN(size, (s64)inode->link.length);
	err = inode->kind == INODE_LINK ? user_write(args->arg[2], inode->link.text, (u64)length)
					: -EINVAL;
	inode_put(inode);
	return err ? err : length;
}

/* ---- the current directory ---- */

s64 call_getcwd(const struct call_args *args)
{
	struct page *page = store_page();
	size_t length;
	s64 result;

	if (!page)
		return -ENOMEM;
	spin_lock(&names.lock);
	length = names_path(names.current, page_address(page), PAGE_SIZE) + 1;
	result = names.current->directory.parent ? 0 : -ENOENT;
	spin_unlock(&names.lock);
	if (!result && (length > PAGE_SIZE || length > args->arg[1]))
		result = -ERANGE;
	if (!result)
		result = user_write(args->arg[0], page_address(page), length);
	page_put(page);
	return result ? result : (s64)length;
}

/* Also fchdir(). */
s64 call_chdir(const struct call_args *args)
{
	struct inode *inode;
	int err = 0;

	if (args->file)
		inode_get(inode = args->file->inode);
	else
		err = path_find(PATH_CURRENT, args->arg[0], PATH_FOLLOW, &inode);
	if (err)
		return err;
	if (inode->kind == INODE_DIRECTORY) {
		struct inode *former;

		spin_lock(&names.lock);
		former = names.current;
		names.current = inode;
		spin_unlock(&names.lock);
		inode = former;
	} else {
		err = -ENOTDIR;
	}
	inode_put(inode);
	return err;
}

s64 call_umask(const struct call_args *args)
{
	return atomic_exchange(&file_umask, (u32)args->arg[0] & 0777);
}

/* ---- getdents64 ---- */

/* struct linux_dirent64, up to the name. */
struct program_dirent {
	u64 number, offset;
	u16 length;
	u8 type;
	char name[];
} __packed;

/* Offsets in a directory: 0 ".", 1 "..", and for an entry its cookie + 1. */
enum { AFTER_DOT = 1, AFTER_DOTS = 2, COOKIE_OFFSET = 2 };

/* Records on a page. */
struct listing {
	u8 *page;
	u64 size, used; /* bytes */
	u64 offset;     /* after the last record */
	bool full;
};

/* The type in a record is the type in the mode, shifted. */
static void list(struct listing *listing, const struct inode *inode, const char *name,
		 size_t length, u64 offset)
{
	const u64 bytes = ALIGN_UP(sizeof(struct program_dirent) + length + 1, 8);
	struct program_dirent *record = (struct program_dirent *)(listing->page + listing->used);

	if (listing->full || offset <= listing->offset)
		return;
	listing->full = bytes > listing->size - listing->used;
	if (listing->full)
		return;
	record->number = inode->number;
	record->offset = offset;
	record->length = (u16)bytes;
	record->type = (u8)((inode->mode & MODE_TYPE) >> 12);
	memcpy(record->name, name, length);
	listing->used += bytes;
	listing->offset = offset;
}

s64 call_getdents64(const struct call_args *args)
{
	struct file *file = args->file;
	struct inode *inode = file->inode;
	struct directory *directory = &inode->directory;
	struct page *page;
	struct listing listing = {.size = MIN((u32)args->arg[2], PAGE_SIZE)};
	int err;

	if (inode->kind != INODE_DIRECTORY)
		return -ENOTDIR;
	page = store_page();
	if (!page)
		return -ENOMEM;
	listing.page = page_address(page);
	listing.offset = atomic_load_relaxed(&file->offset);
	spin_lock(&names.lock);
	list(&listing, inode, ".", 1, AFTER_DOT);
	list(&listing, directory->parent ? directory->parent : inode, "..", 2, AFTER_DOTS);
	for (const struct entry *entry = directory->first; entry && !listing.full;
	     entry = entry->next)
		list(&listing, entry->inode, entry->name, entry->length,
		     entry->cookie + COOKIE_OFFSET);
	spin_unlock(&names.lock);
	err = listing.full && listing.used == 0
		      ? -EINVAL
		      : user_write(args->arg[1], listing.page, listing.used);
	page_put(page);
	if (err)
		return err;
	atomic_store_relaxed(&file->offset, listing.offset);
	return (s64)listing.used;
}
