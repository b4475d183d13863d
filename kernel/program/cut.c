/* Cutting files, and seals: see cut.h. */
#include "kernel/program/cut.h"

#include <arch/atomic.h>

#include "kernel/core/wait.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/program_space.h"
#include "mm/vm/pages.h"
#include "mm/vm/taken.h"

/*
 * Pin the next area from *at on that shows the file, and move *at behind it. The caller ends the
 * pin. False, without one, if there is no more.
 */
static bool pin_mapping(const struct inode *inode, u64 *at, struct area *area)
{
	while (space_next(&program_space, *at, area)) {
		const u64 start = MAX(*at, area->start);

		/* only `start` may be gone meanwhile */
		*at = area->object ? start + PAGE_SIZE : area->end;
		if (!area->object || !space_pin(&program_space, start, PT_PAGE, area))
			continue;
		*at = area->end;
		if (area->object && file_of_object(area->object)->inode == inode)
			return true;
		space_unpin(&program_space);
	}
	return false;
}

/* The address in the area of a place in the file; its borders for places outside. */
static u64 address_of(const struct area *area, u64 place)
{
	const u64 size = area->end - area->start;

	return area->start + MIN(saturating_sub(place, area->offset), size);
}

/*
 * Unmap the pages of [from, to) of the file from `seen`, as far as it still shows them: another
 * thread may have put something else in its place. The memory at hand suffices.
 */
static void forget(const struct area *seen, u64 from, u64 to)
{
	const u64 end = address_of(seen, to);
	u64 at = address_of(seen, from), first, last;
	struct taken taken = {.space = &program_space, .areas_stay = true};
	struct area area;

	while (space_take_to_release(&program_space, &at, end, &area) > 0) {
		first = address_of(&area, from);
		last = address_of(&area, to);
		if (area.object == seen->object && first < last) {
			pages_take(first, last, NULL, &taken);
			taken_finish(&taken);
		}
		space_put_back(&program_space, &area);
	}
}

/* Unmap the pages of [from, to) of the file from all areas with these flags. */
static void forget_in_mappings(const struct inode *inode, u64 from, u64 to, u16 flags)
{
	struct area area;
	u64 at = 0;

	while (pin_mapping(inode, &at, &area)) {
		vm_object_get(area.object);
		space_unpin(&program_space);
		if ((area.flags & flags) == flags)
			forget(&area, from, to);
		vm_object_put(area.object);
	}
}

/* ---- seals ---- */

bool file_has_seal(const struct inode *inode, u32 seals)
{
	return atomic_load_relaxed(&inode->seals) & seals;
}

int file_may_write(const struct inode *inode, u64 at, u64 bytes)
{
	if (file_has_seal(inode, SEAL_WRITE | SEAL_FUTURE_WRITE))
		return -EPERM;
	return file_has_seal(inode, SEAL_GROW) && at + bytes > inode_size(inode) ? -EPERM : 0;
}

static bool is_mapped_to_write(const struct inode *inode)
{
	struct area area;
	bool found = false;

	for (u64 at = 0; !found && pin_mapping(inode, &at, &area);) {
		found = (area.flags & AREA_SHARED) && area.object->ops->can_write(area.object);
		space_unpin(&program_space);
	}
	return found;
}

int file_add_seals(struct file *file, u64 seals)
{
	struct inode *inode = file->inode;

	if (!file_has_seal(inode, SEALS_THERE) || seals & ~(u64)SEALS_ALL)
		return -EINVAL;
	if ((atomic_load_relaxed(&file->flags) & OPEN_ACCESS) != OPEN_BOTH ||
	    file_has_seal(inode, SEAL_SEAL))
		return -EPERM;
	if ((seals & SEAL_WRITE) && !file_has_seal(inode, SEAL_WRITE) && is_mapped_to_write(inode))
		return -EBUSY;
	atomic_fetch_or(&inode->seals, (u32)seals);
	return 0;
}

/* ---- cutting ---- */

u32 file_cut_turn;

int file_resize(struct inode *inode, u64 size)
{
	const u64 old = inode_size(inode);
	int err;

	if (!IS_ALIGNED(size, contents_page_bytes(&inode->contents)) &&
	    inode->contents.level > PT_PAGE)
		return -EINVAL;
	if ((size < old && file_has_seal(inode, SEAL_SHRINK)) ||
	    (size > old && file_has_seal(inode, SEAL_GROW)))
		return -EPERM;
	wait_turn(&file_cut_turn, "a file that another thread cuts");
	/* not by `old`: another thread may have made it longer since */
	err = contents_resize(&inode->contents, size);
	if (err > 0)
		forget_in_mappings(inode, ALIGN_UP(size, PAGE_SIZE), ~0ULL, 0);
	atomic_store_release(&file_cut_turn, 0);
	if (err >= 0)
		inode_touch(inode);
	return MIN(err, 0);
}

int file_punch(struct inode *inode, u64 at, u64 size)
{
	const u64 bytes = contents_page_bytes(&inode->contents);
	int err;

	if (file_has_seal(inode, SEAL_WRITE | SEAL_FUTURE_WRITE))
		return -EPERM;
	wait_turn(&file_cut_turn, "a file that another thread cuts");
	err = contents_punch(&inode->contents, at, size);
	/* a page of which it is a part stays; as on Linux, private copies of huge pages go */
	forget_in_mappings(inode, ALIGN_UP(at, bytes), ALIGN_DOWN(at + size, bytes),
			   bytes > PAGE_SIZE ? 0 : AREA_SHARED);
	atomic_store_release(&file_cut_turn, 0);
	return err;
}
