/* Rows of the counts benchmark: rounds, calls of other CPUs, and jobs. */
#include "kernel/core/padata.h"
#include "tests/bench/counts.h"
#include "tests/bench/measure.h"

static u64 round_of_all(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		shootdown_full(SHOOTDOWN_ALL_CPUS);
	return op->times;
}

static u64 round_but_idle(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		shootdown_full(SHOOTDOWN_SKIP_IDLE);
	return op->times;
}

static u64 round_of_a_page(const struct counts_op *op)
{
	struct shootdown_batch batch = {.ranges = 0};

	for (u64 i = 0; i < op->times; i++) {
		shootdown_batch_add(&batch, (virt_t)counts_held, 1);
		shootdown_batch_flush(&batch, SHOOTDOWN_ALL_CPUS);
	}
	return op->times;
}

static void nothing(void *arg)
{
}

static u64 call(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++)
		counts_add_ipis(call_cpus(&cpus_online, nothing, NULL));
	return op->times;
}

static u64 work(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++) {
		if (work_start(1, nothing, NULL) < 0)
			return 0;
		work_wait(1, 0);
	}
	return op->times;
}

static void do_nothing(u64 start, u64 end, void *arg)
{
}

/* A job of 64 pieces for as many CPUs as will take part. */
static u64 job(const struct counts_op *op)
{
	for (u64 i = 0; i < op->times; i++) {
		struct padata_mt_job pieces = {.thread_fn = do_nothing,
					       .size = 64,
					       .min_chunk = 1,
					       .max_threads = cpumask_weight(&cpus_online),
					       .node = NODE_NONE};

		padata_run(&pieces);
	}
	return op->times;
}

const struct counts_op counts_calls[] = {
	{.name = "round-all", .run = {round_of_all}, .times = 16},
	{.name = "round-skip-idle", .run = {round_but_idle}, .times = 16},
	{.name = "round-page", .run = {round_of_a_page}, .times = 16},
	{.name = "call-all", .run = {call}, .times = 16, .cpus = 2},
	{.name = "work", .run = {work}, .times = 16, .cpus = 2},
	{.name = "job-64", .run = {job}, .times = 16},
	{.name = NULL}};
