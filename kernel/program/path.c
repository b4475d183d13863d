/*
 * Paths: see path.h. A walk has a stack of texts: the path itself, and for each link that is being
 * followed, what comes after the link. Only the target of a link is pushed, so the stack is no
 * higher than the number of links.
 */
#include "kernel/program/path.h"

#include "kernel/core/panic.h"
#include "kernel/lib/string.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/thread.h"
#include "mm/mm.h"

/* The rest of a text that a walk has to go along. */
struct rest {
	const char *text;
	size_t length;
};

struct walk {
	struct rest rest[PATH_LINKS_MAX + 1];
	unsigned depth, links;
	struct inode *at;
};

static void push(struct walk *walk, const char *text, size_t length)
{
	/* a text of which nothing is left needs no place */
	if (walk->rest[walk->depth].length > 0)
		walk->depth++;
	walk->rest[walk->depth] = (struct rest){text, length};
	if (length > 0 && text[0] == '/')
		walk->at = names_root();
}

/* Skip slashes. True if there were any. */
static bool skip_slashes(struct rest *rest)
{
	const size_t before = rest->length;

	while (rest->length > 0 && *rest->text == '/') {
		rest->text++;
		rest->length--;
	}
	return rest->length != before;
}

/* The next part of the texts, without slashes. False at the end of all. */
static bool next_part(struct walk *walk, struct rest *part)
{
	for (;;) {
		struct rest *rest = &walk->rest[walk->depth];

		skip_slashes(rest);
		if (rest->length > 0) {
			*part = (struct rest){rest->text, 0};
			while (part->length < rest->length && part->text[part->length] != '/')
				part->length++;
			rest->text += part->length;
			rest->length -= part->length;
			return true;
		}
		if (walk->depth == 0)
			return false;
		walk->depth--;
	}
}

/* Is anything left but slashes? *slash is set if there were any. */
static bool is_last(struct walk *walk, bool *slash)
{
	for (;;) {
		struct rest *rest = &walk->rest[walk->depth];

		if (skip_slashes(rest))
			*slash = true;
		if (rest->length > 0)
			return false;
		if (walk->depth == 0)
			return true;
		walk->depth--;
	}
}

static bool is_dots(const struct rest *part, size_t dots)
{
	return part->length == dots && memcmp(part->text, "..", dots) == 0;
}

/* One part of a path, from walk->at. */
static int step(struct walk *walk, const struct rest *part, struct path *path)
{
	struct inode *at = walk->at;

	if (at->kind != INODE_DIRECTORY)
		return -ENOTDIR;
	if (part->length > NAME_LENGTH_MAX)
		return -ENAMETOOLONG;
	*path = (struct path){.inode = at};
	if (is_dots(part, 2))
		path->inode = at->directory.parent;
	if (is_dots(part, 1) || is_dots(part, 2))
		return path->inode ? 0 : -ENOENT;
	path->directory = at;
	path->last = part->text;
	path->length = part->length;
	path->entry = names_find(at, part->text, part->length);
	path->inode = path->entry ? path->entry->inode : NULL;
	return 0;
}

int path_walk(struct path *path, struct inode *start, const char *text, enum path_link link)
{
	struct walk walk = {.at = start};
	struct rest part;
	bool slash = false;

	if (!*text)
		return -ENOENT;
	push(&walk, text, strlen(text));
	*path = (struct path){.inode = walk.at};
	while (next_part(&walk, &part)) {
		const int err = step(&walk, &part, path);
		bool last;

		if (err)
			return err;
		last = is_last(&walk, &slash);
		if (!path->inode && !last)
			return -ENOENT;
		if (path->inode && path->inode->kind == INODE_LINK &&
		    (!last || slash || link == PATH_FOLLOW)) {
			if (++walk.links > PATH_LINKS_MAX)
				return -ELOOP;
			/* the target is seen from the directory of the link, or from the root */
			push(&walk, path->inode->link.text, path->inode->link.length);
			*path = (struct path){.inode = walk.at};
			continue;
		}
		if (last)
			break;
		walk.at = path->inode;
		slash = false;
	}
	path->slash = slash;
	if (slash && path->inode && path->inode->kind != INODE_DIRECTORY)
		return -ENOTDIR;
	return 0;
}

/* ---- texts of the program ---- */

static int find_start(int descriptor, const char *text, struct inode **start)
{
	struct file *file;

	if (text[0] == '/' || descriptor == PATH_CURRENT) {
		names_lock();
		*start = text[0] == '/' ? names_root() : names_current();
		inode_get(*start);
		names_unlock();
		return 0;
	}
	file = file_of(descriptor);
	if (!file)
		return -EBADF;
	*start = file->inode;
	inode_get(*start);
	file_put(file);
	return 0;
}

