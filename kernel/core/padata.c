/*
 * padata: see padata.h.
 */
#include "kernel/core/padata.h"

#include <arch/atomic.h>

#include "kernel/core/lock.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"

/* Shares of a job: 1 KiB of the caller's stack. */
enum { PADATA_SHARES = 16 };

/*
 * Chunks [next, end) of the job, in a cache line of their own. `next` is atomic and may pass `end`.
 */
struct padata_share {
	__cacheline_aligned u64 next;
	u64 end;
};

struct padata_run {
	struct padata_mt_job *job;
	u64 base;  /* chunk borders are base + n * chunk */
	u64 chunk; /* a multiple of the job's align */
	unsigned shares;
	u32 active; /* helpers that have not finished */
	/*
	 * Participants so far, the caller included; also the first share of the next participant.
	 * Atomic.
	 */
	u32 joined;
	struct spinlock lock; /* protects the job's counts; taken once per participant */
	struct padata_share share[PADATA_SHARES];
};

static unsigned padata_works(u64 size, u64 align, u64 min_chunk, unsigned max_threads)
{
	u64 works = size / MAX(MAX(min_chunk, align), 1);

	works = MIN(works, max_threads);
	return (unsigned)MAX(works, 1);
}

u64 padata_chunk_size(u64 size, u64 align, u64 min_chunk, unsigned max_threads)
{
	u64 chunk = size / (4ULL * padata_works(size, align, min_chunk, max_threads));

	/* At least 1 before rounding up: with a chunk of 0 the job would never end. */
	chunk = MAX(MAX(chunk, min_chunk), 1);
	align = MAX(align, 1);
	return DIV_ROUND_UP(chunk, align) * align;
}

/*
 * Deal the chunks out before any CPU works. A share gets neighbouring chunks, and the sizes of two
 * shares differ by at most one.
 */
static void padata_deal(struct padata_run *run, u64 chunks, unsigned works)
{
	run->shares = MIN(works, PADATA_SHARES);
	for (unsigned i = 0; i < run->shares; i++)
		run->share[i] = (struct padata_share){.next = chunks * i / run->shares,
						      .end = chunks * (i + 1) / run->shares};
}

/*
 * Take chunks of one share until none is left; returns how many were taken. The plain load comes
 * first, so that the cache line of an empty share stays clean.
 */
static u64 padata_take_chunks(struct padata_run *run, struct padata_share *share)
{
	const struct padata_mt_job *job = run->job;
	u64 n, taken = 0;

	if (atomic_load_relaxed(&share->next) >= share->end)
		return 0;
	for (n = atomic_fetch_add(&share->next, 1); n < share->end;
	     n = atomic_fetch_add(&share->next, 1)) {
		u64 start = MAX(run->base + n * run->chunk, job->start);
		u64 end = MIN(run->base + (n + 1) * run->chunk, job->start + job->size);

		job->thread_fn(start, end, job->arg);
		taken++;
	}
	return taken;
}

/*
 * Take this participant's own share, then what is left of the other shares: those of slow
 * participants and those that no participant has begun.
 */
static u64 padata_take_shares(struct padata_run *run, u32 first)
{
	u64 taken = 0;

	for (unsigned i = 0; i < run->shares; i++)
		taken += padata_take_chunks(run, &run->share[(first + i) % run->shares]);
	return taken;
}

static void padata_count(struct padata_run *run, u64 chunks)
{
	struct padata_mt_job *job = run->job;

	spin_lock(&run->lock);
	job->threads++;
	job->chunks_min = MIN(job->chunks_min, chunks);
	job->chunks_max = MAX(job->chunks_max, chunks);
	spin_unlock(&run->lock);
}

static void padata_help(void *arg)
{
	struct padata_run *run = arg;

	padata_count(run, padata_take_shares(run, atomic_fetch_add(&run->joined, 1)));
	atomic_fetch_sub(&run->active, 1); /* last: *run is on the caller's stack only until then */
}

/* Start up to `wanted` helpers on idle CPUs of the job's node. */
static void padata_start_helpers(struct padata_run *run, unsigned wanted)
{
	const node_t node = run->job->node;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (wanted == 0)
			return;
		if (node != NODE_NONE && cpu_data(cpu)->node != node)
			continue;
		atomic_fetch_add(&run->active, 1);
		if (work_start(cpu, padata_help, run) == 0)
			wanted--;
		else /* busy, or this CPU itself */
			atomic_fetch_sub(&run->active, 1);
	}
}

void padata_run(struct padata_mt_job *job)
{
	const u64 align = MAX(job->align, 1);
	struct padata_run run = {.job = job,
				 .base = job->start - job->start % align,
				 .joined = 1,
				 .lock = SPINLOCK_INIT(LOCK_LEAF)};
	const unsigned works = padata_works(job->size, align, job->min_chunk, job->max_threads);
	struct wait wait;

	job->threads = 0;
	job->chunks_min = ~0ULL;
	job->chunks_max = 0;
	run.chunk = job->chunk
			    ? DIV_ROUND_UP(job->chunk, align) * align
			    : padata_chunk_size(job->size, align, job->min_chunk, job->max_threads);
	padata_deal(&run,
		    job->size > 0 ? DIV_ROUND_UP(job->start + job->size - run.base, run.chunk) : 0,
		    works);

	padata_start_helpers(&run, works - 1);
	padata_count(&run, padata_take_shares(&run, 0));
	wait = wait_begin(WAIT_JOB, "padata helpers");
	while (atomic_load_acquire(&run.active) != 0)
		wait_spin(&wait, CPU_NONE);
}
