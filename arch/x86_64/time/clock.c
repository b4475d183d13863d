/*
 * Time from the TSC, scaled (Intel SDM vol. 3B, 18.17 "Time-stamp counter") as clock_rate.h says.
 *
 * The TSC's rate comes from CPUID (leaf 15h, hypervisor leaf 40000010h, leaf 16h). Without these a
 * first rate is measured against the PIT for 1 ms. Once the firmware tables are known, the HPET and
 * the ACPI PM timer are read, and read again when the other CPUs are about to start. Start-up does
 * its work in between and waits only for the rest of 2 ms. The better counter replaces a first
 * rate. Any other rate is replaced where they disagree with it, unless CPUID gave it exactly. Every
 * measurement is bounded in polls, so a dead device is detected instead of waited for.
 *
 * Monotonic on one CPU. Two CPUs agree as well as their TSCs are synchronised; firmware
 * synchronises them at reset, and every CPU with an invariant TSC keeps them so.
 */
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/mmio.h>

#include "arch/x86_64/cpu/cpuid.h"
#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/time/clock.h"
#include "arch/x86_64/time/clock_rate.h"
#include "arch/x86_64/time/hpet.h"
#include "kernel/core/printk.h"

#define PIT_HZ      1193182ULL
#define PM_TIMER_HZ 3579545ULL
#define FS_PER_S    1000000000000000ULL
#define ASSUMED_HZ  1000000000ULL
#define FASTEST_HZ  8000000000ULL /* upper bound: early delays are too long, not too short */

enum {
	PIT_CHANNEL0 = 0x40,
	PIT_COMMAND = 0x43,
	PIT_LATCH0 = 0x00,
	PIT_FREE_RUNNING0 = 0x34,
	PIT_ONE_SHOT0 = 0x30
};
enum {
	FIRST_US = 1000,    /* the PIT ticks every 0.84 us, so the rate is right to about 0.3% */
	SETTLE_US = 2000,   /* the PM timer ticks every 0.28 us */
	WATCHED_MS = 10000, /* from counter_begin() on; longer than any start-up without a pause */
	US_PER_S = 1000000,
	POLLS_MAX = 5000000,
	POLLS_STILL = 20000,
	DISAGREE_PERCENT = 2,
	SAMPLE_TRIES = 8
};

enum trust { TRUST_NONE, TRUST_ASSUMED, TRUST_FIRST, TRUST_MEASURED, TRUST_CPUID };

extern u64 boot_entry_tsc; /* boot/entry.S */

static struct clock_rates rates = {.now = &rates.slot[0]};
static enum trust trust;

u64 clock_tsc_hz(void)
{
	return clock_rate_now(&rates)->hz;
}

u64 clock_ns(void)
{
	return clock_rate_ns(clock_rate_now(&rates), rdtsc());
}

bool clock_tsc(struct clock_tsc *out)
{
	const struct clock_rate *rate = clock_rate_now(&rates);

	*out = (struct clock_tsc){
		.base_tsc = rate->base_tsc, .base_ns = rate->base_ns, .mult = rate->mult};
	return rate->mult != 0;
}

u64 clock_cpu_ns(void)
{
	return clock_ns();
}

void clock_delay_ns(u64 ns)
{
	const u64 hz = trust > TRUST_ASSUMED ? clock_tsc_hz() : FASTEST_HZ;
	const u64 start = rdtsc();
	const u64 ticks = ns / NS_PER_S * hz + ns % NS_PER_S * (hz / 1000) / (NS_PER_S / 1000) + 1;

	while (rdtsc() - start < ticks)
		cpu_relax();
}

static void set_rate(u64 hz, enum trust how)
{
	clock_rate_change(&rates, rdtsc(), hz);
	trust = how;
}

/*
 * The TSC's rate from CPUID, 0 if CPUID does not state it. Leaf 16h is the nominal rate, a whole
 * number of MHz, and serves until a measurement is better.
 */
