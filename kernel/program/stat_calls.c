/*
 * Calls that tell or change the attributes of files. The program is root, so only the lack of
 * execute bits denies anything. Sources of the layouts: System V ABI, AMD64 supplement; Linux
 * manual pages stat(2), statx(2), statfs(2).
 */
#include <arch/atomic.h>

#include "kernel/program/calls.h"
#include "kernel/program/cut.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/path.h"
#include "mm/mm.h"

#define HERE ((u64)PATH_CURRENT)

enum { AT_SYMLINK_NOFOLLOW = 0x100, AT_EMPTY_PATH = 0x1000, AT_STATX_SYNC = 0x6000 };
enum { AT_NO_AUTOMOUNT = 0x800, AT_EACCESS = 0x200 };
enum { DEVICE_NUMBER = 1, SECTOR = 512, ACCESS_EXECUTE = 1, ACCESS_ALL = 7 };

/* ---- one inode's attributes ---- */

struct program_time {
	s64 seconds, ns;
};

struct program_stat {
	u64 device, number, links;
	u32 mode, user, group, pad;
	u64 node; /* number of a device */
	s64 size, block_size, blocks;
	struct program_time accessed, modified, changed;
	s64 unused[3];
};
_Static_assert(sizeof(struct program_stat) == 144, "struct stat of the ABI");

/* A file of FILES= counts as a whole, though most of it needs no memory. */
static u64 sectors(struct inode *inode)
{
	return inode->kind == INODE_REGULAR
		       ? DIV_ROUND_UP(contents_stored(&inode->contents), SECTOR)
		       : 0;
}

static u32 links_of(const struct inode *inode)
{
	u32 links;

	names_lock();
	links = inode->links + (inode->kind == INODE_DIRECTORY ? 1u : 0u);
	names_unlock();
	return links;
}

static struct program_stat stat_of(struct inode *inode)
{
	const u64 ns = atomic_load_relaxed(&inode->mtime_ns);
	const struct program_time time = {(s64)(ns / NS_PER_S), (s64)(ns % NS_PER_S)};

	return (struct program_stat){
		.device = DEVICE_NUMBER,
		.number = inode->number,
		.links = links_of(inode),
		.mode = atomic_load_relaxed(&inode->mode),
		.node = inode->kind == INODE_DEVICE ? inode->device->device : 0,
		.size = (s64)inode_size(inode),
		.block_size = PAGE_SIZE,
		.blocks = (s64)sectors(inode),
		.accessed = time,
		.modified = time,
		.changed = time,
	};
}

/*
 * The inode that a call means, with one reference: by path, or, for an empty path with
 * AT_EMPTY_PATH, the descriptor's own.
 */
static int inode_at(u64 directory, user_t path, u64 flags, struct inode **inode)
{
	const enum path_link link = flags & AT_SYMLINK_NOFOLLOW ? PATH_NO_FOLLOW : PATH_FOLLOW;
	struct file *file;
	char first = 0;
	int err = 0;

	if (flags & AT_EMPTY_PATH && path)
		err = user_read(&first, path, 1);
	if (err)
		return err;
	if (!(flags & AT_EMPTY_PATH) || first)
		return path_find((int)directory, path, link, inode);
	if ((int)directory == PATH_CURRENT) {
		names_lock();
		*inode = names_current();
		inode_get(*inode);
		names_unlock();
		return 0;
	}
	file = file_of((int)directory);
	if (!file)
		return -EBADF;
	*inode = file->inode;
	inode_get(*inode);
	file_put(file);
	return 0;
}

static s64 stat_at(u64 directory, user_t path, u64 flags, user_t to)
{
	struct program_stat stat;
	struct inode *inode;
	const int err = inode_at(directory, path, flags, &inode);

	if (err)
		return err;
	stat = stat_of(inode);
	inode_put(inode);
	return user_write(to, &stat, sizeof(stat));
}

static s64 call_stat(const struct call_args *args)
{
	return stat_at(HERE, args->arg[0], 0, args->arg[1]);
}
CALL(stat, 4);

