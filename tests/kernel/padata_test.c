/*
 * padata: the chunk rule, and that every chunk is done once, whichever CPUs help.
 */
#include "kernel/core/padata.h"

#include "tests/kernel/test.h"

/*
 * nworks = min(size / max(min_chunk, align), threads), at least 1
 * chunk = roundup(max(size / (4 nworks), min_chunk, 1), align)
 */
TEST(kernel_padata, chunk_sizes_follow_the_rule)
{
	static const struct {
		u64 size, align, min_chunk;
		unsigned threads;
		u64 chunk;
	} rows[] = {
		{1000, 1, 1, 1, 250},
		{1000, 1, 1, 4, 62},
		{1000, 64, 1, 4, 64},
		{1 << 20, 4096, 4096, 8, 32768},
		{1 << 20, 4096, 4096, 1000, 4096},
		{100, 1, 60, 8, 60},
		{100, 64, 60, 8, 64},
		{10, 1, 100, 8, 100},
		{3, 1, 1, 100, 1},
		{0, 1, 1, 4, 1},
		{0, 0, 0, 0, 1},
		{7, 0, 0, 1, 1},
		{1000, 0, 0, 4, 62},
		{1, 4096, 0, 4, 4096},
		{32768, 32768, 32768, 4, 32768},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (padata_chunk_size(rows[i].size, rows[i].align, rows[i].min_chunk,
				      rows[i].threads) != rows[i].chunk)
			test_fail(__FILE__, __LINE__, "row %u: chunk is %llu, want %llu", i,
				  padata_chunk_size(rows[i].size, rows[i].align, rows[i].min_chunk,
						    rows[i].threads),
				  rows[i].chunk);
}

enum { UNITS_MAX = 5000 };

struct coverage {
	u64 start;
	u64 align;
	u8 visits[UNITS_MAX];
	u32 chunks, misaligned, outside;
	u64 end;
};

static struct coverage cover;

static void visit(u64 start, u64 end, void *arg)
{
	struct coverage *c = arg;

	atomic_fetch_add(&c->chunks, 1);
	if ((start != c->start && start % c->align) || (end != c->end && end % c->align))
		atomic_fetch_add(&c->misaligned, 1);
	if (start >= end || start < c->start || end > c->end) {
		atomic_fetch_add(&c->outside, 1);
		return;
	}
	for (u64 i = start; i < end; i++)
		atomic_fetch_add(&c->visits[i - c->start], 1);
}

static void cover_begin(u64 start, u64 end, u64 align)
{
	memset(&cover, 0, sizeof(cover));
	cover.start = start;
	cover.end = end;
	cover.align = MAX(align, 1);
}

/* Every unit was done once. */
static void expect_covered(void)
{
	u64 wrong = 0;

	for (u64 i = 0; i < cover.end - cover.start; i++)
		wrong += cover.visits[i] != 1;
	EXPECT_EQ(wrong, 0);
}

static void check_cover(u64 start, u64 size, u64 align, u64 min_chunk, unsigned threads)
{
	struct padata_mt_job job = {.thread_fn = visit,
				    .arg = &cover,
				    .start = start,
				    .size = size,
				    .align = align,
				    .min_chunk = min_chunk,
				    .max_threads = threads,
				    .node = NODE_NONE};

	cover_begin(start, start + size, align);
	padata_run(&job);
	expect_covered();
	EXPECT_EQ(cover.misaligned, 0);
	EXPECT_EQ(cover.outside, 0);
	EXPECT_EQ(cover.chunks > 0, size > 0);
	EXPECT(job.threads >= 1 && job.threads <= MAX(threads, 1));
	EXPECT(job.chunks_min <= job.chunks_max);
	EXPECT(job.chunks_max * job.threads >= cover.chunks);
}

TEST(kernel_padata, every_unit_is_done_once_by_any_number_of_threads)
{
	for (unsigned threads = 0; threads <= MIN(cpumask_weight(&cpus_online) + 1, 12);
	     threads++) {
		check_cover(0, UNITS_MAX, 1, 1, threads);
		check_cover(0, UNITS_MAX, 64, 0, threads);
		check_cover(12345, 4321, 100, 700, threads);
		check_cover(7, 1, 512, 0, threads);
		check_cover(1000, 0, 64, 64, threads);
		check_cover(0, 3, 0, 0, threads);
	}
}

/* A chunk of the size asked for is rounded up to the alignment, too. */
TEST(kernel_padata, a_job_may_ask_for_the_size_of_its_chunks)
{
	struct padata_mt_job job = {.thread_fn = visit,
				    .arg = &cover,
				    .size = 1000,
				    .align = 3,
				    .chunk = 4,
				    .node = NODE_NONE};

	cover_begin(0, job.size, job.align);
	padata_run(&job);
	expect_covered();
	EXPECT_EQ(cover.misaligned, 0);
	EXPECT_EQ(cover.chunks, DIV_ROUND_UP(job.size, 6));
}

/* ---- helpers ---- */

/*
 * Chunks are dealt out before the work begins, so each participant starts with a share of its own,
 * far from the others' chunks. Each stays in its first chunk until all have arrived.
 */
enum { DEALT = 4, DEALT_CHUNKS = 4 * DEALT };

struct dealing {
	u32 here, wanted;
	/* Chunks that were begun before all participants had arrived: the first chunk of each. */
	u32 begun[DEALT_CHUNKS];
};

static void wait_for_all(u64 start, u64 end, void *arg)
{
	struct dealing *d = arg;

	if (atomic_load_acquire(&d->here) >= d->wanted)
		return;
	atomic_store_relaxed(&d->begun[start], 1);
	atomic_fetch_add(&d->here, 1);
	CPUS_AWAIT(atomic_load_acquire(&d->here) >= d->wanted);
}

TEST(kernel_padata, each_thread_begins_with_a_share_of_its_own)
{
	const unsigned threads = MIN(DEALT, cpumask_weight(&cpus_online));
	struct dealing d = {.wanted = threads};
	struct padata_mt_job job = {.thread_fn = wait_for_all,
				    .arg = &d,
				    .size = 4 * threads,
				    .min_chunk = 1,
				    .max_threads = threads,
				    .node = NODE_NONE};

	if (threads < 2)
		SKIP("needs two CPUs");
	EXPECT(cpus_wait_idle());
	EXPECT_EQ(padata_chunk_size(job.size, 1, 1, threads), 1);
	padata_run(&job);
	EXPECT_EQ(d.here, threads);
	for (unsigned chunk = 0; chunk < 4 * threads; chunk++)
		EXPECT_EQ(d.begun[chunk], chunk % 4 == 0);
}

/* A share is done by the others if its participant never comes because its CPU has other work. */
static void keep_cpu(void *arg)
{
	const u32 *release = arg;

	while (!atomic_load_acquire(release))
		cpu_relax();
}

TEST(kernel_padata, a_share_that_nobody_comes_for_is_done_by_the_others)
{
	struct padata_mt_job job = {.thread_fn = visit,
				    .arg = &cover,
				    .size = 64,
				    .min_chunk = 1,
				    .max_threads = 8,
				    .node = NODE_NONE};
	u32 release = 0;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		if (cpu != cpu_id())
			work_start(cpu, keep_cpu, &release);
	cover_begin(0, job.size, 1);
	padata_run(&job);
	atomic_store_release(&release, 1);
	cpumask_foreach(cpu, &cpus_online)
		if (cpu != cpu_id())
			work_wait(cpu, 0);
	expect_covered();
	EXPECT_EQ(job.threads, 1);
	EXPECT_EQ(job.chunks_max, 32);
}

/* For a moment each CPU says that it is on the next node, so node 0 has no CPU. */
TEST(kernel_padata, no_cpu_of_another_node_helps)
{
	const node_t without_cpu[] = {0, node_count + 1};
	struct padata_mt_job job = {
		.thread_fn = visit, .arg = &cover, .size = 64, .min_chunk = 1, .max_threads = 8};
	cpu_t cpu;

	cover_begin(0, job.size, 1);
	EXPECT(cpus_wait_idle());
	cpumask_foreach(cpu, &cpus_online)
		cpu_data(cpu)->node++;
	for (unsigned i = 0; i < ARRAY_LEN(without_cpu); i++) {
		job.node = without_cpu[i];
		padata_run(&job);
		EXPECT_EQ(job.threads, 1);
	}
	cpumask_foreach(cpu, &cpus_online)
		cpu_data(cpu)->node--;
}
