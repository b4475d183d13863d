/*
 * One timer per CPU, the local APIC's, for the deadlines of its owners and for naps (cpu_nap()).
 *
 * The APIC is set to the earliest of these times, and the interrupt handler reads the clock to see
 * which of them have come. Only the CPU itself touches its deadlines, with interrupts off. The
 * length of the APIC's tick differs between machines and is measured once against the clock.
 *
 * Source: Intel SDM vol. 3A, 11.5.4 "APIC timer".
 */
#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/timer.h>

#include "arch/x86_64/time/timer.h"
#include "arch/x86_64/traps/apic.h"
#include "kernel/core/percpu.h"

enum { TICKS_MAX = 0xffffffff };
#define MEASURE_NS NS_PER_MS

static u64 ticks_per_ms; /* 0: not measured yet; CPUs that race measure the same */

/*
 * APIC ticks per millisecond, measured on the first call as the timer runs down from its largest
 * count; a tick is between 0.2 and 100 ns. Each caller sets the timer next.
 */
static u64 tick_rate(void)
{
	u64 rate = atomic_load_relaxed(&ticks_per_ms), start, ticks;
	irq_flags_t flags;

	if (rate)
		return rate;
	flags = irq_save();
	start = clock_ns(); /* a rate that is too low only makes an interrupt come early */
	apic_timer_once(TICKS_MAX);
	clock_delay_ns(MEASURE_NS);
	ticks = TICKS_MAX - apic_timer_left();
	rate = ticks * NS_PER_MS / MAX(clock_ns() - start, 1);
	irq_restore(flags);
	rate = MAX(rate, 1);
	atomic_store_relaxed(&ticks_per_ms, rate);
	return rate;
}

static u32 ticks_until(u64 at, u64 now)
{
	const u64 ns = saturating_sub(at, now);

	return (u32)MIN(MIN(ns, NS_PER_S) * tick_rate() / NS_PER_MS + 1, TICKS_MAX - 1ULL);
}

/* Set the APIC to `ticks`, or to the earliest deadline if that comes sooner. */
void timer_interrupt_within(u32 ticks)
{
	const struct timer *timer = this_cpu()->arch.timer;
	u64 first = 0;

	for (unsigned owner = 0; owner < TIMER_OWNERS; owner++)
		if (timer[owner].at && (!first || timer[owner].at < first))
			first = timer[owner].at;
	if (first)
		ticks = MIN(ticks, ticks_until(first, clock_ns()));
	if (ticks < TICKS_MAX)
		apic_timer_once(ticks);
}

/* The interrupt may also be for a nap, which it has ended. */
void timer_interrupt(void)
{
	struct timer *timer = this_cpu()->arch.timer;
	const u64 now = clock_ns();

	for (unsigned owner = 0; owner < TIMER_OWNERS; owner++) {
		if (timer[owner].at && timer[owner].at <= now) {
			timer[owner].at = 0; /* fn() may set it again */
			timer[owner].fn(timer[owner].arg);
		}
	}
	timer_interrupt_within(TICKS_MAX);
}

int timer_set(enum timer_owner owner, u64 at, irq_fn *fn, void *arg)
{
	struct timer *timer = &this_cpu()->arch.timer[owner];
	irq_flags_t flags;

	if (apic_mode() == APIC_NONE)
		return -ENODEV;
	tick_rate();
	flags = irq_save();
	*timer = (struct timer){.at = MAX(at, 1ULL), .fn = fn, .arg = arg};
	timer_interrupt_within(TICKS_MAX);
	irq_restore(flags);
	return 0;
}

/* The APIC's timer goes on; its interrupt finds nothing to call. */
void timer_clear(enum timer_owner owner)
{
	const irq_flags_t flags = irq_save();

	this_cpu()->arch.timer[owner].at = 0;
	irq_restore(flags);
}

void timer_ends_halt(void *nothing)
{
}

int timer_once(u64 ns, irq_fn *fn, void *arg)
{
	const irq_flags_t flags = irq_save();
	int err = -EBUSY;

	if (!this_cpu()->arch.timer[TIMER_ONCE].at)
		err = timer_set(TIMER_ONCE, clock_ns() + ns, fn, arg);
	irq_restore(flags);
	return err;
}

void timer_cancel(void)
{
	timer_clear(TIMER_ONCE);
}
