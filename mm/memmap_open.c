/*
 * Making all struct pages at once: see memmap_open.h.
 */
#include "mm/memmap_open.h"

#include <arch/clock.h>

#include "kernel/call.h"
#include "kernel/cmdline.h"
#include "kernel/padata.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"

enum { MEMMAP_SERIAL, MEMMAP_PARALLEL, MEMMAP_LAZY };
static unsigned memmap_mode = MEMMAP_LAZY;
OPTION_CHOICE(memmap, memmap_mode, "serial|parallel|lazy",
	      "when struct pages are made: all by one CPU, all by all, on demand", .boot_only = true);

static struct memmap_threads boot_threads = {.value = 100, .percent = true};

static int parse_threads(const struct option *opt, const char *value)
{
	struct memmap_threads *threads = opt->target;
	u64 number;

	if (parse_u64(&value, &number) < 0 || (value[0] && (value[0] != '%' || value[1])))
		return -EINVAL;
	if (number > (value[0] ? 100 : 65535))
		return -ERANGE;
	*threads = (struct memmap_threads){.value = (unsigned)number, .percent = value[0] == '%'};
	return 0;
}

static void show_threads(const struct option *opt, char *buf, size_t size)
{
	const struct memmap_threads *threads = opt->target;

	format(buf, size, "%u%s", threads->value, threads->percent ? "%" : "");
}

OPTION(memmap_threads, .values = "count or percentage", .parse = parse_threads, .show = show_threads, .target = &boot_threads,
       .help = "threads per node for memmap=parallel; 0: one CPU alone", .boot_only = true);

enum section_style memmap_style(void)
{
	return memmap_mode == MEMMAP_LAZY ? SECTION_ON_DEMAND : SECTION_MAPPED;
}

unsigned memmap_threads_on(node_t node, struct memmap_threads threads)
{
	unsigned cpus = 0;
	cpu_t cpu;

	if (!threads.percent || threads.value == 0)
		return threads.value;
	cpumask_foreach(cpu, &cpus_online)
		cpus += cpu_data(cpu)->node == node;
	return MAX(cpus * threads.value / 100, 1);
}

/* The node's sections in order of address, holes and those of other nodes left out: chunks of as many are equal shares of work. */
struct section_walk {
	const struct mm *mm;
	node_t node;
	size_t range;  /* of mm->memory: the next to look at */
	u64 next, end; /* what is left of the one before */
};

static struct section_walk walk_begin(const struct mm *mm, node_t node)
{
	return (struct section_walk){.mm = mm, .node = node};
}

/* Sections left in the range reached, after going on to the next one if there were none; 0 behind the last. */
static u64 walk_run(struct section_walk *walk)
{
	const struct memblock_list *memory = walk->mm->memory;

	while (walk->next == walk->end && walk->range < memory->count) {
		const struct memblock_range *range = &memory->range[walk->range++];

		if (range->node != walk->node)
			continue;
		walk->end = DIV_ROUND_UP(range->end, SECTION_BYTES);
		walk->next = MAX(range->start / SECTION_BYTES, walk->next); /* a section of two ranges is met once */
		walk->next = MIN(walk->next, walk->end);
	}
	return walk->end - walk->next;
}

/* Step over up to `count` sections; returns how many there were. */
static u64 walk_skip(struct section_walk *walk, u64 count)
{
	u64 skipped = 0, run;

	while (skipped < count && (run = walk_run(walk)) != 0) {
		run = MIN(run, count - skipped);
		walk->next += run;
		skipped += run;
	}
	return skipped;
}

struct open_job {
	struct mm *mm;
	enum section_style style;
	node_t helpers_from;
	unsigned threads;
	struct memmap_opened *result;
};

static void open_chunk(u64 start, u64 end, void *arg)
{
	const struct open_job *job = arg;
	struct section_walk walk = walk_begin(job->mm, job->result->node);
	u64 opened = 0;

	walk_skip(&walk, start);
	for (u64 n = start; n < end && walk_run(&walk) != 0; n++)
		opened += section_open(job->mm, walk.next++, job->style) == 0;
	atomic_add_relaxed(&job->result->sections, opened); /* once a chunk: a report, not a cursor */
}

/* One job over all of the node's sections: threads share nothing but the cursor. */
static void open_node(void *arg)
{
	struct open_job *job = arg;
	struct section_walk walk = walk_begin(job->mm, job->result->node);
	struct padata_mt_job padata = {.thread_fn = open_chunk,
				       .arg = job,
				       .size = walk_skip(&walk, ~0ULL),
				       .min_chunk = 1,
				       .max_threads = MAX(job->threads, 1u),
				       .node = job->helpers_from};
	const u64 began = clock_ns();

	if (padata.size == 0)
		return; /* a node without memory */
	padata_run(&padata);
	job->result->ns = clock_ns() - began;
	job->result->threads = padata.threads;
	job->result->chunks_min = padata.chunks_min;
	job->result->chunks_max = padata.chunks_max;
}

/* Nodes without CPUs are done by those of the nearest that has some. */
static node_t node_with_cpus(const struct mm *mm, node_t node)
{
	for (node_t i = 0; i < mm->nodes; i++)
		if (cpu_first_of_node(mm->node[node].fallback[i]) != CPU_NONE)
			return mm->node[node].fallback[i];
	return cpu_data(cpu_id())->node;
}

void memmap_open_all(struct mm *mm, enum section_style style, struct memmap_threads threads, struct memmap_opened *opened)
{
	static struct open_job jobs[ZONES_MAX];
	static bool remote[ZONES_MAX];

	for (node_t n = 0; n < mm->nodes; n++) {
		const node_t helpers = node_with_cpus(mm, n);
		const cpu_t leader = cpu_first_of_node(helpers);

		opened[n] = (struct memmap_opened){.node = n};
		jobs[n] = (struct open_job){.mm = mm, .style = style, .helpers_from = helpers, .result = &opened[n]};
		jobs[n].threads = memmap_threads_on(helpers, threads);
		remote[n] = helpers != this_cpu()->node && work_start(leader, open_node, &jobs[n]) == 0;
	}
	for (node_t n = 0; n < mm->nodes; n++)
		if (!remote[n])
			open_node(&jobs[n]);
	for (node_t n = 0; n < mm->nodes; n++)
		if (remote[n])
			work_wait(cpu_first_of_node(jobs[n].helpers_from), 0);
}

void memmap_open_at_boot(struct mm *mm)
{
	static struct memmap_opened opened[ZONES_MAX];
	struct memmap_threads threads = boot_threads;

	if (memmap_mode == MEMMAP_LAZY)
		return;
	if (memmap_mode == MEMMAP_SERIAL)
		threads.value = 0;
	memmap_open_all(mm, SECTION_MAPPED, threads, opened);
	for (node_t n = 0; n < mm->nodes; n++)
		pr_info("memmap: node %u: %llu sections in %llu.%03llu ms by %u threads, %llu to %llu chunks each", n,
			(unsigned long long)opened[n].sections, (unsigned long long)(opened[n].ns / NS_PER_MS),
			(unsigned long long)(opened[n].ns / NS_PER_US % 1000), opened[n].threads,
			(unsigned long long)opened[n].chunks_min, (unsigned long long)opened[n].chunks_max);
}
