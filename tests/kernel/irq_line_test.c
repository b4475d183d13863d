/*
 * Lines of devices. A handler is never called after its line was given back, on any CPU or at any
 * moment. Lines come and go on several CPUs at once. An unexpected interrupt holds no other one
 * back.
 *
 * The device is the PC's timer chip on line 2 (Intel, "8254 Programmable Interval Timer", 1993).
 * Where no such chip answers, its cases are skipped. The hosted machine has neither lines nor an
 * APIC.
 */
#ifndef ASHLAR_HOSTED

#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/interrupts/irq.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/traps.h"
#include "tests/kernel/provoke.h"
#include "tests/kernel/test.h"

enum {
	PIT_LINE = 2,
	PIT_DATA = 0x40,
	PIT_COMMAND = 0x43,
	PIT_CHANNEL0_MODE2 = 0x34,
	PIT_CHANNEL0_STOPPED = 0x30,
	PIT_1KHZ = 1193,
};
enum { VECTOR_LOW = 0x30, VECTOR_HIGH = 0xaf, VECTOR_NONE = 0 }; /* the vectors of lines */
#define LIMIT (2 * NS_PER_S)

static void pit_set(u32 count)
{
	outb(PIT_COMMAND, PIT_CHANNEL0_MODE2);
	outb(PIT_DATA, count & 0xff);
	outb(PIT_DATA, count >> 8);
}

static void pit_stop(void)
{
	outb(PIT_COMMAND, PIT_CHANNEL0_STOPPED); /* as the clock leaves it */
}

/* The vector of a line that is in this state on this CPU. */
static unsigned vector_that_is(bool (*state)(unsigned vector))
{
	for (unsigned vector = VECTOR_LOW; vector <= VECTOR_HIGH; vector++)
		if (state(vector))
			return vector;
	return VECTOR_NONE;
}

static bool wait_until(const u32 *flag, u64 limit)
{
	const u64 start = clock_ns();

	while (!atomic_load_acquire(flag) && clock_ns() - start < limit)
		cpu_relax();
	return atomic_load_acquire(flag);
}

/* ---- an interrupt is pending while its line is given back ---- */

static struct {
	int err;
	/* the steps of the destination CPU, and `answering` of the other CPU */
	u32 waits, asked, answering, over;
	u32 inside, gone, late;
} end;

/* A slow handler that checks whether its line disappears while it runs. */
static void stay_inside(void *arg)
{
	atomic_store_release(&end.inside, 1);
	if (wait_until(&end.gone, 20 * NS_PER_MS))
		atomic_store_release(&end.late, 1);
	atomic_store_release(&end.inside, 0);
}

/* Keep interrupts off until both the line's interrupt and the other CPU's question are pending. */
static void hold_back(void *arg)
{
	const irq_flags_t flags = irq_save();
	const u64 start = clock_ns();

	end.err = irq_register(PIT_LINE, IRQ_EDGE, stay_inside, NULL);
	if (!end.err) {
		pit_set(PIT_1KHZ);
		while (vector_that_is(apic_requested) == VECTOR_NONE && clock_ns() - start < LIMIT)
			cpu_relax();
		if (vector_that_is(apic_requested) == VECTOR_NONE)
			end.err = -ENODEV;
	}
	atomic_store_release(&end.waits, 1);
	for (const u64 since = clock_ns();
	     !end.err && !apic_requested(VECTOR_IPI) && clock_ns() - since < LIMIT;)
		cpu_relax();
	atomic_store_release(&end.asked, 1);
	if (!end.err)
		wait_until(&end.answering, LIMIT);
	irq_restore(flags);
	atomic_store_release(&end.over, 1);
}

/* Stop the CPU that gives the line back from going on after its question was answered. */
static void hold_asker(void *arg)
{
	const u64 start = clock_ns();

	if (!atomic_load_acquire(&end.asked) && timer_once(50 * NS_PER_US, hold_asker, arg) == 0)
		return;
	atomic_store_release(&end.answering, 1);
	while (!atomic_load_acquire(&end.inside) && !atomic_load_acquire(&end.over) &&
	       clock_ns() - start < LIMIT)
		cpu_relax();
}

TEST(kernel_irq, an_interrupt_that_waits_calls_nobody_once_its_line_is_gone)
{
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	end = (__typeof__(end)){0};
	REQUIRE(work_start(other, hold_back, NULL) == 0);
	if (!wait_until(&end.waits, 2 * LIMIT) || end.err ||
	    timer_once(50 * NS_PER_US, hold_asker, NULL)) {
		irq_unregister(PIT_LINE);
		work_wait(other, 0);
		SKIP("needs a timer chip on line 2");
	}
	irq_unregister(PIT_LINE);
	EXPECT_EQ(atomic_load_acquire(&end.inside), 0);
	atomic_store_release(&end.gone, 1);
	work_wait(other, 0);
	pit_stop();
	EXPECT_EQ(end.late, 0);
}

