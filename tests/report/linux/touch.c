/*
 * Program that runs in the Linux that is measured, for the table of the clearing series: a region
 * of huge pages is mapped, each page touched once, and unmapped (Arora, "mm/clear_huge_page: use
 * multi-page clearing", 2023-04: "mmap(MAP_HUGETLB) to demand fault a region", one task).
 *
 *   touch 2M|1G PAGES    prints "TOUCH_NS UNMAP_NS", or nothing and exits with 1
 *
 * The pool must have that many free pages.
 */
#include "nolib.h"

static int run(long argc, char **argv)
{
	const u64 shift = argc == 3 && argv[1][0] == '1' ? 30 : 21;
	const u64 pages = argc == 3 ? number_of(argv[2]) : 0;
	const u64 flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | shift << MAP_HUGE_SHIFT;
	volatile char *region = map_memory(pages << shift, flags);
	u64 start, touched;

	if (!region)
		return 1;
	start = now_ns();
	for (u64 i = 0; i < pages; i++)
		region[i << shift] = 1;
	touched = now_ns();
	call(SYS_munmap, (u64)region, pages << shift, 0, 0, 0, 0);
	print_number(touched - start, ' ');
	print_number(now_ns() - touched, '\n');
	return 0;
}
