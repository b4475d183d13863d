/*
 * Besides memory, a program may rely on device registers, the CPU's timer, and vector registers
 * that survive interrupts on every CPU. This payload is an example of each, and it tests that each
 * works.
 *
 *	make run PAYLOAD=tests/payload/devices
 *
 * The device is the first I/O APIC of a PC (Intel, "82093AA I/O Advanced Programmable Interrupt
 * Controller", 1996).
 */
#include <ashlar.h>

#define IO_APIC 0xfec00000ULL
static void report(const char *what, bool ok)
{
	ashlar_print("  %-52s %s\n", what, ok ? "ok" : "FAILED");
	verdict_count(ok, !ok, 0);
}

/* ---- registers ---- */

static void registers(void)
{
	volatile void __iomem *regs = mmio_map(IO_APIC, 32);
	u32 pins;

	if (!regs) {
		report("device registers: no memory", false);
		return;
	}
	mmio_write32(regs, 0, 1); /* select the version register */
	pins = (mmio_read32(regs, 0x10) >> 16 & 0xff) + 1;
	ashlar_print("  the I/O APIC has %u lines\n", pins);
	report("device registers (mmio_map)", pins >= 16 && pins <= 240);
	mmio_unmap(regs, 32);
}

static IRQ_HANDLER void count_tick(void *arg)
{
	u32 *counter = arg;

	__atomic_store_n(counter, __atomic_load_n(counter, __ATOMIC_RELAXED) + 1, __ATOMIC_RELAXED);
}

/* ---- the CPU's own timer ---- */

static void timer(void)
{
	const u64 start = clock_ns();
	u32 came = 0;
	u64 ns;
	bool ok = timer_once(2 * NS_PER_MS, count_tick, &came) == 0;

	ok &= timer_once(NS_PER_MS, count_tick, &came) == -EBUSY;
	while (ok && !__atomic_load_n(&came, __ATOMIC_RELAXED) && clock_ns() - start < NS_PER_S)
		cpu_relax();
	ns = clock_ns() - start;
	ashlar_print("  asked for 2 ms, came after %llu us\n", ns / NS_PER_US);
	report("the CPU's timer (timer_once), not early",
	       ok && __atomic_load_n(&came, __ATOMIC_RELAXED) == 1 && ns >= 2 * NS_PER_MS);
}

/* ---- vector registers, under interrupts, on every CPU ---- */

enum { ROUNDS = 300000, LANES = 8 };

static u32 wrong, running;

/* Eight sums that the compiler keeps in vector registers; each has an exact result. */
static void sum_lanes(u64 start, u64 end, void *arg)
{
	(void)arg;
	for (u64 i = start; i < end; i++) {
		double lane[LANES];

		for (unsigned k = 0; k < LANES; k++)
			lane[k] = k;
		for (u32 round = 0; round < ROUNDS; round++)
			for (unsigned k = 0; k < LANES; k++)
				lane[k] += 0.5;
		for (unsigned k = 0; k < LANES; k++)
			if (lane[k] != k + ROUNDS * 0.5)
				__atomic_fetch_add(&wrong, 1, __ATOMIC_SEQ_CST);
	}
}

static IRQ_HANDLER void disturb(void *arg)
{
	count_tick(arg);
	if (__atomic_load_n(&running, __ATOMIC_RELAXED))
		timer_once(50 * NS_PER_US, disturb, arg);
}

static void vectors(void)
{
	static u32 interrupts;
	struct padata_mt_job job = {.thread_fn = sum_lanes,
				    .size = 8ULL * cpus_started(),
				    .min_chunk = 1,
				    .max_threads = cpus_started(),
				    .node = NODE_NONE};

	__atomic_store_n(&running, 1, __ATOMIC_RELAXED);
	timer_once(50 * NS_PER_US, disturb, &interrupts);
	padata_run(&job);
	__atomic_store_n(&running, 0, __ATOMIC_RELAXED);
	ashlar_print("  %u CPUs summed; the first was interrupted %u times meanwhile\n",
		     job.threads, interrupts);
	report("vector registers survive interrupts", wrong == 0 && interrupts > 0);
}

void payload_run(void)
{
	ashlar_print("\n");
	registers();
	timer();
	vectors();
}
