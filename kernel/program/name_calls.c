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

#define HERE ((u64)PATH_CURRENT)

/* Give an inode, whose reference passes here, a name. */
static s64 add(u64 directory, user_t path, struct inode *inode)
{
	struct path_text text;
	int err = path_text_begin(&text, (int)directory, path);

	if (!err) {
		err = path_add(&text, PATH_NO_FOLLOW, inode, NULL);
		path_text_end(&text);
	}
	if (err)
		inode_put(inode);
	return err;
}

/* ---- mkdir, symlink, link ---- */

static s64 make_directory(u64 directory, user_t path, u64 mode)
{
	struct inode *inode =
		inode_new(INODE_DIRECTORY, (u32)mode & ~atomic_load_relaxed(&file_umask));

	return inode ? add(directory, path, inode) : -ENOMEM;
}

s64 call_mkdirat(const struct call_args *args)
{
	return make_directory(args->arg[0], args->arg[1], args->arg[2]);
}

static s64 make_link(user_t target, u64 directory, user_t path)
{
	struct page *page = store_page();
	struct inode *inode;
	s64 length;
	int err;

	if (!page)
		return -ENOMEM;
	length = user_read_text(page_address(page), target, PATH_TEXT_MAX);
	if (length == 0)
		length = -ENOENT;
	err = length < 0 ? (int)length
			 : inode_new_link(page_address(page), (size_t)length, LINK_COPY, &inode);
	page_put(page);
	return err ? err : add(directory, path, inode);
}

s64 call_symlinkat(const struct call_args *args)
{
	return make_link(args->arg[0], args->arg[1], args->arg[2]);
}

enum { AT_SYMLINK_FOLLOW = 0x400 };

static s64 link_again(u64 from_directory, user_t from, u64 directory, user_t path, u64 flags)
{
	const enum path_link follow = flags & AT_SYMLINK_FOLLOW ? PATH_FOLLOW : PATH_NO_FOLLOW;
	struct inode *inode;
	int err;

	if (flags & ~(u64)AT_SYMLINK_FOLLOW)
		return -EINVAL;
	err = path_find((int)from_directory, from, follow, &inode);
	if (err)
		return err;
	if (inode->kind == INODE_DIRECTORY) {
		inode_put(inode);
		return -EPERM;
	}
	return add(directory, path, inode);
}

s64 call_linkat(const struct call_args *args)
{
	return link_again(args->arg[0], args->arg[1], args->arg[2], args->arg[3], args->arg[4]);
}

/* ---- unlink and rmdir ---- */

enum { AT_REMOVEDIR = 0x200 };

/* May the name go? Lock held. */
static int may_remove(const struct path *path, bool directory)
{
	if (!path->inode)
		return -ENOENT;
	if (!directory)
		return path->inode->kind == INODE_DIRECTORY ? -EISDIR : 0;
	if (path->inode->kind != INODE_DIRECTORY)
		return -ENOTDIR;
	if (path->inode->directory.first)
		return -ENOTEMPTY;
	return path->entry ? 0 : -EBUSY; /* "/", "." or ".." */
}

static s64 remove_name(u64 from, user_t user, bool directory)
{
	struct entry *removed = NULL;
	struct path_text text;
	struct path path;
	int err = path_text_begin(&text, (int)from, user);

	if (err)
		return err;
	names_lock();
	err = path_walk(&path, text.start, text.text, PATH_NO_FOLLOW);
	if (!err)
		err = may_remove(&path, directory);
	if (!err) {
		removed = path.entry;
		names_remove(removed);
		inode_touch(path.directory);
	}
	names_unlock();
	path_text_end(&text);
	if (removed) {
		inode_put(removed->inode);
		entry_free(removed);
	}
	return err;
}

s64 call_rmdir(const struct call_args *args)
{
	return remove_name(HERE, args->arg[0], true);
}

s64 call_unlinkat(const struct call_args *args)
{
	if (args->arg[2] & ~(u64)AT_REMOVEDIR)
		return -EINVAL;
	return remove_name(args->arg[0], args->arg[1], args->arg[2] & AT_REMOVEDIR);
}

/* ---- rename ---- */

