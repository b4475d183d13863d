/*
 * The difference between the CPUs' clocks. One CPU after the other answers the boot CPU's requests
 * with its own time:
 *
 *   boot CPU   t0 ----request---->           t1 = its answer was seen
 *   other               time = clock_ns()
 *
 *   offset = time - (t0 + t1) / 2, known to within (t1 - t0) / 2
 *
 * The exchange with the shortest round trip counts. An offset within half its round trip cannot be
 * distinguished from zero.
 *
 * Source: Mills, "Internet Time Synchronization: the Network Time Protocol", 1991-10, for the
 * estimate.
 */
#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "arch/x86_64/time/clock_skew.h"
#include "kernel/core/call.h"
#include "kernel/core/percpu.h"

enum { ROUNDS = 16, SAMPLED_CPUS = 8 };

#define LIMIT_NS (20 * NS_PER_MS)

static struct {
	__cacheline_aligned u32 request;
	__cacheline_aligned u32 reply;
	u64 time;
} exchange;

static bool await(const u32 *word, u32 value)
{
	const u64 start = clock_ns(), limit = LIMIT_NS * cpu_deadline_scale();

	while (atomic_load_acquire(word) != value) {
		if (clock_ns() - start > limit)
			return false;
		cpu_relax();
	}
	return true;
}

static void answer(void *unused)
{
	(void)unused;
	for (u32 round = 1; round <= ROUNDS && await(&exchange.request, round); round++) {
		exchange.time = clock_ns();
		atomic_store_release(&exchange.reply, round);
	}
}

static bool measure(cpu_t cpu, struct clock_skew *best)
{
	exchange.request = exchange.reply = 0;
	*best = (struct clock_skew){.cpu = cpu, .within_ns = ~0ULL};
	if (work_start(cpu, answer, NULL) < 0)
		return false;
	for (u32 round = 1; round <= ROUNDS; round++) {
		const u64 t0 = clock_ns();
		u64 half;

		atomic_store_release(&exchange.request, round);
		if (!await(&exchange.reply, round))
			break;
		half = (clock_ns() - t0) / 2;
		if (half < best->within_ns) {
			best->within_ns = half;
			best->offset_ns = (s64)(exchange.time - (t0 + half));
		}
	}
	work_wait(cpu, 0);
	return best->within_ns != ~0ULL;
}

/*
 * The part of the offset that is proven, that is beyond the uncertainty of the exchange. Negative:
 * none.
 */
static s64 proven(const struct clock_skew *skew)
{
	return (skew->offset_ns < 0 ? -skew->offset_ns : skew->offset_ns) - (s64)skew->within_ns;
}

/*
 * Many virtual CPUs on few real ones take long to measure and share a clock anyway, so only a few
 * of them are measured.
 */
cpu_t clock_skew_measure(struct clock_skew *worst)
{
	const cpu_t step = cpu_deadline_scale() == 1 ? 1 : MAX(cpu_count / SAMPLED_CPUS, 1u);
	cpu_t measured = 0;

	*worst = (struct clock_skew){0};
	for (cpu_t cpu = 1; cpu < cpu_count; cpu += step) {
		struct clock_skew skew;

		if (!cpu_online(cpu) || !measure(cpu, &skew))
			continue;
		if (measured++ == 0 || proven(&skew) > proven(worst))
			*worst = skew;
	}
	return measured;
}
