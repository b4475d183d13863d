/*
 * Time from the TSC, scaled (Intel SDM vol. 3B, 18.17 "Time-stamp counter") as clock_rate.h says.
 *
 * The TSC's first rate comes from CPUID (leaf 15h, hypervisor leaf 40000010h, leaf 16h). Without
 * these it is measured against the PIT for 1 ms. Once the firmware tables are known, the HPET and
 * the ACPI PM timer are read, and read again when the other CPUs are about to start. Start-up does
 * its work in between and waits only for the rest of 2 ms. clock_choice.h says which rate is then
 * believed. Every measurement is bounded in polls, so a dead device is detected instead of waited
 * for.
 *
 * Monotonic on one CPU. Two CPUs agree as well as their TSCs are synchronised; firmware
 * synchronises them at reset, and every CPU with an invariant TSC keeps them so.
 */
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/mmio.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/time/clock.h"
#include "arch/x86_64/time/clock_choice.h"
#include "arch/x86_64/time/clock_rate.h"
#include "arch/x86_64/time/hpet.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"

#define PIT_HZ      1193182ULL
#define PM_TIMER_HZ 3579545ULL
#define FS_PER_S    1000000000000000ULL
#define ASSUMED_HZ  1000000000ULL
#define PPM         1000000ULL
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
	SAMPLE_TRIES = 8
};

extern u64 boot_entry_tsc; /* boot/entry.S */

static struct clock_rates rates = {.now = &rates.slot[0]};
static bool rate_known;
static struct tsc_facts facts; /* from CPUID */

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
	const u64 hz = rate_known ? clock_tsc_hz() : FASTEST_HZ;
	const u64 start = rdtsc();
	const u64 ticks = ns / NS_PER_S * hz + ns % NS_PER_S * (hz / 1000) / (NS_PER_S / 1000) + 1;

	while (rdtsc() - start < ticks)
		cpu_relax();
}

static struct tsc_facts facts_from_cpuid(void)
{
	const struct cpuid ratio = cpuid(0x15, 0), base = cpuid(0x16, 0);

	return (struct tsc_facts){.numerator = ratio.ebx,
				  .denominator = ratio.eax,
				  .crystal_hz = ratio.ecx,
				  .base_mhz = base.eax & 0xffff,
				  .hypervisor_khz =
					  cpu_features.hypervisor ? cpuid(0x40000010, 0).eax : 0};
}

/* A free-running counter to measure against. */
struct counter {
	const char *name;
	u64 hz, mask;
	u64 (*read)(const struct counter *c);
	volatile void __iomem *hpet;
	u16 port;
	u64 start, start_tsc; /* where the measurement began */
	u64 start_window;     /* ticks of the TSC within which that was */
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

	outb(PIT_COMMAND, PIT_LATCH0);
	low = inb(PIT_CHANNEL0);
	return -(u64)(low | inb(PIT_CHANNEL0) << 8);
}

/*
 * Counter and TSC at the same moment, from the least disturbed of a few tries. It took *window
 * ticks of the TSC.
 */
static u64 counter_sample(const struct counter *c, u64 *tsc, u64 *window)
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
	*window = best;
	return value & c->mask;
}

static void counter_begin(struct counter *c)
{
	c->start = counter_sample(c, &c->start_tsc, &c->start_window);
}

/*
 * TSC rate measured since counter_begin(), and over `us` at least; its hz is 0 if the counter
 * stands still. A pause of the whole machine longer than the counter's range (55 ms for the PIT)
 * spoils the result, so two sources are compared. Uncertain are a tick of the counter and half the
 * time that each sample took.
 */
static struct tsc_measure measure(const struct counter *c, u64 us)
{
	const u64 want = c->hz * us / US_PER_S;
	u64 tsc = 0, window, polls = 0, ticks, elapsed;

	while (((c->read(c) - c->start) & c->mask) < want) {
		if (++polls == POLLS_MAX ||
		    (polls == POLLS_STILL && ((c->read(c) - c->start) & c->mask) == 0))
			return (struct tsc_measure){0};
	}
	ticks = (counter_sample(c, &tsc, &window) - c->start) & c->mask;
	elapsed = tsc - c->start_tsc;
	if (!ticks || !elapsed)
		return (struct tsc_measure){0};
	/* does not overflow within WATCHED_MS with 100 MHz and 10 GHz */
	return (struct tsc_measure){
		.hz = elapsed * c->hz / ticks,
		.ppm = (u32)MIN(PPM, PPM / ticks + (window + c->start_window) / 2 * PPM / elapsed)};
}

