/*
 * Program that runs in the Linux that is measured, for the table of the per-CPU list series:
 * page_fault1 as will-it-scale defines it (Blanchard, "anonymous memory page fault"), with
 * processes. Each task maps 128 MiB, writes to each page, unmaps them, and begins again.
 *
 *   page_fault1 TASKS MS    prints "PAGES NS": the pages that all tasks touched, and how long that
 *                           took; or nothing, and exits with 1
 *
 * A task runs on a CPU of its own. All begin when the last has come, and none begins a region after
 * MS milliseconds. The time ends with the last task, as in tests/bench/page_fault1_bench.c. Huge
 * pages must have been switched off.
 */
#include "nolib.h"

#define REGION_BYTES (128UL << 20)
#define PAGE_BYTES   4096UL
enum { TASKS_MAX = 64 };

/*
 * One cache line for each task. `ended` is 0 until it has ended, and 0 for good if it got no
 * memory.
 */
struct task {
	u64 touched, ended;
} __attribute__((aligned(64)));

/* Shared by all tasks. */
struct crowd {
	u64 came;     /* tasks that are ready; atomic */
	u64 deadline; /* 0 until all may begin; atomic */
	struct task task[TASKS_MAX];
};

/* Pages touched, 0 if there is no memory. */
static u64 touch_region(void)
{
	volatile char *region = map_memory(REGION_BYTES, MAP_PRIVATE | MAP_ANONYMOUS);

	if (!region)
		return 0;
	for (u64 at = 0; at < REGION_BYTES; at += PAGE_BYTES)
		region[at] = 0;
	call(SYS_munmap, (u64)region, REGION_BYTES, 0, 0, 0, 0);
	return REGION_BYTES / PAGE_BYTES;
}

static int run_task(struct crowd *crowd, u64 number)
{
	struct task *task = &crowd->task[number];
	const u64 cpu = 1UL << number;
	u64 deadline, more;

	call(SYS_sched_setaffinity, 0, sizeof(cpu), (u64)&cpu, 0, 0, 0);
	__atomic_fetch_add(&crowd->came, 1, __ATOMIC_RELEASE);
	while (!(deadline = __atomic_load_n(&crowd->deadline, __ATOMIC_ACQUIRE)))
		call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	do {
		more = touch_region();
		task->touched += more;
	} while (more > 0 && now_ns() < deadline);
	task->ended = more > 0 ? now_ns() : 0;
	return more == 0;
}

/* Wait for all tasks. True if each exited with 0. */
static int all_succeed(u64 tasks)
{
	int status, good = 1;

	for (u64 i = 0; i < tasks; i++)
		good &= call(SYS_wait4, -1UL, (u64)&status, 0, 0, 0, 0) > 0 && status == 0;
	return good;
}

static void print_result(const struct crowd *crowd, u64 tasks, u64 began)
{
	u64 touched = 0, ended = 0;

	for (u64 i = 0; i < tasks; i++) {
		touched += crowd->task[i].touched;
		ended = crowd->task[i].ended > ended ? crowd->task[i].ended : ended;
	}
	print_number(touched, ' ');
	print_number(ended - began, '\n');
}

static int run(long argc, char **argv)
{
	const u64 tasks = argc == 3 ? number_of(argv[1]) : 0;
	struct crowd *crowd =
		(struct crowd *)map_memory(sizeof(*crowd), MAP_SHARED | MAP_ANONYMOUS);
	u64 forked = 0, began;
	long child = 1;

	if (tasks == 0 || tasks > TASKS_MAX || !crowd)
		return 1;
	while (forked < tasks && (child = call(SYS_fork, 0, 0, 0, 0, 0, 0)) > 0)
		forked++;
	if (child == 0)
		return run_task(crowd, forked);
	while (__atomic_load_n(&crowd->came, __ATOMIC_ACQUIRE) < forked)
		call(SYS_sched_yield, 0, 0, 0, 0, 0, 0);
	began = now_ns();
	__atomic_store_n(&crowd->deadline, began + number_of(argv[2]) * 1000000, __ATOMIC_RELEASE);
	if (!all_succeed(forked) || forked < tasks)
		return 1;
	print_result(crowd, tasks, began);
	return 0;
}
