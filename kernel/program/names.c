/* The name space: see names.h. */
#include "kernel/program/names.h"

#include <arch/atomic.h>

#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/program/store.h"
#include "mm/mm.h"

enum { BUCKETS = 2048, HASH_START = 2166136261u, HASH_STEP = 16777619u };

struct names names = {.lock = {.rank = LOCK_LEAF, .holder = CPU_NONE}};

static struct entry *table[BUCKETS]; /* lists, empty when there is no program */

/* FNV-1a (Fowler, Noll, Vo, "The FNV Non-Cryptographic Hash Algorithm", 1991). */
static u32 hash_of(const struct inode *directory, const char *name, size_t length)
{
	u32 hash = (HASH_START ^ (u32)directory->number) * HASH_STEP;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (u8)name[i]) * HASH_STEP;
	return hash;
}

static struct entry **bucket_of(u32 hash)
{
	return &table[(hash ^ hash >> 16) % BUCKETS];
}

int names_begin(void)
{
	names.root = inode_new(INODE_DIRECTORY, 0755);
	if (!names.root)
		return -ENOMEM;
	names.root->directory.parent = names.root;
	names.root->links = 1;
	inode_get(names.root);
	names.current = names.root;
	return 0;
}

void names_end(void)
{
	struct inode *directory = names.root;

	if (!names.root)
		return;
	inode_put(names.current);
	/* go down to a name that is no directory, or an empty one, and remove it */
	for (;;) {
		struct entry *entry = directory->directory.first;
		struct inode *inode = entry ? entry->inode : NULL;

		if (inode && inode->kind == INODE_DIRECTORY && inode->directory.first) {
			directory = inode;
		} else if (inode) {
			names_remove(entry);
			entry_free(entry);
			inode_put(inode);
		} else if (directory == names.root) {
			break;
		} else {
			directory = directory->directory.parent;
		}
	}
	inode_put(names.root);
	names.root = names.current = NULL;
}

struct entry *entry_new(size_t room)
{
	struct entry *entry = store_alloc(sizeof(*entry) + room);

	if (entry)
		entry->room = (u16)room;
	return entry;
}

void entry_free(struct entry *entry)
{
	if (entry)
		store_free(entry, sizeof(*entry) + entry->room);
}

struct entry *names_find(const struct inode *directory, const char *name, size_t length)
{
	const u32 hash = hash_of(directory, name, length);
	struct entry *entry = *bucket_of(hash);

	while (entry && !(entry->hash == hash && entry->directory == directory &&
			  entry->length == length && memcmp(entry->name, name, length) == 0))
		entry = entry->chain;
	return entry;
}

/* The inode has a new name. */
static void gain(struct inode *inode, struct entry *entry)
{
	inode->links++;
	inode->entry = entry;
	atomic_store_relaxed(&inode->given, false);
	if (inode->kind == INODE_DIRECTORY)
		inode->directory.parent = entry->directory;
}

bool names_add(struct inode *directory, const char *name, size_t length, struct entry *entry,
	       struct inode *inode)
{
	struct directory *dir = &directory->directory;
	const u32 hash = hash_of(directory, name, length);
	struct entry **bucket = bucket_of(hash);

	if (!dir->parent)
		return false;
	*entry = (struct entry){.directory = directory,
				.inode = inode,
				.before = dir->last,
				.chain = *bucket,
				.cookie = ++dir->cookie,
				.hash = hash,
				.length = (u16)length,
				.room = entry->room};
	memcpy(entry->name, name, length);
	*(dir->last ? &dir->last->next : &dir->first) = entry;
	dir->last = entry;
	*bucket = entry;
	gain(inode, entry);
	return true;
}

/* The inode loses a name. */
static void lose(struct inode *inode, const struct entry *entry)
{
	const size_t length = MIN(entry->length, sizeof(inode->label) - 2);

	inode->links--;
	if (inode->entry == entry) {
		inode->entry = NULL;
		inode->label[0] = '/';
		memcpy(inode->label + 1, entry->name, length);
		inode->label[1 + length] = 0;
	}
	if (inode->kind == INODE_DIRECTORY)
		inode->directory.parent = NULL;
}

void names_remove(struct entry *entry)
{
	struct directory *dir = &entry->directory->directory;
	struct entry **link = bucket_of(entry->hash);

	while (*link != entry)
		link = &(*link)->chain;
	*link = entry->chain;
	*(entry->before ? &entry->before->next : &dir->first) = entry->next;
	*(entry->next ? &entry->next->before : &dir->last) = entry->before;
	lose(entry->inode, entry);
}

struct inode *names_replace(struct entry *entry, struct inode *inode)
{
	struct inode *former = entry->inode;

	lose(former, entry);
	entry->inode = inode;
	gain(inode, entry);
	return former;
}

bool names_is_above(const struct inode *directory, const struct inode *inner)
{
	while (inner != directory && inner != names.root && inner->directory.parent)
		inner = inner->directory.parent;
	return inner == directory;
}

struct entry *names_next(const struct entry *entry, bool inner)
{
	const struct inode *inside = entry ? entry->inode : names.root;

	if (inner && inside->kind == INODE_DIRECTORY && inside->directory.first)
		return inside->directory.first;
	while (entry && !entry->next)
		entry = entry->directory->entry;
	return entry ? entry->next : NULL;
}

/* The path is put together from its end: first its length, then each part in its place. */
size_t names_path_of(const struct entry *entry, char *buf, size_t size)
{
	size_t length = 0, end;

	for (const struct entry *e = entry; e; e = e->directory->entry)
		length += e->length + 1u;
	end = length;
	for (; entry; entry = entry->directory->entry) {
		end -= entry->length + 1u;
		for (size_t i = 0; i <= entry->length && end + i + 1 < size; i++)
			buf[end + i] = i ? entry->name[i - 1] : '/';
	}
	if (size > 0)
		buf[MIN(length, size - 1)] = 0;
	return length;
}

size_t names_path(const struct inode *inode, char *buf, size_t size)
{
	const bool had = inode->kind == INODE_REGULAR || inode->kind == INODE_DIRECTORY;

	if (inode->entry)
		return names_path_of(inode->entry, buf, size);
	if (inode == names.root)
		return (size_t)format(buf, size, "/");
	return (size_t)format(buf, size, "%s%s", inode->label, had ? " (deleted)" : "");
}
