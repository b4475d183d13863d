/*
 * Performance counters of the host, for the calling thread, by perf_event_open(2). Many hosts have
 * none for a guest or a container, or forbid them (perf_event_paranoid); pmu_missing() then returns
 * the host's answer.
 *
 * The host counts all events at once. If its CPU has fewer counters, the host takes turns itself,
 * and values are scaled by the share of the time, as perf does in the tables of the multi-page
 * clearing series (Arora 2023).
 */
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/bench/pmu.h"

#include "kernel/core/printk.h"

/* <errno.h> names its numbers as kernel/lib/types.h does. */
extern int *__errno_location(void);

#define CACHE(cache, result)                                                                       \
	(PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_READ << 8 |                          \
	 PERF_COUNT_HW_CACHE_RESULT_##result << 16)

static const struct {
	const char *name;
	u32 type;
	u64 config;
} known[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"branches", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS},
	{"branch_misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
	{"l1d_loads", PERF_TYPE_HW_CACHE, CACHE(L1D, ACCESS)},
	{"l1d_misses", PERF_TYPE_HW_CACHE, CACHE(L1D, MISS)},
	{"llc_loads", PERF_TYPE_HW_CACHE, CACHE(LL, ACCESS)},
	{"llc_misses", PERF_TYPE_HW_CACHE, CACHE(LL, MISS)},
	{"dtlb_loads", PERF_TYPE_HW_CACHE, CACHE(DTLB, ACCESS)},
	{"dtlb_misses", PERF_TYPE_HW_CACHE, CACHE(DTLB, MISS)},
};

static struct {
	const char *name;
	int fd;
} event[PMU_EVENTS_MAX];
static unsigned events;
static const char *missing;

static int open_event(u32 type, u64 config, bool kernel)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr), .type = type, .config = config, .disabled = 1};

	attr.exclude_hv = 1;
	attr.exclude_kernel = !kernel;
	attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}

/*
 * Done once, by the thread that will be counted. An event that this host's CPU lacks is left out.
 */
static void find_events(void)
{
	if (missing)
		return;
	missing = "there";
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		int fd = open_event(known[i].type, known[i].config, true);

		if (fd < 0)
			fd = open_event(known[i].type, known[i].config, false);
		if (fd < 0 && i == 0) {
			missing = strerror(*__errno_location());
			return;
		}
		if (fd < 0)
			continue;
		event[events].name = known[i].name;
		event[events++].fd = fd;
	}
}

unsigned pmu_events(const char *names[PMU_EVENTS_MAX])
{
	find_events();
	for (unsigned i = 0; i < events; i++)
		names[i] = event[i].name;
	return events;
}

unsigned pmu_turns(void)
{
	find_events();
	return events > 0;
}

const char *pmu_missing(void)
{
	static char text[128];

	find_events();
	format(text, sizeof(text), "the host gives none (perf_event_open: %s)", missing);
	return text;
}

void pmu_start(unsigned turn)
{
	for (unsigned i = 0; i < events; i++) {
		ioctl(event[i].fd, PERF_EVENT_IOC_RESET, 0);
		ioctl(event[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	}
}

void pmu_stop(unsigned turn, u64 values[PMU_EVENTS_MAX])
{
	for (unsigned i = 0; i < events; i++)
		ioctl(event[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	for (unsigned i = 0; i < events; i++) {
		u64 got[3] = {0}; /* value, time enabled, time counted */

		if (read(event[i].fd, got, sizeof(got)) != sizeof(got) || got[2] == 0)
			got[0] = got[1] = got[2] = 0;
		values[i] = got[2] ? (u64)((unsigned __int128)got[0] * got[1] / got[2]) : 0;
	}
}
