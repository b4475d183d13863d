/* Texts under /proc and /sys: see proc_text.h. Here are those about the machine. */
#include "kernel/program/proc_text.h"

#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/program/commit.h"
#include "kernel/program/contents.h"
#include "kernel/program/thread.h"
#include "mm/mm.h"
#include "mm/pools.h"

void text_add(struct text_sink *sink, const char *text, u64 length)
{
	if (!sink->err)
		sink->err = contents_add(sink->contents, text, length);
}

void text_print(struct text_sink *sink, const char *fmt, ...)
{
	char line[TEXT_LINE_MAX];

	FORMAT_ARGS(line, sizeof(line), fmt);
	text_add(sink, line, strlen(line));
}

static void kib_line(struct text_sink *sink, const char *name, u64 frames)
{
	text_print(sink, "%-15s %8llu kB\n", name, frames * (PAGE_SIZE / KIB(1)));
}

static void count_line(struct text_sink *sink, const char *name, u64 count)
{
	text_print(sink, "%-18s %5llu\n", name, count);
}

/* Pages of 2 MiB, as where Linux has no default_hugepagesz=. The last line has all sizes. */
static void write_pools(struct text_sink *sink)
{
	struct pool_usage of_2m, of_1g;

	pool_usage(&pool_2m, &of_2m);
	pool_usage(&pool_1g, &of_1g);
	count_line(sink, "HugePages_Total:", of_2m.pages);
	count_line(sink, "HugePages_Free:", of_2m.free);
	count_line(sink, "HugePages_Rsvd:", of_2m.reserved);
	count_line(sink, "HugePages_Surp:", of_2m.surplus);
	kib_line(sink, "Hugepagesize:", MIB(2) / PAGE_SIZE);
	kib_line(sink, "Hugetlb:",
		 of_2m.pages * (MIB(2) / PAGE_SIZE) + of_1g.pages * (GIB(1) / PAGE_SIZE));
}

static void write_meminfo(struct text_sink *sink)
{
	struct mm_usage usage;
	u64 free;

	mm_usage(&usage);
	free = usage.free + usage.unopened + usage.per_cpu;
	kib_line(sink, "MemTotal:", usage.ram);
	kib_line(sink, "MemFree:", free);
	kib_line(sink, "MemAvailable:", free);
	kib_line(sink, "Buffers:", 0);
	kib_line(sink, "Cached:", contents_pages());
	kib_line(sink, "SwapTotal:", 0);
	kib_line(sink, "SwapFree:", 0);
	kib_line(sink, "Shmem:", contents_pages());
	kib_line(sink, "CommitLimit:", commit_limit() / PAGE_SIZE);
	kib_line(sink, "Committed_AS:", commit_now() / PAGE_SIZE);
	write_pools(sink);
}
PROC_TEXT(meminfo, "/proc/meminfo", write_meminfo);

static void write_cpuinfo(struct text_sink *sink)
{
	for (cpu_t cpu = thread_cpu_told(0); cpu != CPU_NONE; cpu = thread_cpu_told(cpu + 1))
		text_print(sink, "processor\t: %u\n\n", cpu);
}
PROC_TEXT(cpuinfo, "/proc/cpuinfo", write_cpuinfo);

/* Ranges of CPUs, as in "0-3,6". */
static void write_online(struct text_sink *sink)
{
	const char *comma = "";
	cpu_t last;

	for (cpu_t first = thread_cpu_told(0); first != CPU_NONE;
	     first = thread_cpu_told(last + 1)) {
		for (last = first; thread_cpu_told(last + 1) == last + 1; last++)
			continue;
		text_print(sink, first == last ? "%s%u" : "%s%u-%u", comma, first, last);
		comma = ",";
	}
	text_print(sink, "\n");
}
PROC_TEXT(cpu_online, "/sys/devices/system/cpu/online", write_online);
PROC_TEXT(cpu_possible, "/sys/devices/system/cpu/possible", write_online);
PROC_TEXT(cpu_present, "/sys/devices/system/cpu/present", write_online);