static s64 call_fstat(const struct call_args *args)
{
	if ((int)args->arg[0] < 0)
		return -EBADF;
	return stat_at(args->arg[0], 0, AT_EMPTY_PATH, args->arg[1]);
}
CALL(fstat, 5);

static s64 call_lstat(const struct call_args *args)
{
	return stat_at(HERE, args->arg[0], AT_SYMLINK_NOFOLLOW, args->arg[1]);
}
CALL(lstat, 6);

static s64 call_newfstatat(const struct call_args *args)
{
	if (args->arg[3] & ~(u64)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT))
		return -EINVAL;
	return stat_at(args->arg[0], args->arg[1], args->arg[3], args->arg[2]);
}
CALL(newfstatat, 262);

/* ---- statx ---- */

struct statx_time {
	s64 seconds;
	u32 ns, pad;
};

struct program_statx {
	u32 mask, block_size;
	u64 attributes;
	u32 links, user, group;
	u16 mode, pad;
	u64 number, size, blocks, attributes_mask;
	struct statx_time accessed, created, changed, modified;
	u32 node_major, node_minor, device_major, device_minor;
	u64 spare[14];
};
_Static_assert(sizeof(struct program_statx) == 256, "struct statx of the ABI");

enum { STATX_BASIC = 0x7ff };

static s64 call_statx(const struct call_args *args)
{
	const u64 flags = args->arg[2];
	struct program_statx statx = {0};
	struct program_stat stat;
	struct statx_time time;
	struct inode *inode;
	int err;

	if (flags & ~(u64)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_SYNC))
		return -EINVAL;
	err = inode_at(args->arg[0], args->arg[1], flags, &inode);
	if (err)
		return err;
	stat = stat_of(inode);
	inode_put(inode);
	time = (struct statx_time){.seconds = stat.modified.seconds, .ns = (u32)stat.modified.ns};
	statx.mask = STATX_BASIC;
	statx.block_size = (u32)stat.block_size;
	statx.links = (u32)stat.links;
	statx.mode = (u16)stat.mode;
	statx.number = stat.number;
	statx.size = (u64)stat.size;
	statx.blocks = (u64)stat.blocks;
	statx.accessed = statx.changed = statx.modified = time;
	statx.node_major = (u32)stat.node >> 8;
	statx.node_minor = (u32)stat.node & 0xff;
	statx.device_minor = DEVICE_NUMBER;
	return user_write(args->arg[4], &statx, sizeof(statx));
}
CALL(statx, 332);

/* ---- access ---- */

static s64 access_at(u64 directory, user_t path, u64 mode, u64 flags)
{
	struct inode *inode;
	int err;

	if (mode & ~(u64)ACCESS_ALL ||
	    flags & ~(u64)(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_EACCESS))
		return -EINVAL;
	err = inode_at(directory, path, flags, &inode);
	if (err)
		return err;
	if (mode & ACCESS_EXECUTE && inode->kind != INODE_DIRECTORY &&
	    !(atomic_load_relaxed(&inode->mode) & MODE_EXECUTE))
		err = -EACCES;
	inode_put(inode);
	return err;
}

static s64 call_access(const struct call_args *args)
{
	return access_at(HERE, args->arg[0], (u32)args->arg[1], 0);
}
CALL(access, 21);

static s64 call_faccessat(const struct call_args *args)
{
	return access_at(args->arg[0], args->arg[1], (u32)args->arg[2], 0);
}
CALL(faccessat, 269);

static s64 call_faccessat2(const struct call_args *args)
{
	return access_at(args->arg[0], args->arg[1], (u32)args->arg[2], (u32)args->arg[3]);
}
CALL(faccessat2, 439);

/* ---- mode, owner, times ---- */

static s64 change_mode(u64 directory, user_t path, u64 flags, u64 mode)
{
	struct inode *inode;
	const int err = inode_at(directory, path, flags, &inode);

	if (err)
		return err;
	atomic_store_relaxed(&inode->mode, (atomic_load_relaxed(&inode->mode) & MODE_TYPE) |
						   ((u32)mode & MODE_PERMISSIONS));
	inode_put(inode);
	return 0;
}

