/*
 * The watchdog's tick; see nmi_tick.h.
 *
 * The boot CPU writes the state before the pin is opened; from then on `nmi_ticks` and `last`
 * belong to the handler on that CPU, and where the RTC does not tick, to the CPU that watches.
 */
#include "arch/x86_64/interrupts/nmi_tick.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/timer.h>

#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/interrupts/irq.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/mce.h"
#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/watchdog.h"

enum { RTC_INDEX = 0x70, RTC_DATA = 0x71, RTC_PIN = 8 };
enum { RTC_A = 0x0a, RTC_B = 0x0b, RTC_C = 0x0c, RATE_MASK = 0x0f, RATE_8192_HZ = 3 };
enum {
	RTC_UPDATE = 1 << 4, /* in B: raise it once a second; in C: raised */
	RTC_ALARM = 1 << 5,
	RTC_PERIODIC = 1 << 6,
	RTC_ALL = RTC_UPDATE | RTC_ALARM | RTC_PERIODIC
};

#define CONFIRM_NS (20 * NS_PER_MS)

bool nmi_tick_is_on;
u32 nmi_ticks;
static u64 last; /* when the last tick came */

/*
 * The boot CPU alone uses the RTC: start-up does, and the handler of NMIs between any two
 * instructions. The index cannot be read back, so start-up notes it first, and the handler selects
 * it again. Bit 7 of the index stays 0: it would switch the board's NMIs off.
 */
static u8 rtc_index;

static void rtc_select(u8 reg)
{
	atomic_store_relaxed(&rtc_index, reg);
	outb(RTC_INDEX, reg);
}

static u8 rtc_read(u8 reg)
{
	rtc_select(reg);
	return inb(RTC_DATA);
}

static void rtc_write(u8 reg, u8 value)
{
	rtc_select(reg);
	outb(RTC_DATA, value);
}

static void rtc_interrupts(u8 which)
{
	rtc_write(RTC_B, (u8)((rtc_read(RTC_B) & ~RTC_ALL) | which));
}

/*
 * The first tick comes from the periodic interrupt, within 0.13 ms. What was raised before is
 * cleared while nothing can be raised: reading C afterwards could take a tick's reason away.
 */
void nmi_tick_start(void)
{
	if (hang_seconds == 0 || rtc_read(RTC_B) == 0xff)
		return;
	rtc_interrupts(0);
	rtc_read(RTC_C);
	nmi_tick_is_on = io_apic_set(RTC_PIN, PIN_MODE_NMI);
	if (!nmi_tick_is_on)
		return;
	rtc_write(RTC_A, (u8)((rtc_read(RTC_A) & ~RATE_MASK) | RATE_8192_HZ));
	rtc_interrupts(RTC_PERIODIC);
}

static void stop(void)
{
	io_apic_set(RTC_PIN, PIN_MASKED);
	rtc_interrupts(0);
	rtc_read(RTC_C);
	nmi_tick_is_on = false;
}

/* Reading C acknowledges. The proof has been given by the first tick: once a second from now on. */
static bool take(void)
{
	const u8 index = atomic_load_relaxed(&rtc_index);
	const bool raised = rtc_read(RTC_C) & (RTC_UPDATE | RTC_PERIODIC);

	if (raised && nmi_ticks == 0) {
		rtc_interrupts(RTC_UPDATE);
		rtc_read(RTC_C);
	}
	rtc_select(index);
	return raised;
}

static bool has_ticked(void)
{
	const u64 begin = clock_ns(), limit = CONFIRM_NS * cpu_deadline_scale();

	while (atomic_load_acquire(&nmi_ticks) == 0) {
		if (clock_ns() - begin > limit)
			return false;
		cpu_relax();
	}
	return true;
}

void nmi_tick_confirm(void)
{
	if (nmi_tick_is_on && !has_ticked())
		stop();
}

void cpu_tick_seen(void)
{
	const u32 ticks = atomic_load_relaxed(&nmi_ticks);

	if (mce_poll())
		this_cpu()->arch.tick_seen = ticks;
}

static cpu_t watcher;

static void watch(void *nothing)
{
	if (cpu_id() != watcher)
		return;
	mce_poll();
	watchdog_tick();
	atomic_store_relaxed(&nmi_ticks, nmi_ticks + 1);
	timer_set(TIMER_WATCH, clock_ns() + NS_PER_S, watch, NULL);
}

void nmi_tick_replace(void)
{
	cpu_t cpu;

	if (nmi_tick_is_on || hang_seconds == 0)
		return;
	if (apic_mode() == APIC_NONE) {
		pr_warn("watchdog: off, because there is neither an RTC that sends NMIs nor an "
			"APIC: nobody watches");
		return;
	}
	cpumask_foreach(cpu, &cpus_online)
		watcher = cpu;
	pr_info("watchdog: CPU %u watches by its timer, because no RTC sends NMIs through an I/O "
		"APIC",
		watcher);
	watch(NULL);
	call_cpus(&cpus_online, watch, NULL);
}

enum nmi_tick nmi_tick_take(void)
{
	const u64 now = clock_ns();

	if (!nmi_tick_is_on)
		return NMI_NO_TICK;
	if (!take())
		/* the first tick may have an echo: a period that ended before its NMI came */
		return nmi_ticks == 1 && now - last < CONFIRM_NS ? NMI_PERHAPS_TICK : NMI_NO_TICK;
	last = now;
	atomic_store_release(&nmi_ticks, nmi_ticks + 1);
	return NMI_TICK;
}
