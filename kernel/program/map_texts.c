/*
 * Texts from which a program learns about its own memory: /proc/self/maps, smaps, statm and status.
 * Formats: proc(5). Each area is made busy while it is described, so that its file and its pages
 * stay.
 */
#include <arch/atomic.h>

#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/program/file.h"
#include "kernel/program/heap.h"
#include "kernel/program/layout.h"
#include "kernel/program/path.h"
#include "mm/vm/pages.h"
#include "kernel/program/proc_text.h"
#include "kernel/program/thread.h"
#include "kernel/program/program_space.h"

static u64 kib(const struct pages_count *count)
{
	return count->leaves[PT_PAGE] * (PAGE_SIZE / KIB(1)) +
	       count->leaves[PT_PMD] * (MIB(2) / KIB(1)) +
	       count->leaves[PT_PUD] * (GIB(1) / KIB(1));
}

static void name_of(const struct area *area, char *buf, size_t size)
{
	const char *name = "";

	if (area->object) {
		file_name(file_of_object(area->object), buf, size);
		return;
	}
	if (area->start < STACK_TOP && area->end > STACK_TOP - STACK_BYTES)
		name = "[stack]";
	else if (area->start == VDSO_BASE)
		name = "[vvar]";
	else if (area->start == VDSO_IMAGE)
		name = "[vdso]";
	else if (heap_has(area->start))
		name = "[heap]";
	format(buf, size, "%s", name);
}

static void write_line(struct text_sink *sink, const struct area *area)
{
	/* a page for paths is free: the one that named this text has been walked */
	char *name = thread_current()->texts;

	name_of(area, name, PATH_TEXT_MAX);
	text_print(sink, "%08llx-%08llx %c%c%c%c %08llx 00:00 0%s", area->start, area->end,
		   area->rights & USER_RIGHT_READ ? 'r' : '-',
		   area->rights & USER_RIGHT_WRITE ? 'w' : '-',
		   area->rights & USER_RIGHT_EXEC ? 'x' : '-',
		   area->flags & AREA_SHARED ? 's' : 'p', area->object ? area->offset : 0,
		   name[0] ? "  " : "");
	text_add(sink, name, strlen(name));
	text_print(sink, "\n");
}

static void write_use(struct text_sink *sink, const struct area *area)
{
	struct pages_count count = {.leaves = {0}};

	write_line(sink, area);
	pages_count_range(&program_space, area->start, area->end, &count);
	text_print(sink, "Size:           %8llu kB\n", (area->end - area->start) / KIB(1));
	text_print(sink, "KernelPageSize: %8u kB\nMMUPageSize:    %8u kB\n", 4, 4);
	text_print(sink, "Rss:            %8llu kB\n", kib(&count));
	text_print(sink, "Pss:            %8llu kB\n", kib(&count));
	text_print(sink, "AnonHugePages:  %8llu kB\n",
		   area->flags & AREA_POOL ? 0 : count.leaves[PT_PMD] * (MIB(2) / KIB(1)));
	text_print(sink, "Private_Hugetlb:%8llu kB\n", area->flags & AREA_POOL ? kib(&count) : 0);
	text_print(sink, "Swap:           %8u kB\n", 0);
}

/*
 * The text is made while the area is busy, so it must not touch the program's memory. Texts go to
 * the kernel's own pages (proc_text.h).
 */
static void each_area(struct text_sink *sink, void (*fn)(struct text_sink *, const struct area *))
{
	u64 at = USER_START;
	struct area area;

	while (area_tree_from(&program_space.tree, at, &area)) {
		if (space_take(&program_space, &at, area.end, &area) <= 0) {
			at = area.end;
			continue;
		}
		fn(sink, &area);
		space_put_back(&program_space, &area);
	}
}

static void write_maps(struct text_sink *sink)
{
	each_area(sink, write_line);
}
PROC_TEXT(maps, "/proc/self/maps", write_maps);

static void write_smaps(struct text_sink *sink)
{
	each_area(sink, write_use);
}
PROC_TEXT(smaps, "/proc/self/smaps", write_smaps);

/* Size, resident, shared, text, library, data and dirty, in pages. */
static void write_statm(struct text_sink *sink)
{
	const u64 size = atomic_load_relaxed(&program_space.bytes) >> PAGE_SHIFT;

	text_print(sink, "%llu %llu 0 0 0 %llu 0\n", size,
		   pages_resident(&program_space) >> PAGE_SHIFT, size);
}
PROC_TEXT(statm, "/proc/self/statm", write_statm);

static void write_status(struct text_sink *sink)
{
	unsigned threads = 0;

	for (const struct thread *t = thread_next(NULL); t; t = thread_next(t))
		threads++;
	text_print(sink, "Name:\t%s\nState:\tR (running)\n", thread_current()->name);
	text_print(sink, "Tgid:\t%u\nPid:\t%u\nPPid:\t0\n", program_pid(), thread_current()->id);
	text_print(sink, "VmPeak:\t%8llu kB\nVmSize:\t%8llu kB\n",
		   atomic_load_relaxed(&program_space.bytes) / KIB(1),
		   atomic_load_relaxed(&program_space.bytes) / KIB(1));
	text_print(sink, "VmHWM:\t%8llu kB\nVmRSS:\t%8llu kB\n",
		   pages_resident_most(&program_space) / KIB(1),
		   pages_resident(&program_space) / KIB(1));
	text_print(sink, "Threads:\t%u\n", threads);
}
PROC_TEXT(status, "/proc/self/status", write_status);
