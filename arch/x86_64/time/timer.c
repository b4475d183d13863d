/*
 * One timer per CPU, the local APIC's, for timer_once() and for naps (cpu_nap()).
 *
 * Both share the APIC's timer. A nap sets it to the earlier of the two times, and the interrupt
 * handler reads the clock to see which of them it was. The length of the APIC's tick differs
 * between machines and is measured once against the clock.
 *
 * Source: Intel SDM vol. 3A, 11.5.4 "APIC timer".
 */
#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/irq.h>

#include "arch/x86_64/time/timer.h"
#include "arch/x86_64/traps/apic.h"
#include "kernel/core/percpu.h"

enum { TICKS_MAX = 0xffffffff };
#define MEASURE_NS NS_PER_MS

static u64 ticks_per_ms; /* 0: not measured yet; CPUs that race measure the same */

/*
 * APIC ticks per millisecond, measured on the first call as the timer runs down from its largest
 * count; a tick is between 0.2 and 100 ns.
 */
static u64 tick_rate(void)
{
	u64 rate = atomic_load_relaxed(&ticks_per_ms), start;
	irq_flags_t flags;

	if (rate)
		return rate;
	flags = irq_save();
	apic_timer_once(TICKS_MAX);
	start = clock_ns();
	clock_delay_ns(MEASURE_NS);
	rate = (u64)(TICKS_MAX - apic_timer_left()) * NS_PER_MS / MAX(clock_ns() - start, 1);
	apic_timer_once(0); /* stops it */
	irq_restore(flags);
	rate = MAX(rate, 1);
	atomic_store_relaxed(&ticks_per_ms, rate);
	return rate;
}

static u32 ticks_until(u64 at, u64 now)
{
	const u64 ns = at > now ? at - now : 0;

	return (u32)MIN(MIN(ns, NS_PER_S) * tick_rate() / NS_PER_MS + 1, (u64)TICKS_MAX);
}

void timer_interrupt(void)
{
	struct timer *timer = &this_cpu()->arch.timer;
	const u64 now = clock_ns();
	irq_fn *fn = timer->fn;

	if (!fn)
		return; /* the interrupt was for a nap, which it has ended */
	if (now < timer->at) {
		apic_timer_once(ticks_until(timer->at, now));
		return;
	}
	timer->fn = NULL;
	fn(timer->arg);
}

void timer_nap(u32 ticks)
{
	const struct timer *timer = &this_cpu()->arch.timer;

	apic_timer_once(timer->fn ? MIN(ticks, ticks_until(timer->at, clock_ns())) : ticks);
}

int timer_once(u64 ns, irq_fn *fn, void *arg)
{
	struct timer *timer = &this_cpu()->arch.timer;
	irq_flags_t flags;
	int err = 0;

	if (apic_mode() == APIC_NONE)
		return -ENODEV;
	tick_rate();
	flags = irq_save();
	if (timer->fn) {
		err = -EBUSY;
	} else {
		const u64 now = clock_ns();

		timer->at = now + ns;
		timer->arg = arg;
		timer->fn = fn;
		apic_timer_once(ticks_until(timer->at, now));
	}
	irq_restore(flags);
	return err;
}

/* The APIC's timer goes on; its interrupt finds nothing to call. */
void timer_cancel(void)
{
	const irq_flags_t flags = irq_save();

	this_cpu()->arch.timer.fn = NULL;
	irq_restore(flags);
}
