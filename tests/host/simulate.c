/*
 * Time that the hosted machine spends on simulating hardware and on watching it: page-table stores
 * made real (pages.c), flushes, and frames checked before they are reused (check.c). On hardware
 * these are single instructions or nothing. A benchmark subtracts this time, so that its figure is
 * the time of the kernel's own code.
 *
 * The CPU that simulates is the only writer of its counter, which has a cache line of its own. Work
 * inside other such work, for example in the handler of a signal, is counted once.
 */
#define _GNU_SOURCE
#include <arch/check.h>
#include <sys/resource.h>

#include "tests/host/host.h"

struct spent {
	u64 ticks; /* of the TSC */
	u64 faults;
	bool inside;
} __cacheline_aligned;

static struct spent spent[HOST_CPUS_MAX];
static u64 first_tick, first_ns;

void host_simulate_init(void)
{
	first_tick = __builtin_ia32_rdtsc();
	first_ns = clock_ns();
}

u64 host_simulate_begin(void)
{
	struct spent *mine;

	if (!host_me)
		return 0;
	mine = &spent[host_me->id];
	if (mine->inside)
		return 0;
	mine->inside = true;
	return __builtin_ia32_rdtsc();
}

bool host_simulates(void)
{
	return host_me && spent[host_me->id].inside;
}

void host_simulate_end(u64 began)
{
	struct spent *mine;

	if (!began)
		return;
	mine = &spent[host_me->id];
	atomic_store_relaxed(&mine->ticks, mine->ticks + __builtin_ia32_rdtsc() - began);
	mine->inside = false;
}

u64 host_faults(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return (u64)usage.ru_minflt;
}

void host_simulate_faulted(u64 faults)
{
	if (host_me)
		spent[host_me->id].faults += faults;
}

/*
 * The rate is measured once, over the time since the machine was started. With another rate at each
 * call, the difference of two totals would be wrong by more than what lies between them.
 */
static u64 ns_of_ticks(u64 ticks)
{
	static u64 all_ticks, all_ns; /* only one benchmark runs at a time */

	if (!all_ticks) {
		all_ns = clock_ns() - first_ns;
		all_ticks = MAX(__builtin_ia32_rdtsc() - first_tick, 1);
	}
	return (u64)((unsigned __int128)ticks * all_ns / all_ticks);
}

void check_spent(struct check_spent *out)
{
	u64 ticks = 0;

	for (cpu_t cpu = 0; cpu < HOST_CPUS_MAX; cpu++)
		ticks += atomic_load_relaxed(&spent[cpu].ticks);
	*out = (struct check_spent){.simulated = true,
				    .ns = ns_of_ticks(ticks),
				    .host_faults = host_faults() - spent[host_me->id].faults};
}