static u64 hz_from_pit(void)
{
	struct counter pit = {.name = "PIT", .hz = PIT_HZ, .mask = 0xffff, .read = pit_read};

	outb(PIT_COMMAND, PIT_FREE_RUNNING0);
	outb(PIT_CHANNEL0, 0);
	outb(PIT_CHANNEL0, 0);
	counter_begin(&pit);
	return measure(&pit, FIRST_US).hz;
}

void clock_init(void)
{
	struct tsc_claim claim;
	u64 hz;

	rates.slot[0].base_tsc = boot_entry_tsc;
	facts = facts_from_cpuid();
	claim = tsc_claim_of(&facts);
	if (!claim.hz)
		claim.source = "the PIT";
	hz = claim.hz ? claim.hz : hz_from_pit();
	rate_known = hz != 0;
	clock_rate_change(&rates, rdtsc(), rate_known ? hz : ASSUMED_HZ);
	if (rate_known)
		pr_info("clock: TSC at %llu kHz, by %s", hz / 1000, claim.source);
	else
		pr_warn("clock: CPUID does not tell the TSC's rate and no PIT answers: assuming 1 "
			"GHz, times may be wrong");
}

/*
 * The measurement begins anew if the counter may have come to its beginning again since
 * counter_begin(): start-up may have been stopped meanwhile, and the ACPI PM timer has 24 bits.
 */
static struct tsc_measure measure_again(struct counter *c)
{
	const u64 ms = (rdtsc() - c->start_tsc) / (clock_tsc_hz() / 1000);

	if (ms >= MIN(c->mask / 2 / (c->hz / 1000), WATCHED_MS))
		counter_begin(c);
	return measure(c, SETTLE_US);
}

static void report(const struct counter *c, const struct tsc_measure *m, u64 hz)
{
	if (!m->hz)
		pr_warn("clock: %s does not count", c->name);
	else if (tsc_agrees(hz, m))
		pr_info("clock: %s agrees: %llu kHz", c->name, m->hz / 1000);
	else
		pr_warn("clock: %s measures %llu kHz, and %llu kHz are used", c->name, m->hz / 1000,
			hz / 1000);
}

/* The counters that the firmware tables name, the better one first. */
static struct counter counters[CLOCK_MEASURES_MAX];
static size_t counter_count;

void clock_refine_begin(volatile void __iomem *hpet, u16 pm_timer_port, bool pm_timer_32bit)
{
	const u32 period = hpet ? hpet_start(hpet) : 0;

	if (period)
		counters[counter_count++] = (struct counter){.name = "HPET",
							     .hz = FS_PER_S / period,
							     .mask = 0xffffffff,
							     .read = hpet_read,
							     .hpet = hpet};
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
	const struct tsc_claim claim = tsc_claim_of(&facts);
	struct tsc_measure measures[CLOCK_MEASURES_MAX] = {0};
	u64 hz;

	for (size_t i = 0; i < counter_count; i++)
		measures[i] = measure_again(&counters[i]);
	hz = tsc_choose(&facts, measures, counter_count);
	if (claim.exact && hz != claim.hz)
		pr_warn("clock: two clocks agree against %s, which says %llu kHz", claim.source,
			claim.hz / 1000);
	if (hz && hz != clock_tsc_hz())
		clock_rate_change(&rates, rdtsc(), hz);
	rate_known |= hz != 0;
	for (size_t i = 0; i < counter_count; i++)
		report(&counters[i], &measures[i], clock_tsc_hz());
	if (!rate_known)
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

void clock_note_tsc(void)
{
	this_cpu()->arch.tsc_at_start = rdtsc();
	rdmsr_safe(MSR_TSC_ADJUST, &this_cpu()->arch.tsc_adjust);
}

void clock_report_tscs(void)
{
	const struct arch_percpu *boot = &cpu_data(0)->arch;
	cpu_t cpu, differ = 0, moved = 0, apart = 0, far = 0;
	const u64 now = rdtsc();
	s64 ahead = 0;

	cpumask_foreach(cpu, &cpus_online) {
		const struct arch_percpu *own = &cpu_data(cpu)->arch;
		const s64 ticks = tsc_ahead(boot->tsc_at_start, own->tsc_at_start, now);

		if (own->tsc_adjust != boot->tsc_adjust) {
			differ++;
			moved = cpu;
		}
		if (ticks != 0) {
			apart++;
			far = cpu;
			ahead = ticks;
		}
	}
	if (differ > 0)
		pr_warn("clock: firmware has moved the TSC (TSC_ADJUST) of %u CPUs, of CPU %u by "
			"%lld, of CPU 0 by %lld: times of two CPUs may disagree",
			differ, moved, cpu_data(moved)->arch.tsc_adjust, boot->tsc_adjust);
	if (apart > 0)
		pr_warn("clock: the TSCs of %u CPUs differ from CPU 0's, that of CPU %u by %lld or "
			"more: times of two CPUs disagree",
			apart, far, ahead);
}
