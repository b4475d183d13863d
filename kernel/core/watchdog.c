/* The watchdog: see watchdog.h. */
#include "kernel/core/watchdog.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/core/wait.h"

enum on_hang { HANG_CRASH, HANG_REBOOT, HANG_HALT, HANG_GO };
enum { BACKTRACES_MAX = 8 };

u64 hang_seconds = 600;

static int parse_hang(const struct option *opt, const char *value)
{
	if (strcmp(value, "off") != 0)
		return option_parse_u64(opt, value);
	hang_seconds = 0;
	return 0;
}

static void show_hang(const struct option *opt, char *buf, size_t size)
{
	if (hang_seconds == 0)
		format(buf, size, "off");
	else
		format(buf, size, "%llu", hang_seconds);
}

OPTION(end.hang, .values = "seconds or off", .parse = parse_hang, .show = show_hang,
       .target = &hang_seconds, .max = 1000000, .boot_only = true,
       .help = "seconds without a line or a request for input after which a run counts as hung; "
	       "off or 0: never, for programs that are quiet on purpose");

static unsigned on_hang;
OPTION_CHOICE(end.onhang, on_hang, "crash|reboot|halt|go", "what is done with a run that hangs");

static u64 touches;
bool watchdog_stopped;
static u64 seen, since; /* of the CPU that runs watchdog_tick() */

void watchdog_touch(void)
{
	atomic_store_relaxed(&touches, atomic_load_relaxed(&touches) + 1);
}

/* Print the positions of CPUs that are not idle, as many as fit a screen. */
static void print_busy(void)
{
	const cpu_t self = cpu_id();
	unsigned left = BACKTRACES_MAX;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (cpu == self || atomic_load_relaxed(&cpu_data(cpu)->idle))
			continue;
		if (left-- == 0) {
			print("more CPUs are busy; they are not shown\n");
			return;
		}
		wait_print_where(cpu);
	}
}

void watchdog_show(void)
{
	print_busy();
	wait_print_where(cpu_id());
}

static void report(u64 seconds)
{
	print("\nwatchdog: no progress for %llu s\n", seconds);
	print_busy();
	if (on_hang == HANG_CRASH)
		panic("the run hangs: no line, except about late waits, and no request for input "
		      "in %llu s",
		      seconds);
	wait_print_where(cpu_id());
	if (on_hang == HANG_REBOOT)
		machine_reset();
	if (on_hang == HANG_HALT)
		cpu_halt_forever();
}

void watchdog_tick(void)
{
	const u64 now = clock_ns(), progress = atomic_load_relaxed(&touches) + log_progress();

	if (progress != seen || since == 0) {
		seen = progress;
		since = now;
		return;
	}
	if (now - since < hang_seconds * NS_PER_S || atomic_load_relaxed(&watchdog_stopped) ||
	    atomic_load_relaxed(&panic_in_progress))
		return;
	report((now - since) / NS_PER_S);
	since = now;
}
