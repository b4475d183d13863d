/*
 * The memory sanitizer's view of physical memory. For every bit of the process, by address, the
 * sanitizer keeps a bit that says whether it was written. Here one frame is visible at several
 * addresses, so the shadows of these addresses must share memory too:
 *
 *   memfd of RAM      [ frame ]  <- direct map, window, vmap region      application addresses
 *   memfd of shadow   [ frame ]  <- the same places ^ SHADOW             their shadows
 *
 * For each mapping that pages.c makes, it first makes one here at the same offset. The reverse
 * order would leave a moment in which an old shadow claims that something is unwritten; old
 * contents can claim nothing.
 *
 * A frame that is about to get a new owner (check_frames_reused()) counts as unwritten from then
 * on. Memory at the start counts as written, because start-up code clears what it takes
 * (memblock_alloc()). Metadata memory is an exception, so arenas fill such memory with a pattern
 * (tests/kernel/arena.c). In other builds the functions are empty.
 *
 * Source: LLVM 14, compiler-rt/lib/msan/msan.h (the layout of x86-64 Linux); Stepanov and
 * Serebryany, "MemorySanitizer: fast detector of uninitialized memory use in C++", 2015.
 */
#define _GNU_SOURCE
#include <sys/syscall.h>

#include "tests/host/host.h"

#ifdef __SANITIZE_MEMORY__
#include <sanitizer/msan_interface.h>

#define SHADOW 0x500000000000ULL

static int shadow_fd = -1;

/* Bypasses the sanitizer's own mmap(), which would write the shadow of the shadow. */
static void map(virt_t virt, u64 bytes, int flags, int fd, u64 offset)
{
	const virt_t at = virt ^ SHADOW;

	if (syscall(SYS_mmap, at, bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED | MAP_NORESERVE,
		    fd, offset) != (long)at)
		host_die("no shadow for 0x%llx", virt);
}

void host_shadow_init(u64 bytes)
{
	shadow_fd = memfd_create("ashlar-shadow", MFD_CLOEXEC);
	if (shadow_fd < 0 || ftruncate(shadow_fd, (off_t)bytes) < 0)
		host_die("no memfd for the shadow");
}

void host_shadow_map(virt_t virt, u64 bytes, phys_t phys)
{
	map(virt, bytes, MAP_SHARED, shadow_fd, phys);
}

void host_shadow_unmap(virt_t virt, u64 bytes)
{
	map(virt, bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

void host_shadow_unwritten(pfn_t pfn, u64 frames)
{
	const pfn_t end = MIN(pfn + frames, host_memory_bytes >> PAGE_SHIFT);

	if (pfn < end) /* phantom memory of the arenas lies beyond */
		__msan_poison(phys_to_virt(pfn << PAGE_SHIFT), (end - pfn) * PAGE_SIZE);
}

void host_shadow_written(const void *addr, size_t bytes)
{
	__msan_unpoison(addr, bytes);
}
#else
void host_shadow_init(u64 bytes)
{
}

void host_shadow_map(virt_t virt, u64 bytes, phys_t phys)
{
}

void host_shadow_unmap(virt_t virt, u64 bytes)
{
}

void host_shadow_unwritten(pfn_t pfn, u64 frames)
{
}

void host_shadow_written(const void *addr, size_t bytes)
{
}
#endif
