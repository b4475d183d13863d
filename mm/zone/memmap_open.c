/*
 * Making all struct pages at once: see memmap_open.h.
 */
#include "mm/zone/memmap_open.h"

#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/padata.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"

const struct memmap_way memmap_ways[] = {
	[WAY_SERIAL] = {.name = "serial",
			.style = SECTION_MAPPED,
			.make = &memmap_makes[MAKE_PLAIN]},
	[WAY_PARALLEL] = {.name = "parallel",
			  .style = SECTION_MAPPED,
			  .make = &memmap_makes[MAKE_PLAIN],
			  .job = true},
	[WAY_EAGER] = {.name = "eager",
		       .style = SECTION_MAPPED,
		       .make = &memmap_makes[MAKE_STREAM],
		       .job = true,
		       .chunk = 1},
	[WAY_LAZY] = {.name = "lazy",
		      .style = SECTION_ON_DEMAND,
		      .make = &memmap_makes[MAKE_STREAM],
		      .job = true},
	{.name = NULL},
};

static unsigned memmap_way = WAY_LAZY;
OPTION_CHOICE(memmap, memmap_way, "serial|parallel|eager|lazy",
	      "when struct pages are made: all at boot in one of three ways, or on demand",
	      .boot_only = true);

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

OPTION(memmap.threads, .values = "count or percentage", .parse = parse_threads,
       .show = show_threads, .target = &boot_threads,
       .help = "threads per node for memmap=parallel and eager; 0: one CPU alone",
       .boot_only = true);

enum section_style memmap_style(void)
{
	return memmap_ways[memmap_way].style;
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

#define NO_SECTION (~0ULL)

/*
 * The n-th of the node's sections in order of address, without holes and sections of other nodes,
 * so that chunks of equal length are equal shares of the work. NO_SECTION behind the last.
 */
static u64 nth_section(const struct mm *mm, node_t node, u64 n)
{
	u64 first, end = 0;

	for (size_t i = 0; i < mm->memory->count; i++) {
		const struct memblock_range *range = &mm->memory->range[i];

		if (range->node != node)
			continue;
		/* a section that two ranges share is counted once */
		first = MAX(range->start / SECTION_BYTES, end);
		end = MAX(DIV_ROUND_UP(range->end, SECTION_BYTES), first);
		if (n < end - first)
			return first + n;
		n -= end - first;
	}
	return NO_SECTION;
}

/*
 * Count the node's sections, and in *open those that are open. Done before and after the work, so
 * that counting costs nothing while the work is done.
 */
static u64 count_sections(const struct mm *mm, node_t node, u64 *open)
{
	u64 n = 0;

	*open = 0;
	for (u64 section = nth_section(mm, node, n); section != NO_SECTION;
	     section = nth_section(mm, node, ++n))
		*open += section_state(mm, section) == SECTION_OPEN;
	return n;
}

struct open_job {
	struct mm *mm;
	const struct memmap_way *way;
	node_t helpers_from;
	unsigned threads;
	struct memmap_opened *result;
};

static void open_chunk(u64 start, u64 end, void *arg)
{
	const struct open_job *job = arg;

	for (u64 n = start; n < end; n++)
		section_open_by(job->mm, nth_section(job->mm, job->result->node, n),
				job->way->style, job->way->make);
}

/*
 * The memmap series, as its review asks: one job over all of the node's sections, whose
 * chunks share nothing.
 */
static void open_by_chunks(struct open_job *job, u64 sections)
{
	const unsigned threads = MAX(job->threads, 1u);
	struct padata_mt_job padata = {.thread_fn = open_chunk,
				       .arg = job,
				       .size = sections,
				       .min_chunk = 1,
				       .chunk = job->way->chunk,
				       .max_threads = threads,
				       .node = job->helpers_from};

	padata_run(&padata);
	job->result->threads = padata.threads;
	job->result->chunks_min = padata.chunks_min;
	job->result->chunks_max = padata.chunks_max;
}

static void open_node(void *arg)
{
	struct open_job *job = arg;
	u64 before, after, began;
	const u64 sections = count_sections(job->mm, job->result->node, &before);

	if (sections == 0)
		return; /* a node without memory */
	began = clock_ns();
	job->result->threads = 1;
	if (job->way->job)
		open_by_chunks(job, sections);
	else /* before the series: one CPU goes from the node's first section to its last */
		open_chunk(0, sections, job);
	job->result->ns = clock_ns() - began;
	count_sections(job->mm, job->result->node, &after);
	job->result->sections = after - before;
}

/* A node without CPUs is done by the CPUs of the nearest node that has some. */
static node_t node_with_cpus(const struct mm *mm, node_t node)
{
	for (node_t i = 0; i < mm->nodes; i++) {
		const node_t near = node_near(&mm->node[node], i)->id;

		if (cpu_first_of_node(near) != CPU_NONE)
			return near;
	}
	return cpu_data(cpu_id())->node;
}

void memmap_open_all(struct mm *mm, const struct memmap_way *way, struct memmap_threads threads,
		     struct memmap_opened *opened)
{
	static struct open_job jobs[ZONES_MAX];
	static bool remote[ZONES_MAX];

	for (node_t n = 0; n < mm->nodes; n++) {
		const node_t helpers = node_with_cpus(mm, n);
		const cpu_t leader = cpu_first_of_node(helpers);

		opened[n] = (struct memmap_opened){.node = n};
		jobs[n] = (struct open_job){
			.mm = mm, .way = way, .helpers_from = helpers, .result = &opened[n]};
		jobs[n].threads = memmap_threads_on(helpers, threads);
		remote[n] =
			helpers != this_cpu()->node && work_start(leader, open_node, &jobs[n]) == 0;
	}
	for (node_t n = 0; n < mm->nodes; n++)
		if (!remote[n])
			open_node(&jobs[n]);
	for (node_t n = 0; n < mm->nodes; n++)
		if (remote[n])
			work_wait(cpu_first_of_node(jobs[n].helpers_from), 0);
}

struct memmap_boot memmap_boot;

void memmap_open_at_boot(struct mm *mm)
{
	static struct memmap_opened opened[ZONES_MAX];

	memmap_boot = (struct memmap_boot){
		.way = &memmap_ways[memmap_way], .asked = boot_threads, .opened = opened};
	if (memmap_way == WAY_LAZY)
		return;
	memmap_open_all(mm, memmap_boot.way, boot_threads, opened);
	for (node_t n = 0; n < mm->nodes; n++)
		pr_info("memmap: node %u: %llu sections in %llu.%03llu ms by %u threads, %llu to "
			"%llu chunks each",
			n, opened[n].sections, opened[n].ns / NS_PER_MS,
			opened[n].ns / NS_PER_US % 1000, opened[n].threads, opened[n].chunks_min,
			opened[n].chunks_max);
}
