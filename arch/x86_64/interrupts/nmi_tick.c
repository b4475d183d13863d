/*
 * The watchdog's tick; see nmi_tick.h.
 *
 * The boot CPU sets a source up in this order: the source is silent and has nothing raised, `source`
 * names it, its pin is opened, and only then may it tick. From then on `ticks`, `last` and the RTC
 * belong to the handler on that CPU. A handler that interrupts an access of the RTC puts the index
 * back.
 */
#include "arch/x86_64/interrupts/nmi_tick.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/mmio.h>

#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/interrupts/irq.h"
#include "arch/x86_64/time/clock_sources.h"
#include "arch/x86_64/time/hpet.h"
#include "kernel/core/printk.h"
#include "kernel/core/watchdog.h"

enum { HPET_TIMER0 = 0x100, TIMER_SIZE = 0x20, TIMERS_SHIFT = 8, TIMERS_MASK = 0x1f };
enum { CONFIG_LEGACY = 2, TIMER_CONFIG = 0x00, TIMER_ROUTES = 0x04, TIMER_COMPARATOR = 0x08 };
enum {
	TIMER_LEVEL = 1 << 1,
	TIMER_ENABLE = 1 << 2,
	TIMER_PERIODIC = 1 << 3,
	TIMER_SET_VALUE = 1 << 6,
	TIMER_32BIT = 1 << 8,
	TIMER_ROUTE_SHIFT = 9,
	TIMER_ROUTE_MASK = 0x1f << 9,
	TIMER_MESSAGE = 1 << 14
};

enum { RTC_INDEX = 0x70, RTC_DATA = 0x71, RTC_PIN = 8 };
enum { RTC_A = 0x0a, RTC_B = 0x0b, RTC_C = 0x0c, RATE_MASK = 0x0f, RATE_8192_HZ = 3 };
enum {
	RTC_UPDATE = 1 << 4, /* in B: raise it once a second; in C: raised */
	RTC_ALARM = 1 << 5,
	RTC_PERIODIC = 1 << 6,
	RTC_ALL = RTC_UPDATE | RTC_ALARM | RTC_PERIODIC,
	RTC_RAISED = 1 << 7 /* in C: one that B allows was raised */
};

#define FS_PER_S   1000000000000000ULL
#define FIRST_PART 5000 /* the HPET's first tick comes after this part of a second: 0.2 ms */
#define CONFIRM_NS (20 * NS_PER_MS)
#define EARLY_NS   (NS_PER_S / 2) /* an NMI so soon after a tick is none */

static enum { TICK_NONE, TICK_HPET, TICK_RTC } source;
static u32 hpet_pin;
static unsigned hpet_timer; /* offset of its registers */
static volatile void __iomem *hpet_regs;
static u32 ticks;
static u64 last; /* when the last tick came */
static u8 rtc_index;   /* what the interrupted code has in RTC_INDEX, or is about to write there */
static bool rtc_taken; /* C was read, and the NMI for what it said may still come */

/* ---- HPET ---- */

static unsigned read_timers(const volatile void __iomem *hpet, struct hpet_timer *timers)
{
	const unsigned count = (mmio_read32(hpet, HPET_CAPS) >> TIMERS_SHIFT & TIMERS_MASK) + 1;

	for (unsigned n = 0; n < count; n++) {
		const unsigned timer = HPET_TIMER0 + n * TIMER_SIZE;

		timers[n] = (struct hpet_timer){mmio_read32(hpet, timer + TIMER_CONFIG),
						mmio_read32(hpet, timer + TIMER_ROUTES)};
	}
	return count;
}

/*
 * The first write after TIMER_SET_VALUE is the first event, which comes soon as a proof; the second
 * is the period. The counter stands still: a timer that is enabled beside a counter that runs may
 * tick for the comparator that it had before, and once more between the two writes.
 */
static void run_timer(volatile void __iomem *hpet, unsigned timer, u32 route, u32 second)
{
	const u32 kept = mmio_read32(hpet, timer + TIMER_CONFIG) &
			 ~(u32)(TIMER_ROUTE_MASK | TIMER_LEVEL | TIMER_MESSAGE);

	mmio_write32(hpet, timer + TIMER_CONFIG,
		     kept | route << TIMER_ROUTE_SHIFT | TIMER_ENABLE | TIMER_PERIODIC |
			     TIMER_SET_VALUE | TIMER_32BIT);
	mmio_write32(hpet, timer + TIMER_COMPARATOR,
		     mmio_read32(hpet, HPET_COUNTER) + second / FIRST_PART);
	mmio_write32(hpet, timer + TIMER_COMPARATOR, second);
}

