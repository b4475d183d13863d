/*
 * Program that runs in the Linux that is measured, for the table of placement by GiB: the trace of
 * bench=gigablock (tests/bench/gigablock_trace.h), and then pages of 1 GiB.
 *
 *   age OPS    prints the figures of a record, or nothing and exits with 1
 *
 * A page of the page cache is anonymous memory that is written. A page that cannot move is a page
 * table: 2 MiB of addresses of which one byte is read. So a request of order n is 2^n of them, and
 * none is reclaimable. The trace has 97% of free memory, because what the kernel keeps back cannot
 * be had, and a program that asks for it is killed. Huge pages must have been switched off.
 *
 *   tainted    GiB with a page table or memory of the slab allocator in them
 */
#include <linux/kernel-page-flags.h>
#include <linux/sysinfo.h>

#include "nolib.h"
#include "tests/bench/gigablock_trace.h"

#define STUCK_BITS (1ULL << KPF_SLAB | 1ULL << KPF_PGTABLE)
enum { ORDERS = 5, RELEASED = 50, SEED = 21, FLAGS = 4096, GIB_FRAMES = 1 << 18, MANY = 1024 };
enum { ANYWHERE = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE };

/* Addresses for pages of one order, and the numbers of those that were given back. */
struct region {
	char *base;
	u64 step, used, free; /* bytes of the smallest page; numbers */
	u32 *freed;
};

static struct region regions[2][ORDERS]; /* of tables; of the cache */
static u32 *table[KINDS];                /* each page's number in its region, and its order */
static struct trace trace;

static bool take(unsigned kind, unsigned order, bool reclaimable)
{
	struct region *region = &regions[kind == CACHE][order];
	const u64 at = region->free > 0 ? region->freed[--region->free] : region->used++;
	volatile char *page = region->base + at * (region->step << order);

	for (u64 i = 0; i < 1ULL << order; i++, page += region->step)
		if (kind == CACHE)
			*page = 1;
		else
			(void)*page;
	table[kind][trace.pages[kind]] = (u32)(at * ORDERS + order);
	return true;
}

static u64 give(unsigned kind, u64 at)
{
	const u32 entry = table[kind][at], order = entry % ORDERS;
	struct region *region = &regions[kind == CACHE][order];
	const u64 bytes = region->step << order, page = (u64)region->base + entry / ORDERS * bytes;

	if (kind == CACHE)
		call(SYS_madvise, page, bytes, MADV_DONTNEED, 0, 0, 0);
	else /* tables leave with their mapping */
		call(SYS_mmap, page, bytes, PROT_READ | PROT_WRITE, ANYWHERE | MAP_FIXED, -1UL, 0);
	region->freed[region->free++] = entry / ORDERS;
	table[kind][at] = table[kind][trace.pages[kind] - 1];
	return 1ULL << order;
}

static u64 resize(u64 pages)
{
	return set_pool(POOL_2M, pages);
}

/* Print how many frames cannot move, and in how many GiB they are. */
static void print_state(void)
{
	static u64 flags[FLAGS];
	const u64 file = (u64)call(SYS_open, (u64) "/proc/kpageflags", O_RDONLY, 0, 0, 0, 0);
	u64 frames = 0, stuck = 0, before = 0, tainted = 0;

	while (call(SYS_read, file, (u64)flags, sizeof(flags), 0, 0, 0) == sizeof(flags)) {
		for (u64 i = 0; i < FLAGS; i++)
			stuck += (flags[i] & STUCK_BITS) != 0;
		frames += FLAGS;
		if (frames % GIB_FRAMES == 0) {
			tainted += stuck > before;
			before = stuck;
		}
	}
	print_word("stuck_pages="), print_number(stuck, ' ');
	print_word("tainted="), print_number(tainted, ' ');
}

static bool begin(void)
{
	struct sysinfo info;
	bool ok = call(SYS_sysinfo, (u64)&info, 0, 0, 0, 0, 0) == 0;

	trace = (struct trace){.seed = SEED, .take = take, .give = give, .resize = resize};
	trace.memory = info.freeram * info.mem_unit / PAGE_SIZE / 100 * 97;
	for (unsigned k = 0; k < KINDS; k++)
		ok &= !!(table[k] = (u32 *)map_memory(trace.memory * sizeof(u32), ANYWHERE));
	for (unsigned i = 0; i < 2 * ORDERS; i++) {
		struct region *region = &regions[i / ORDERS][i % ORDERS];
		/* 4.5% of memory cannot move, at most */
		const u64 most = i < ORDERS ? trace.memory / 16 : trace.memory;

		region->step = i < ORDERS ? PAGE_SIZE * 512 : PAGE_SIZE;
		region->base = map_memory(most * region->step + MIB(32), ANYWHERE);
		region->base = (char *)ALIGN_UP((u64)region->base, MIB(2));
		region->freed = (u32 *)map_memory(most * sizeof(u32), ANYWHERE);
		ok &= region->base && region->freed;
	}
	return ok;
}

static int run(long argc, char **argv)
{
	u64 ops, aged, start;

	if (argc != 2 || !begin())
		return 1;
	ops = number_of(argv[1]);
	start = now_ns();
	if (!trace_fill(&trace))
		return 1;
	trace_go_on(&trace, ops, ops);
	aged = now_ns();
	trace_release(&trace, RELEASED);
	print_word("memory="), print_number(trace.memory, ' ');
	print_word("requests="), print_number(trace.requests, ' ');
	print_state();
	print_word("giga="), print_number(set_pool(POOL_1G, MANY), ' ');
	print_word("ns="), print_number(aged - start, '\n');
	return 0;
}