static u64 hz_from_cpuid(const char **source, enum trust *how)
{
	const struct cpuid ratio = cpuid(0x15, 0), base = cpuid(0x16, 0);

	*how = TRUST_CPUID;
	if (ratio.eax && ratio.ebx && ratio.ecx) {
		*source = "CPUID 15h";
		return (u64)ratio.ecx * ratio.ebx / ratio.eax;
	}
	if (cpuid_hypervisor()) {
		const u32 khz = cpuid(0x40000010, 0).eax;

		*source = "hypervisor CPUID";
		if (khz)
			return khz * 1000ULL;
	}
	*source = "CPUID 16h";
	*how = TRUST_MEASURED;
	return (base.eax & 0xffff) * 1000000ULL; /* base frequency, MHz */
}

/* A free-running counter to measure against. */
struct counter {
	const char *name;
	u64 hz, mask;
	u64 (*read)(const struct counter *c);
	volatile void __iomem *hpet;
	u16 port;
	u64 start, start_tsc; /* where the measurement began */
};

static u64 hpet_read(const struct counter *c)
{
	return mmio_read32(c->hpet, HPET_COUNTER);
}

static u64 pm_timer_read(const struct counter *c)
{
	return inl(c->port);
}

/*
 * Channel 0 counts down from 65536 and starts again (Intel 8254 data sheet, mode 2). Its interrupt
 * is not used.
 */
static u64 pit_read(const struct counter *c)
{
	u8 low;

	(void)c;
	outb(PIT_COMMAND, PIT_LATCH0);
	low = inb(PIT_CHANNEL0);
	return -(u64)(low | inb(PIT_CHANNEL0) << 8);
}

static void pit_start(void)
{
	outb(PIT_COMMAND, PIT_FREE_RUNNING0);
	outb(PIT_CHANNEL0, 0);
	outb(PIT_CHANNEL0, 0);
}

/* Counter and TSC at the same moment, from the least disturbed of a few tries. */
static u64 counter_sample(const struct counter *c, u64 *tsc)
{
	u64 value = 0, best = ~0ULL;

	for (int i = 0; i < SAMPLE_TRIES; i++) {
		const u64 before = rdtsc(), now = c->read(c), after = rdtsc();

		if (after - before < best) {
			best = after - before;
			value = now;
			*tsc = before + (after - before) / 2;
		}
	}
	return value & c->mask;
}

static void counter_begin(struct counter *c)
{
	c->start = counter_sample(c, &c->start_tsc);
}

/*
 * TSC rate measured since counter_begin(), and over `us` at least, or 0 if the counter stands
 * still. A pause of the whole machine longer than the counter's range (55 ms for the PIT) spoils
 * the result, so two sources are compared.
 */
static u64 hz_from_counter(const struct counter *c, u64 us)
{
	const u64 want = c->hz * us / US_PER_S;
	u64 tsc = 0, polls = 0, ticks;

	while (((c->read(c) - c->start) & c->mask) < want) {
		if (++polls == POLLS_MAX ||
		    (polls == POLLS_STILL && ((c->read(c) - c->start) & c->mask) == 0))
			return 0;
	}
	ticks = (counter_sample(c, &tsc) - c->start) & c->mask;
	/* does not overflow within WATCHED_MS with 100 MHz and 10 GHz */
	return ticks ? (tsc - c->start_tsc) * c->hz / ticks : 0;
}

static u64 hz_from_pit(void)
{
	struct counter pit = {.name = "PIT", .hz = PIT_HZ, .mask = 0xffff, .read = pit_read};

	pit_start();
	counter_begin(&pit);
	return hz_from_counter(&pit, FIRST_US);
}