static bool start_hpet(volatile void __iomem *hpet)
{
	const u32 fs = hpet ? mmio_read32(hpet, HPET_PERIOD) : 0;
	struct hpet_timer timers[HPET_TIMERS_MAX];
	u32 config;
	int n;

	if (!hpet || !hpet_is_there(mmio_read32(hpet, HPET_CAPS), fs) || FS_PER_S / fs > ~0U)
		return false;
	n = hpet_tick_choose(timers, read_timers(hpet, timers), io_apic_lines(), &hpet_pin);
	if (n < 0)
		return false;
	hpet_regs = hpet;
	hpet_timer = HPET_TIMER0 + (unsigned)n * TIMER_SIZE;
	config = mmio_read32(hpet, HPET_CONFIG) & ~(u32)(HPET_ENABLE | CONFIG_LEGACY);
	mmio_write32(hpet, HPET_CONFIG, config);
	source = TICK_HPET;
	if (io_apic_route_nmi(hpet_pin))
		run_timer(hpet, hpet_timer, hpet_pin, (u32)(FS_PER_S / fs));
	else
		source = TICK_NONE;
	mmio_write32(hpet, HPET_CONFIG, config | HPET_ENABLE);
	return source == TICK_HPET;
}

static void stop_hpet(void)
{
	mmio_write32(hpet_regs, hpet_timer + TIMER_CONFIG,
		     mmio_read32(hpet_regs, hpet_timer + TIMER_CONFIG) & ~(u32)TIMER_ENABLE);
	io_apic_mask(hpet_pin);
}

/* ---- RTC ---- */

/* Bit 7 of the index stays 0: it would switch the board's NMIs off. */
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

/* The first tick comes from the periodic interrupt, within 0.13 ms. */
static bool start_rtc(void)
{
	if (rtc_read(RTC_B) == 0xff)
		return false;
	rtc_interrupts(0);
	rtc_write(RTC_A, (u8)((rtc_read(RTC_A) & ~RATE_MASK) | RATE_8192_HZ));
	rtc_read(RTC_C); /* what was raised before keeps the line busy no longer */
	source = TICK_RTC;
	if (io_apic_route_nmi(RTC_PIN))
		rtc_interrupts(RTC_PERIODIC);
	else
		source = TICK_NONE;
	return source == TICK_RTC;
}

static void stop_rtc(void)
{
	io_apic_mask(RTC_PIN);
	rtc_interrupts(0);
	rtc_read(RTC_C);
}

/*
 * Reading C acknowledges. The proof has been given by the first tick: once a second from now on. The
 * periodic interrupt may have come again before that, and its NMI then finds nothing in C.
 */
static enum nmi_tick take_rtc(void)
{
	const u8 index = atomic_load_relaxed(&rtc_index);
	const bool raised = rtc_read(RTC_C) & RTC_RAISED, taken = rtc_taken;

	rtc_taken = false;
	if (raised && ticks == 0) {
		rtc_interrupts(RTC_UPDATE);
		rtc_read(RTC_C);
		rtc_taken = true;
	}
	rtc_select(index);
	if (raised)
		return NMI_TICK;
	return taken ? NMI_PERHAPS_TICK : NMI_NO_TICK;
}

/* ---- either ---- */

void nmi_tick_start(volatile void __iomem *hpet)
{
	ticks = 0;
	if (watchdog_wanted() && !start_hpet(hpet))
		start_rtc();
}

static bool has_ticked(void)
{
	const u64 start = clock_ns(), limit = CONFIRM_NS * cpu_deadline_scale();

	while (atomic_load_acquire(&ticks) == 0) {
		if (clock_ns() - start > limit)
			return false;
		cpu_relax();
	}
	return true;
}

void nmi_tick_stop(void)
{
	if (source == TICK_HPET)
		stop_hpet();
	else if (source == TICK_RTC)
		stop_rtc();
	source = TICK_NONE;
}

void nmi_tick_confirm(void)
{
	if (!watchdog_wanted())
		return;
	if (source == TICK_HPET && !has_ticked()) {
		pr_info("watchdog: the HPET does not tick at pin %u; the RTC is tried", hpet_pin);
		nmi_tick_stop();
		start_rtc();
	}
	if (source == TICK_RTC && !has_ticked())
		nmi_tick_stop();
	if (source == TICK_NONE)
		pr_info("watchdog: off, because neither an HPET nor an RTC sends NMIs through an "
			"I/O APIC");
	else if (source == TICK_RTC)
		pr_info("watchdog: ticks by the RTC");
}

/* Ticks come late and then early where a host does not let this CPU run. */
static enum nmi_tick take_hpet(u64 now)
{
	if (ticks == 0 || now - last >= EARLY_NS)
		return NMI_TICK;
	return cpu_deadline_scale() == 1 ? NMI_NO_TICK : NMI_PERHAPS_TICK;
}

enum nmi_tick nmi_tick_take(bool answered)
{
	const u64 now = clock_ns();
	enum nmi_tick tick;

	if (source == TICK_NONE || (source == TICK_HPET && answered))
		return NMI_NO_TICK;
	tick = source == TICK_RTC ? take_rtc() : take_hpet(now);
	if (tick != NMI_TICK)
		return tick;
	last = now;
	atomic_store_release(&ticks, ticks + 1);
	return NMI_TICK;
}

void nmi_tick_acknowledge(void)
{
	if (source == TICK_RTC && rtc_read(RTC_C) & RTC_RAISED)
		rtc_taken = true;
}

u32 nmi_ticks(void)
{
	return atomic_load_acquire(&ticks);
}

bool nmi_tick_is_on(void)
{
	return source != TICK_NONE;
}
