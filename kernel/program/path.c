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
		walk->at = names.root;
}

/* The text to go along, or NULL at the end of all. *slash is set if slashes were skipped. */
static struct rest *left(struct walk *walk, bool *slash)
{
	for (;;) {
		struct rest *rest = &walk->rest[walk->depth];

		for (; rest->length > 0 && *rest->text == '/'; rest->text++, rest->length--)
			*slash = true;
		if (rest->length > 0)
			return rest;
		if (walk->depth == 0)
			return NULL;
		walk->depth--;
	}
}

/* The next part of the texts, without slashes. False at the end of all. */
static bool next_part(struct walk *walk, struct rest *part)
{
	bool slash;
	struct rest *rest = left(walk, &slash);

	if (!rest)
		return false;
	*part = (struct rest){rest->text, 0};
	for (; rest->length > 0 && *rest->text != '/'; rest->text++, rest->length--)
		part->length++;
	return true;
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

int path_walk(struct path *path, struct inode *start, const char *text, size_t length,
	      enum path_link link)
{
	struct walk walk = {.at = start};
	struct rest part;
	bool slash = false, asked = false; /* asked: by the slash behind a link */

	if (length == 0)
		return -ENOENT;
	push(&walk, text, length);
	*path = (struct path){.inode = walk.at};
	while (next_part(&walk, &part)) {
		const int err = step(&walk, &part, path);
		bool last;

		if (err)
			return err;
		slash = asked;
		last = !left(&walk, &slash);
		if (!path->inode && !last)
			return -ENOENT;
		if (path->inode && path->inode->kind == INODE_LINK &&
		    (!last || link == PATH_FOLLOW || (slash && link == PATH_NO_FOLLOW))) {
			if (++walk.links > PATH_LINKS_MAX)
				return -ELOOP;
			/* the target is seen from the directory of the link, or from the root */
			asked |= last && slash;
			push(&walk, path->inode->link.text, path->inode->link.length);
			*path = (struct path){.inode = walk.at};
			continue;
		}
		if (last)
			break;
		walk.at = path->inode;
	}
	path->slash = slash;
	if (slash && link != PATH_NAME && path->inode && path->inode->kind != INODE_DIRECTORY)
		return -ENOTDIR;
	return 0;
}

/* ---- texts of the program ---- */

int path_start(int descriptor, struct inode **start)
{
	struct file *file = NULL;

	if (descriptor == PATH_CURRENT) {
		spin_lock(&names.lock);
		inode_get(*start = names.current);
		spin_unlock(&names.lock);
		return 0;
	}
	file = file_of(descriptor);
	if (!file)
		return -EBADF;
	inode_get(*start = file->inode);
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
	err = length < 0
		      ? (int)length
		      : path_start(text->text[0] == '/' ? PATH_CURRENT : descriptor, &text->start);
	if (err)
		self->texts_used--;
	return err;
}

void path_text_end(struct path_text *text)
{
	inode_put(text->start);
	thread_current()->texts_used--;
}

int path_inode(const struct path_text *text, enum path_link link, struct inode **inode)
{
	struct path path;
	int err;

	spin_lock(&names.lock);
	err = path_walk(&path, text->start, text->text, strlen(text->text), link);
	if (!err && !path.inode)
		err = -ENOENT;
	if (!err)
		inode_get(*inode = path.inode);
	spin_unlock(&names.lock);
	return err;
}

int path_find(int descriptor, user_t user, enum path_link link, struct inode **inode)
{
	struct path_text text;
	int err = path_text_begin(&text, descriptor, user);

	if (err)
		return err;
	err = path_inode(&text, link, inode);
	path_text_end(&text);
	return err;
}

int path_add(struct inode *start, const char *text, size_t length, enum path_link link,
	     struct inode *inode, struct inode **there)
{
	struct entry *entry = NULL;
	struct path path;
	size_t room = 0;
	int err;

	/* the name may be that at the end of a link, and another one by the time there is memory */
	do {
		entry_free(entry);
		entry = room ? entry_new(room) : NULL;
		if (room && !entry)
			return -ENOMEM;
		spin_lock(&names.lock);
		err = path_walk(&path, start, text, length, link);
		if (!err && path.inode)
			err = -EEXIST;
		if (err == -EEXIST && there)
			inode_get(*there = path.inode);
		if (!err && path.slash && inode->kind != INODE_DIRECTORY)
			err = -ENOENT;
		if (!err && path.length <= room) {
			err = names_add(path.directory, path.last, path.length, entry, inode)
				      ? 0
				      : -ENOENT;
			if (!err)
				inode_touch(path.directory);
			spin_unlock(&names.lock);
			if (err)
				entry_free(entry);
			return err;
		}
		spin_unlock(&names.lock);
		if (!err)
			room = path.length;
	} while (!err);
	entry_free(entry);
	return err;
}

/* ---- files that are there before the program ---- */

/* The name is there. A directory stays, and anything else makes way. */
static int replace(const char *text, size_t length, struct inode *inode)
{
	struct path path;
	int err;

	spin_lock(&names.lock);
	err = path_walk(&path, names.root, text, length, PATH_NO_FOLLOW);
	/* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): path_add() found the name */
	if (!err && path.inode->kind == INODE_DIRECTORY)
		err = inode->kind == INODE_DIRECTORY ? -EEXIST : -EISDIR;
	if (!err)
		inode = names_replace(path.entry, inode);
	spin_unlock(&names.lock);
	inode_put(inode);
	return err == -EEXIST ? 0 : err;
}

int path_make(const char *text, struct inode *inode)
{
	size_t length = *text == '/';
	int err = 0;

	for (; !err && text[length]; length++) {
		struct inode *above;

		if (text[length] != '/')
			continue;
		above = inode_new(INODE_DIRECTORY, 0755);
		err = above ? path_add(names.root, text, length, PATH_FOLLOW, above, NULL)
			    : -ENOMEM;
		if (err)
			inode_put(above);
		if (err == -EEXIST)
			err = 0;
	}
	if (!err)
		err = path_add(names.root, text, length, PATH_NO_FOLLOW, inode, NULL);
	if (err == -EEXIST)
		return replace(text, length, inode);
	if (err)
		inode_put(inode);
	return err;
}
