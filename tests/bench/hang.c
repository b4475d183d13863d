/*
 * Payloads that hang on purpose, to show that the kernel notices: payload=hang, payload=patient;
 * and one that panics while it is disturbed: payload=asked.
 */
#include "tests/bench/hang.h"

#include <arch/cpu.h>

#include "tests/bench/measure.h"

static __attribute__((noinline)) void hang_with_interrupts_off(void *unused)
{
	irq_disable();
	for (;;)
		cpu_relax();
}

/* CPU 1 never ends its work, and this CPU waits without a limit, logging that it does. */
static void wait_patiently(void)
{
	if (work_start(1, hang_with_interrupts_off, NULL) == 0)
		work_wait(1, WORK_ENDLESS); /* the watchdog ends it */
}

static __noreturn void ask_for_ever(void *unused)
{
	virt_t where[8];

	for (;;)
		cpu_where(0, where, ARRAY_LEN(where), NS_PER_S);
}

/* Panic while all other CPUs ask this one where it is, by NMI. */
static void panic_asked(void)
{
	for (cpu_t cpu = 1; cpu < cpu_count; cpu++)
		work_start(cpu, ask_for_ever, NULL);
	clock_delay_ns(20 * NS_PER_MS);
	panic("while others ask where it is");
}

void payload_hang(const char *name)
{
	if (strcmp(name, "hang") == 0)
		hang_with_interrupts_off(NULL);
	if (strcmp(name, "patient") == 0)
		wait_patiently();
	if (strcmp(name, "asked") == 0)
		panic_asked();
}
