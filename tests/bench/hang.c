/*
 * Payloads that hang on purpose, so that it can be seen that somebody notices: payload=hang, payload=stuck.
 */
#include "tests/bench/hang.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/call.h"
#include "kernel/percpu.h"
#include "kernel/string.h"

static u32 hanging;

static __attribute__((noinline)) void hang_with_interrupts_off(void *unused)
{
	(void)unused;
	irq_disable();
	atomic_store_release(&hanging, 1);
	for (;;)
		cpu_relax();
}

static void answer(void *unused)
{
	(void)unused;
}

/* CPU 1 does not take the call. */
static void get_stuck(void)
{
	if (work_start(1, hang_with_interrupts_off, NULL) < 0)
		return;
	while (!atomic_load_acquire(&hanging))
		clock_delay_ns(NS_PER_MS);
	call_cpus(&cpus_online, answer, NULL);
}

void payload_hang(const char *name)
{
	if (strcmp(name, "hang") == 0)
		hang_with_interrupts_off(NULL);
	if (strcmp(name, "stuck") == 0)
		get_stuck();
}