void clock_init(void)
{
	const char *source;
	enum trust how;
	u64 hz = hz_from_cpuid(&source, &how);

	rates.slot[0].base_tsc = boot_entry_tsc;
	if (hz) {
		set_rate(hz, how);
		pr_info("clock: TSC at %llu kHz, by %s", hz / 1000, source);
		return;
	}
	hz = hz_from_pit();
	if (hz) {
		set_rate(hz, TRUST_FIRST);
		pr_info("clock: TSC at %llu kHz, measured with the PIT", hz / 1000);
		return;
	}
	set_rate(ASSUMED_HZ, TRUST_ASSUMED);
	pr_warn("clock: CPUID does not tell the TSC's rate and no PIT answers: assuming 1 GHz, "
		"times may be wrong");
}

/*
 * Could the counter have come to its beginning again since counter_begin()? Start-up may have been
 * stopped meanwhile, and the ACPI PM timer has 24 bits.
 */
static bool may_have_wrapped(const struct counter *c)
{
	const u64 ms = (rdtsc() - c->start_tsc) / (clock_tsc_hz() / 1000);

	return ms >= MIN(c->mask / 2 / (c->hz / 1000), WATCHED_MS);
}

static void check_against(struct counter *c)
{
	const u64 tsc_hz = clock_tsc_hz();
	u64 hz, difference;

	if (may_have_wrapped(c))
		counter_begin(c);
	hz = hz_from_counter(c, SETTLE_US);

	if (!hz) {
		pr_warn("clock: %s does not count", c->name);
		return;
	}
	difference = hz > tsc_hz ? hz - tsc_hz : tsc_hz - hz;
	if (difference <= tsc_hz * DISAGREE_PERCENT / 100) {
		pr_info("clock: %s agrees: %llu kHz", c->name, hz / 1000);
		if (trust == TRUST_FIRST)
			set_rate(hz, TRUST_MEASURED);
		return;
	}
	if (trust == TRUST_CPUID || trust == TRUST_MEASURED) {
		pr_warn("clock: %s measures %llu kHz, %s says %llu kHz, which is kept", c->name,
			hz / 1000, trust == TRUST_CPUID ? "CPUID" : "the HPET", tsc_hz / 1000);
		return;
	}
	pr_warn("clock: %s measures %llu kHz instead of %llu kHz; the measured rate is used",
		c->name, hz / 1000, tsc_hz / 1000);
	set_rate(hz, TRUST_MEASURED);
}

static bool hpet_start(volatile void __iomem *hpet, struct counter *c)
{
	const u32 period = mmio_read32(hpet, HPET_PERIOD);

	if (!hpet_is_there(mmio_read32(hpet, HPET_CAPS), period))
		return false;
	mmio_write32(hpet, HPET_CONFIG, mmio_read32(hpet, HPET_CONFIG) | HPET_ENABLE);
	*c = (struct counter){.name = "HPET",
			      .hz = FS_PER_S / period,
			      .mask = 0xffffffff,
			      .read = hpet_read,
			      .hpet = hpet};
	return true;
}

/* The counters that the firmware tables name, the better one first. */
static struct counter counters[2];
static size_t counter_count;

void clock_refine_begin(volatile void __iomem *hpet, u16 pm_timer_port, bool pm_timer_32bit)
{
	if (hpet && hpet_start(hpet, &counters[counter_count]))
		counter_count++;
	if (pm_timer_port)
		counters[counter_count++] =
			(struct counter){.name = "ACPI PM timer",
					 .hz = PM_TIMER_HZ,
					 .mask = pm_timer_32bit ? 0xffffffff : 0xffffff,
					 .read = pm_timer_read,
					 .port = pm_timer_port};
	for (size_t i = 0; i < counter_count; i++)
		counter_begin(&counters[i]);
}

void clock_refine_end(void)
{
	for (size_t i = 0; i < counter_count; i++)
		check_against(&counters[i]);
	if (counter_count == 0 && trust == TRUST_ASSUMED)
		pr_warn("clock: no HPET or PM timer either; 1 GHz stays assumed");
}

/*
 * A new mode without a count: the chip does not count until one is written, and raises no
 * interrupts.
 */
void clock_stop_pit(void)
{
	outb(PIT_COMMAND, PIT_ONE_SHOT0);
}