/* ---- several CPUs at once ---- */

enum { LINES = 2, GSI_END = 24, ENTRY_MASKED = 1 << 16 };

static struct {
	struct provoke p;
	u32 gsi[LINES], claimed, broken;
} both;

static void nothing(void *arg)
{
}

/*
 * A line's entry must be as its owner wrote it last, whatever other CPUs write into their entries.
 */
static void take_and_give(void *arg)
{
	const u32 n = atomic_fetch_add(&both.claimed, 1);

	while (n < LINES && provoke_goes_on(&both.p) && !atomic_load_relaxed(&both.broken)) {
		if (irq_register(both.gsi[n], IRQ_EDGE, nothing, NULL) != 0 ||
		    io_apic_entry(both.gsi[n]) & ENTRY_MASKED)
			atomic_fetch_add(&both.broken, 1);
		irq_unregister(both.gsi[n]);
		if (!(io_apic_entry(both.gsi[n]) & ENTRY_MASKED))
			atomic_fetch_add(&both.broken, 1);
	}
}

/* Find the highest lines that are not in use. */
static unsigned find_lines(void)
{
	unsigned n = 0;

	for (u32 gsi = GSI_END; gsi-- > 0 && n < LINES;) {
		if (irq_register(gsi, IRQ_EDGE, nothing, NULL) != 0)
			continue;
		irq_unregister(gsi);
		both.gsi[n++] = gsi;
	}
	return n;
}

TEST(kernel_irq, lines_of_several_cpus_come_and_go_at_once)
{
	SKIP_ON_ONE_CPU();
	if (find_lines() < LINES)
		SKIP("needs an I/O APIC");
	both.claimed = both.broken = 0;
	both.p = provoke_begin();
	cpus_run_together(take_and_give, NULL);
	EXPECT_EQ(both.broken, 0);
	EXPECT_EQ(find_lines(), LINES);
}

TEST(kernel_irq, a_line_has_one_handler)
{
	int err;

	if (find_lines() < 1)
		SKIP("needs an I/O APIC");
	err = irq_register(both.gsi[0], IRQ_EDGE, nothing, NULL);
	EXPECT_EQ(err, 0);
	EXPECT_EQ(irq_register(both.gsi[0], IRQ_EDGE, nothing, NULL), -EBUSY);
	irq_unregister(both.gsi[0]);
	irq_unregister(both.gsi[0]);
	EXPECT_EQ(irq_register(both.gsi[0], IRQ_EDGE, nothing, NULL), 0);
	irq_unregister(both.gsi[0]);
}

/* ---- unexpected interrupts ---- */

/* Both have a higher priority than the timer's vector, 0xe0. */
enum { VECTOR_UNKNOWN = 0xe5, VECTOR_BY_INSTRUCTION = 0xe6 };

static u32 came;

static void note(void *arg)
{
	atomic_store_release(&came, 1);
}

TEST(kernel_irq, one_that_nobody_expects_holds_no_other_back)
{
	if (apic_mode() == APIC_NONE)
		SKIP("needs a local APIC");
	came = 0;
	EXPECT(apic_send(this_cpu()->arch.apic_id, ICR_FIXED | ICR_ASSERT | VECTOR_UNKNOWN));
	clock_delay_ns(NS_PER_MS);
	EXPECT(!apic_requested(VECTOR_UNKNOWN));
	EXPECT(!apic_in_service(VECTOR_UNKNOWN));
	REQUIRE(timer_once(NS_PER_MS, note, NULL) == 0);
	EXPECT(wait_until(&came, LIMIT));
	while (apic_in_service(VECTOR_UNKNOWN))
		apic_eoi(); /* later cases need their timer */
}

/*
 * An INT instruction is no interrupt of the APIC. Acknowledging it would end the interrupt that is
 * in service.
 */
static unsigned served[2];

static void interrupt_by_instruction(void *arg)
{
	served[0] = vector_that_is(apic_in_service);
	__asm__ volatile("int %0" ::"i"(VECTOR_BY_INSTRUCTION) : "memory");
	served[1] = vector_that_is(apic_in_service);
	note(arg);
}

TEST(kernel_irq, only_what_the_apic_delivered_is_acknowledged)
{
	came = 0;
	if (irq_register(PIT_LINE, IRQ_EDGE, interrupt_by_instruction, NULL) != 0)
		SKIP("needs a timer chip on line 2");
	pit_set(PIT_1KHZ);
	wait_until(&came, LIMIT);
	pit_stop();
	irq_unregister(PIT_LINE);
	if (!came)
		SKIP("needs a timer chip on line 2");
	EXPECT(served[0] != VECTOR_NONE);
	EXPECT_EQ(served[1], served[0]);
}

#endif
