/*
 * HVO, batches divided among CPUs: see hvo_share.h.
 *
 * The useful number of CPUs is limited. Idle CPUs must be woken, so each one needs enough work to
 * pay for that. Virtual CPUs share few real ones, and a virtual CPU that its host does not run at
 * the moment makes all others wait for its stretch.
 */
#include "mm/hvo/hvo_share.h"

#include <arch/cpu.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/padata.h"
#include "kernel/core/percpu.h"
#include "mm/memmap/enter.h"

enum { THREADS_AUTO = 8, THREADS_VIRTUAL = 2, STRETCHES_PER_THREAD = 4, STRETCHES_MAX = 16 };

static u64 hvo_threads;
OPTION_U64(hvo.threads, hvo_threads, 0, 64,
	   "CPUs that make or restore the huge pages of one request, in every mode; 0: as many as "
	   "pay off");

static u64 hvo_threads_pages = 1024;
OPTION_U64(hvo.threads_pages, hvo_threads_pages, 1, 1ULL << 20,
	   "huge pages of one request for which one more CPU pays off; one that is split counts "
	   "as 16");

unsigned hvo_threads_for(u64 pages)
{
	const u64 auto_most = cpu_deadline_scale() > 1 ? THREADS_VIRTUAL : THREADS_AUTO;
	const u64 most = hvo_threads ? hvo_threads : auto_most;

	if (pages / 2 < hvo_threads_pages)
		return 1;
	return (unsigned)MIN(MIN(most, pages / hvo_threads_pages), cpumask_weight(&cpus_online));
}

struct share {
	struct hvo_batch stretch[STRETCHES_MAX];
	hvo_step_fn *fn;
	cpu_t asker;
};

static void do_stretches(u64 start, u64 end, void *arg)
{
	struct share *share = arg;

	for (u64 i = start; i < end; i++)
		share->fn(&share->stretch[i]);
	if (cpu_id() != share->asker)
		mm_count(share->stretch[start].mm, COUNT_STRETCHES_HELPED, end - start);
}

static void divide(struct hvo_batch *whole, hvo_step_fn *fn, unsigned threads)
{
	const u64 count = MIN(threads * STRETCHES_PER_THREAD, STRETCHES_MAX);
	struct share share = {.fn = fn, .asker = cpu_id()};
	struct padata_mt_job job = {.thread_fn = do_stretches,
				    .arg = &share,
				    .size = count,
				    .max_threads = threads,
				    .node = NODE_NONE};

	for (u64 i = 0; i < count; i++) {
		share.stretch[i] = (struct hvo_batch){
			.mm = whole->mm, .mode = whole->mode, .alike = whole->alike};
		block_list_cut(whole->mm, &whole->list, whole->list.count / (count - i),
			       &share.stretch[i].list);
	}
	mm_count(whole->mm, COUNT_STRETCHES, count);
	padata_run(&job);
	for (u64 i = 0; i < count; i++) {
		block_list_splice(whole->mm, &whole->list, &share.stretch[i].list);
		whole->round_due |= share.stretch[i].round_due;
	}
}

void hvo_share(struct hvo_batch *whole, u64 to_do, hvo_step_fn *fn)
{
	const unsigned threads = whole->list.count > 0 ? hvo_threads_for(to_do) : 1;

	if (threads > 1)
		divide(whole, fn, threads);
	else
		fn(whole);
}
