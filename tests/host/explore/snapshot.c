/*
 * Memory of the machine as it was at the first choice. It is one file, which all schedules of a
 * case share, one after the other. Everything else of the process is private to each of them.
 */
#define _GNU_SOURCE
#include "tests/host/explore/explore.h"

static u8 *snapshot; /* as large as the memory; pages that nobody wrote are zero */

static bool copy_page(bool back, u64 at)
{
	u8 *const now = phys_to_virt(at), *const then = snapshot + at;

	if (memcmp(now, then, PAGE_SIZE) == 0)
		return false;
	memcpy(back ? now : then, back ? then : now, PAGE_SIZE);
	return true;
}

/* Copy the pages that the file has; it keeps those that it ever had. Returns how many differed. */
static u64 copy_pages(bool back)
{
	u64 copied = 0;
	off_t at, end = 0;

	while ((at = lseek(host_memory_fd, end, SEEK_DATA)) >= 0)
		for (end = lseek(host_memory_fd, at, SEEK_HOLE); at < end; at += PAGE_SIZE)
			copied += copy_page(back, (u64)at);
	return copied;
}

void snapshot_take(void)
{
	if (!snapshot)
		snapshot = mmap(NULL, host_memory_bytes, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (snapshot == MAP_FAILED || madvise(snapshot, host_memory_bytes, MADV_DONTFORK) < 0)
		host_die("no memory for a snapshot of %llu bytes", host_memory_bytes);
	copy_pages(false);
}

u64 snapshot_restore(void)
{
	return copy_pages(true);
}