enum { RENAME_NOREPLACE = 1 };

/* May the new name replace what it means now? Lock held. */
static int may_replace(const struct path *from, const struct path *to, u64 flags)
{
	if (flags & RENAME_NOREPLACE)
		return -EEXIST;
	if (!to->entry)
		return -EBUSY;
	if (from->inode->kind != INODE_DIRECTORY)
		return to->inode->kind == INODE_DIRECTORY ? -EISDIR : 0;
	if (to->inode->kind != INODE_DIRECTORY)
		return -ENOTDIR;
	return to->inode->directory.first ? -ENOTEMPTY : 0;
}

static int may_rename(const struct path *from, const struct path *to, u64 flags)
{
	if (!from->inode)
		return -ENOENT;
	if (!from->entry || !to->directory)
		return -EBUSY;
	if (from->inode->kind != INODE_DIRECTORY && to->slash)
		return -ENOTDIR;
	if (from->inode->kind == INODE_DIRECTORY && names_is_above(from->inode, to->directory))
		return -EINVAL;
	if (!to->directory->directory.parent)
		return -ENOENT;
	return to->inode && to->inode != from->inode ? may_replace(from, to, flags) : 0;
}

/* Leftovers of a rename, to be freed once the lock is dropped. */
struct left_over {
	struct entry *spare, *entry;
	struct inode *inode;
};

/* Lock held. left->spare is an entry with room for the new name; NULL once it is used. */
static int rename_names(const struct path *from, const struct path *to, u64 flags,
			struct left_over *left)
{
	struct entry *spare = left->spare;
	struct inode *moved = from->inode;
	const int err = may_rename(from, to, flags);

	if (err || to->inode == from->inode)
		return err ? err : flags & RENAME_NOREPLACE ? -EEXIST : 0;
	if (to->inode) {
		names_remove(from->entry);
		left->inode = names_replace(to->entry, moved);
		left->entry = from->entry;
		return 0;
	}
	if (to->length > spare->room)
		return -ENAMETOOLONG;
	entry_set_name(spare, to->last, to->length);
	names_remove(from->entry);
	names_add(to->directory, spare, moved);
	left->spare = NULL;
	left->entry = from->entry;
	return 0;
}

static int rename_texts(const struct path_text *from_text, const struct path_text *to_text,
			u64 flags)
{
	const size_t room = MIN(strlen(to_text->text), (size_t)NAME_LENGTH_MAX);
	struct left_over left = {.spare = entry_new(room)};
	struct path from, to;
	int err;

	if (!left.spare)
		return -ENOMEM;
	names_lock();
	err = path_walk(&from, from_text->start, from_text->text, PATH_NO_FOLLOW);
	if (!err)
		err = path_walk(&to, to_text->start, to_text->text, PATH_NO_FOLLOW);
	if (!err)
		err = rename_names(&from, &to, flags, &left);
	names_unlock();
	inode_put(left.inode);
	entry_free(left.spare);
	entry_free(left.entry);
	return err;
}

static s64 rename_at(u64 from_directory, user_t from, u64 to_directory, user_t to, u64 flags)
{
	struct path_text from_text, to_text;
	int err;

	if (flags & ~(u64)RENAME_NOREPLACE)
		return -EINVAL;
	err = path_text_begin(&from_text, (int)from_directory, from);
	if (err)
		return err;
	err = path_text_begin(&to_text, (int)to_directory, to);
	if (!err) {
		err = rename_texts(&from_text, &to_text, flags);
		path_text_end(&to_text);
	}
	path_text_end(&from_text);
	return err;
}

s64 call_renameat2(const struct call_args *args)
{
	return rename_at(args->arg[0], args->arg[1], args->arg[2], args->arg[3], args->arg[4]);
}

/* ---- readlink ---- */

static s64 read_link(u64 directory, user_t path, user_t to, s64 size)
{
	struct inode *inode;
	u64 length;
	int err;

	if (size <= 0)
		return -EINVAL;
	err = path_find((int)directory, path, PATH_NO_FOLLOW, &inode);
	if (err)
		return err;
	if (inode->kind != INODE_LINK) {
		inode_put(inode);
		return -EINVAL;
	}
	length = MIN((u64)size, inode->link.length);
	err = user_write(to, inode->link.text, length);
	inode_put(inode);
	return err ? err : (s64)length;
}

