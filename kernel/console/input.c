/*
 * Keyboard input: see input.h. The ring is written and read by the boot CPU only, so it needs no
 * lock.
 */
#include "kernel/console/input.h"

#include <arch/atomic.h>
#include <arch/console.h>

#include "kernel/core/percpu.h"
#include "kernel/core/watchdog.h"

enum { QUEUE_SIZE = 64, CTRL_C = 3, LOOK_MAX = 256 };

static u8 queue[QUEUE_SIZE];
static unsigned queue_in, queue_out;
static bool stop;

bool input_enabled;

int input_key(void)
{
	watchdog_touch();
	if (queue_out != queue_in)
		return queue[queue_out++ % QUEUE_SIZE];
	return input_enabled ? console_read() : -1;
}

bool input_stop_typed(void)
{
	if (cpu_id() != 0 || !input_enabled)
		return atomic_load_relaxed(&stop);
	/* bounded, because a line that never falls silent must not hold up the caller */
	for (unsigned i = 0; i < LOOK_MAX; i++) {
		const int byte = console_read();

		if (byte < 0)
			break;
		if (byte == CTRL_C) {
			atomic_store_relaxed(&stop, true);
			/* Earlier keys were typed for the operation that stops now. Drop them. */
			queue_out = queue_in;
		} else if (queue_in - queue_out < QUEUE_SIZE) {
			queue[queue_in++ % QUEUE_SIZE] = (u8)byte;
		}
	}
	return atomic_load_relaxed(&stop);
}

bool input_stop_asked(void)
{
	if (cpu_id() == 0)
		watchdog_touch();
	return input_stop_typed();
}

void input_stop_ask(void)
{
	atomic_store_relaxed(&stop, true);
}

void input_stop_clear(void)
{
	atomic_store_relaxed(&stop, false);
}