int path_text_begin(struct path_text *text, int descriptor, user_t path)
{
	struct thread *self = thread_current();
	s64 length;
	int err;

	ASSERT(self->texts_used < THREAD_TEXTS, "a call uses %u paths", self->texts_used + 1);
	text->text = (char *)self->texts + self->texts_used++ * PATH_TEXT_MAX;
	length = user_read_text(text->text, path, PATH_TEXT_MAX);
	err = length < 0 ? (int)length : find_start(descriptor, text->text, &text->start);
	if (err)
		self->texts_used--;
	return err;
}

void path_text_end(struct path_text *text)
{
	inode_put(text->start);
	thread_current()->texts_used--;
}

int path_find(int descriptor, user_t user, enum path_link link, struct inode **inode)
{
	struct path_text text;
	struct path path;
	int err = path_text_begin(&text, descriptor, user);

	if (err)
		return err;
	names_lock();
	err = path_walk(&path, text.start, text.text, link);
	if (!err && !path.inode)
		err = -ENOENT;
	if (!err) {
		inode_get(path.inode);
		*inode = path.inode;
	}
	names_unlock();
	path_text_end(&text);
	return err;
}

/* As path_add(), for a name that fits into `room`; -ERANGE if it does not. */
static int add_with_room(const struct path_text *text, size_t room, enum path_link link,
			 struct inode *inode, struct inode **there)
{
	struct entry *entry = entry_new(room);
	struct path path;
	int err;

	if (!entry)
		return -ENOMEM;
	names_lock();
	err = path_walk(&path, text->start, text->text, link);
	if (!err && path.inode) {
		err = -EEXIST;
		if (there) {
			inode_get(path.inode);
			*there = path.inode;
		}
	} else if (!err && path.slash && inode->kind != INODE_DIRECTORY) {
		err = -ENOENT;
	} else if (!err && path.length > room) {
		err = -ERANGE;
	} else if (!err) {
		entry_set_name(entry, path.last, path.length);
		err = names_add(path.directory, entry, inode) ? 0 : -ENOENT;
		if (!err)
			inode_touch(path.directory);
	}
	names_unlock();
	if (err)
		entry_free(entry);
	return err;
}

int path_add(const struct path_text *text, enum path_link link, struct inode *inode,
	     struct inode **there)
{
	const size_t room = MIN(strlen(text->text), (size_t)NAME_LENGTH_MAX);
	const int err = add_with_room(text, room, link, inode, there);

	/* the name at the end of a symbolic link may be longer than the path */
	return err == -ERANGE ? add_with_room(text, NAME_LENGTH_MAX, link, inode, there) : err;
}

/* ---- files that are there before the program ---- */

/* The directory of that name, which is made if need be. NULL and *err if it cannot be. */
static struct inode *make_directory(struct inode *above, const struct rest *part, int *err)
{
	struct entry *entry = names_find(above, part->text, part->length);
	struct inode *inode;

	if (entry) {
		*err = entry->inode->kind == INODE_DIRECTORY ? 0 : -ENOTDIR;
		return entry->inode;
	}
	inode = inode_new(INODE_DIRECTORY, 0755);
	entry = entry_new(part->length);
	*err = inode && entry ? 0 : -ENOMEM;
	if (*err) {
		inode_put(inode);
		entry_free(entry);
		return NULL;
	}
	entry_set_name(entry, part->text, part->length);
	names_lock();
	names_add(above, entry, inode);
	names_unlock();
	return inode;
}

/* The last part of the path. */
static int make_last(struct inode *above, const struct rest *part, struct inode *inode)
{
	struct entry *there = names_find(above, part->text, part->length);
	struct entry *entry;

	if (there && there->inode->kind == INODE_DIRECTORY) {
		const int err = inode->kind == INODE_DIRECTORY ? 0 : -EISDIR;

		inode_put(inode);
		return err;
	}
	if (there) {
		names_lock();
		inode = names_replace(there, inode);
		names_unlock();
		inode_put(inode);
		return 0;
	}
	entry = entry_new(part->length);
	if (!entry) {
		inode_put(inode);
		return -ENOMEM;
	}
	entry_set_name(entry, part->text, part->length);
	names_lock();
	names_add(above, entry, inode);
	names_unlock();
	return 0;
}

/* No program runs yet, so names are looked up without the lock. */
int path_make(const char *text, struct inode *inode)
{
	struct walk walk = {.at = names_root()};
	struct rest part;
	int err = 0;

	push(&walk, text, strlen(text));
	while (next_part(&walk, &part)) {
		bool slash = false;

		if (part.length > NAME_LENGTH_MAX)
			err = -ENAMETOOLONG;
		else if (is_last(&walk, &slash))
			return make_last(walk.at, &part, inode);
		else
			walk.at = make_directory(walk.at, &part, &err);
		if (err)
			break;
	}
	inode_put(inode);
	return err;
}
