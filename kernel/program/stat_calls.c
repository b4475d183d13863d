/*
 * Calls that tell or change the attributes of files. The program is root, so only the lack of
 * execute bits denies anything. Sources of the layouts: System V ABI, AMD64 supplement; Linux
 * manual pages stat(2), statx(2), statfs(2).
 */
#include <arch/atomic.h>

#include "kernel/program/calls.h"
#include "kernel/program/clocks.h"
#include "kernel/program/cut.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/path.h"
#include "mm/mm.h"

enum { DEVICE_NUMBER = 1, SECTOR = 512, ACCESS_EXECUTE = 1, ACCESS_ALL = 7 };

/* ---- one inode's attributes ---- */

struct program_stat {
	u64 device, number, links;
	u32 mode, user, group, pad;
	u64 node; /* number of a device */
	s64 size, block_size, blocks;
	struct user_time accessed, modified, changed;
	s64 unused[3];
};
_Static_assert(sizeof(struct program_stat) == 144, "struct stat of the ABI");

static u32 links_of(const struct inode *inode)
{
	u32 links;

	spin_lock(&names.lock);
	links = inode->links + (inode->kind == INODE_DIRECTORY ? 1u : 0u);
	spin_unlock(&names.lock);
	return links;
}

/*
 * The inode that a call means by its first two arguments, with one reference: the descriptor's own,
 * if the call has only a descriptor or, with AT_EMPTY_PATH, no path; else by path.
 */
static int inode_at(const struct call_args *args, u64 flags, u64 allowed, struct inode **inode)
{
	const int directory = (int)args->arg[0];
	const user_t path = args->arg[1];
	char first;

	if (flags & ~allowed)
		return -EINVAL;
	if (args->file) {
		inode_get(*inode = args->file->inode);
		return 0;
	}
	if (flags & AT_EMPTY_PATH && (!path || (user_read(&first, path, 1) == 0 && !first)))
		return path_start(directory, inode);
	return path_find(directory, path,
			 flags & AT_SYMLINK_NOFOLLOW ? PATH_NO_FOLLOW : PATH_FOLLOW, inode);
}

static int stat_at(const struct call_args *args, u64 flags, u64 allowed, struct program_stat *stat)
{
	struct inode *inode;
	const int err = inode_at(args, flags, allowed, &inode);
	struct user_time time;

	if (err)
		return err;
	time = clock_time(atomic_load_relaxed(&inode->mtime_ns), 1);
	*stat = (struct program_stat){
		.device = DEVICE_NUMBER,
		.number = inode->number,
		.links = links_of(inode),
		.mode = atomic_load_relaxed(&inode->mode),
		.node = inode->kind == INODE_DEVICE ? inode->device->device : 0,
		.size = (s64)inode_size(inode),
		.block_size = (s64)pt_level_size(inode_level(inode)),
		.accessed = time,
		.modified = time,
		.changed = time,
	};
	/* a file of FILES= counts as a whole, though most of it needs no memory */
	if (inode->kind == INODE_REGULAR)
		stat->blocks = (s64)DIV_ROUND_UP(contents_stored(&inode->contents), SECTOR);
	inode_put(inode);
	return 0;
}

s64 call_newfstatat(const struct call_args *args)
{
	const u64 allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT;
	struct program_stat stat;
	const int err = stat_at(args, args->arg[3], allowed, &stat);

	return err ? err : user_write(args->arg[2], &stat, sizeof(stat));
}

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