static s64 call_chmod(const struct call_args *args)
{
	return change_mode(HERE, args->arg[0], 0, args->arg[1]);
}
CALL(chmod, 90);

static s64 call_fchmod(const struct call_args *args)
{
	if ((int)args->arg[0] < 0)
		return -EBADF;
	return change_mode(args->arg[0], 0, AT_EMPTY_PATH, args->arg[1]);
}
CALL(fchmod, 91);

static s64 call_fchmodat(const struct call_args *args)
{
	return change_mode(args->arg[0], args->arg[1], 0, args->arg[2]);
}
CALL(fchmodat, 268);

/* Owners and times cannot be changed. The calls only check that the file is there. */
static s64 check_there(u64 directory, user_t path, u64 flags)
{
	struct inode *inode;
	const int err = inode_at(directory, path, flags, &inode);

	if (!err)
		inode_put(inode);
	return err;
}

static s64 call_chown(const struct call_args *args)
{
	return check_there(HERE, args->arg[0], 0);
}
CALL(chown, 92);

static s64 call_fchown(const struct call_args *args)
{
	if ((int)args->arg[0] < 0)
		return -EBADF;
	return check_there(args->arg[0], 0, AT_EMPTY_PATH);
}
CALL(fchown, 93);

static s64 call_lchown(const struct call_args *args)
{
	return check_there(HERE, args->arg[0], AT_SYMLINK_NOFOLLOW);
}
CALL(lchown, 94);

static s64 call_fchownat(const struct call_args *args)
{
	return check_there(args->arg[0], args->arg[1], args->arg[4]);
}
CALL(fchownat, 260);

static s64 call_utimensat(const struct call_args *args)
{
	const u64 flags = args->arg[3] | (args->arg[1] ? 0 : AT_EMPTY_PATH);

	return check_there(args->arg[0], args->arg[1], flags);
}
CALL(utimensat, 280);

/* ---- statfs ---- */

struct program_statfs {
	s64 type, block_size, blocks, free, available, files, files_free;
	u32 id[2];
	s64 name_length, fragment, flags, spare[4];
};
_Static_assert(sizeof(struct program_statfs) == 120, "struct statfs of the ABI");

enum { TMPFS_MAGIC = 0x01021994 };

static s64 tell_memory(user_t to)
{
	struct program_statfs statfs = {
		.type = TMPFS_MAGIC,
		.block_size = PAGE_SIZE,
		.fragment = PAGE_SIZE,
		.name_length = NAME_LENGTH_MAX,
	};
	struct mm_usage usage;

	mm_usage(&usage);
	statfs.blocks = (s64)usage.ram;
	statfs.free = (s64)(usage.free + usage.unopened + usage.per_cpu);
	statfs.available = statfs.free;
	statfs.files = (s64)usage.ram;
	statfs.files_free = statfs.free;
	return user_write(to, &statfs, sizeof(statfs));
}

static s64 call_statfs(const struct call_args *args)
{
	const s64 err = check_there(HERE, args->arg[0], 0);

	return err ? err : tell_memory(args->arg[1]);
}
CALL(statfs, 137);

static s64 call_fstatfs(const struct call_args *args)
{
	const s64 err = call_fchown(args);

	return err ? err : tell_memory(args->arg[1]);
}
CALL(fstatfs, 138);

/* ---- truncate ---- */

static s64 call_truncate(const struct call_args *args)
{
	struct inode *inode;
	int err;

	if ((s64)args->arg[1] < 0)
		return -EINVAL;
	err = path_find(PATH_CURRENT, args->arg[0], PATH_FOLLOW, &inode);
	if (err)
		return err;
	if (inode->kind == INODE_REGULAR)
		err = file_resize(inode, args->arg[1]);
	else
		err = inode->kind == INODE_DIRECTORY ? -EISDIR : -EINVAL;
	inode_put(inode);
	return err;
}
CALL(truncate, 76);