s64 call_readlinkat(const struct call_args *args)
{
	return read_link(args->arg[0], args->arg[1], args->arg[2], (int)args->arg[3]);
}

/* ---- the current directory ---- */

s64 call_getcwd(const struct call_args *args)
{
	struct page *page = store_page();
	size_t length;
	s64 result;

	if (!page)
		return -ENOMEM;
	names_lock();
	length = names_path(names_current(), page_address(page), PAGE_SIZE) + 1;
	result = names_current()->directory.parent ? 0 : -ENOENT;
	names_unlock();
	if (!result && (length > PAGE_SIZE || length > args->arg[1]))
		result = -ERANGE;
	if (!result)
		result = user_write(args->arg[0], page_address(page), length);
	page_put(page);
	return result ? result : (s64)length;
}

/* The reference to `inode` passes here. */
static s64 change_to(struct inode *inode)
{
	struct inode *former = inode;
	const int err = inode->kind == INODE_DIRECTORY ? 0 : -ENOTDIR;

	if (!err) {
		names_lock();
		former = names_set_current(inode);
		names_unlock();
	}
	inode_put(former);
	return err;
}

s64 call_chdir(const struct call_args *args)
{
	struct inode *inode;
	const int err = path_find(PATH_CURRENT, args->arg[0], PATH_FOLLOW, &inode);

	return err ? err : change_to(inode);
}

s64 call_fchdir(const struct call_args *args)
{
	struct file *file = file_of((int)args->arg[0]);
	struct inode *inode;

	if (!file)
		return -EBADF;
	inode = file->inode;
	inode_get(inode);
	file_put(file);
	return change_to(inode);
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

	if (listing->full || bytes > listing->size - listing->used) {
		listing->full = true;
		return;
	}
	memset(record, 0, bytes);
	record->number = inode->number;
	record->offset = offset;
	record->length = (u16)bytes;
	record->type = (u8)((inode->mode & MODE_TYPE) >> 12);
	memcpy(record->name, name, length);
	listing->used += bytes;
	listing->offset = offset;
}

/* Lock held. */
static void list_directory(struct listing *listing, const struct inode *inode)
{
	const struct directory *directory = &inode->directory;
	const u64 from = listing->offset;

	if (from < AFTER_DOT)
		list(listing, inode, ".", 1, AFTER_DOT);
	if (from < AFTER_DOTS)
		list(listing, directory->parent ? directory->parent : inode, "..", 2, AFTER_DOTS);
	for (const struct entry *entry = directory->first; entry && !listing->full;
	     entry = entry->next)
		if (entry->cookie + COOKIE_OFFSET > from)
			list(listing, entry->inode, entry->name, entry->length,
			     entry->cookie + COOKIE_OFFSET);
}

static s64 list_file(struct file *file, user_t to, u64 size)
{
	struct page *page = store_page();
	struct listing listing = {.size = MIN(size, PAGE_SIZE)};
	int err;

	if (!page)
		return -ENOMEM;
	listing.page = page_address(page);
	spin_lock(&file->lock);
	listing.offset = file->offset;
	spin_unlock(&file->lock);
	names_lock();
	list_directory(&listing, file->inode);
	names_unlock();
	err = listing.full && listing.used == 0 ? -EINVAL
						: user_write(to, listing.page, listing.used);
	page_put(page);
	if (err)
		return err;
	spin_lock(&file->lock);
	file->offset = listing.offset;
	spin_unlock(&file->lock);
	return (s64)listing.used;
}

s64 call_getdents64(const struct call_args *args)
{
	struct file *file = file_of((int)args->arg[0]);
	s64 result = -ENOTDIR;

	if (!file)
		return -EBADF;
	if (atomic_load_relaxed(&file->flags) & OPEN_PATH)
		result = -EBADF;
	else if (file->inode->kind == INODE_DIRECTORY)
		result = list_file(file, args->arg[1], (u32)args->arg[2]);
	file_put(file);
	return result;
}