s64 call_statx(const struct call_args *args)
{
	const u64 allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT | AT_STATX_SYNC;
	struct program_statx statx;
	struct program_stat stat;
	struct statx_time time;
	const int err = stat_at(args, args->arg[2], allowed, &stat);

	if (err)
		return err;
	time = (struct statx_time){.seconds = stat.modified.sec, .ns = (u32)stat.modified.part};
	statx = (struct program_statx){.mask = STATX_BASIC,
				       .block_size = (u32)stat.block_size,
				       .links = (u32)stat.links,
				       .mode = (u16)stat.mode,
				       .number = stat.number,
				       .size = (u64)stat.size,
				       .blocks = (u64)stat.blocks,
				       .accessed = time,
				       .changed = time,
				       .modified = time,
				       .node_major = (u32)stat.node >> 8,
				       .node_minor = (u32)stat.node & 0xff,
				       .device_minor = DEVICE_NUMBER};
	return user_write(args->arg[4], &statx, sizeof(statx));
}

/* ---- access, mode, owner, times ---- */

s64 call_faccessat2(const struct call_args *args)
{
	const u64 allowed = AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_EACCESS;
	const u32 mode = (u32)args->arg[2];
	struct inode *inode;
	int err = mode & ~(u32)ACCESS_ALL ? -EINVAL
					  : inode_at(args, (u32)args->arg[3], allowed, &inode);

	if (err)
		return err;
	if (mode & ACCESS_EXECUTE && inode->kind != INODE_DIRECTORY &&
	    !(atomic_load_relaxed(&inode->mode) & MODE_EXECUTE))
		err = -EACCES;
	inode_put(inode);
	return err;
}

s64 call_fchmodat(const struct call_args *args)
{
	struct inode *inode;
	const int err = inode_at(args, 0, 0, &inode);

	if (err)
		return err;
	atomic_store_relaxed(&inode->mode, (atomic_load_relaxed(&inode->mode) & MODE_TYPE) |
						   ((u32)args->arg[2] & MODE_PERMISSIONS));
	inode_put(inode);
	return 0;
}

/* Owners and times cannot be changed. The calls only check that the file is there. */
static s64 check_there(const struct call_args *args, u64 flags)
{
	struct inode *inode;
	const int err = inode_at(args, flags, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH, &inode);

	if (!err)
		inode_put(inode);
	return err;
}

s64 call_fchownat(const struct call_args *args)
{
	return check_there(args, args->arg[4]);
}

s64 call_utimensat(const struct call_args *args)
{
	return check_there(args, args->arg[3] | (args->arg[1] ? 0 : AT_EMPTY_PATH));
}

/* ---- statfs ---- */

struct program_statfs {
	s64 type, block_size, blocks, free, available, files, files_free;
	u32 id[2];
	s64 name_length, fragment, flags, spare[4];
};
_Static_assert(sizeof(struct program_statfs) == 120, "struct statfs of the ABI");

enum { TMPFS_MAGIC = 0x01021994 };

s64 call_statfs(const struct call_args *args)
{
	const struct call_args at = {.file = args->file, .arg = {(u64)PATH_CURRENT, args->arg[0]}};
	const s64 err = check_there(&at, 0);
	struct mm_usage usage;
	s64 ram, free;

	if (err)
		return err;
	mm_usage(&usage);
	ram = (s64)usage.ram;
	free = (s64)(usage.free + usage.unopened + usage.per_cpu);
	return user_write(args->arg[1],
			  &(struct program_statfs){.type = TMPFS_MAGIC,
						   .block_size = PAGE_SIZE,
						   .fragment = PAGE_SIZE,
						   .name_length = NAME_LENGTH_MAX,
						   .blocks = ram,
						   .files = ram,
						   .free = free,
						   .available = free,
						   .files_free = free},
			  sizeof(struct program_statfs));
}

/* ---- truncate ---- */

s64 call_truncate(const struct call_args *args)
{
	struct inode *inode;
	int err;

	if ((s64)args->arg[1] < 0)
		return -EINVAL;
	err = path_find(PATH_CURRENT, args->arg[0], PATH_FOLLOW, &inode);
	if (err)
		return err;
	if (inode->kind != INODE_REGULAR)
		err = inode->kind == INODE_DIRECTORY ? -EISDIR : -EINVAL;
	else
		err = file_resize(inode, args->arg[1]);
	inode_put(inode);
	return err;
}
