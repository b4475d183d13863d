/*
 * The trace: every check_event() of a run, in one order that agrees with each CPU's own order and
 * with what the CPUs saw of each other.
 *
 *   file   [magic, used][event 0][event 1] ...   mapped shared: survives the machine's end
 *
 * An event takes its place with one atomic increment at the moment of the call. It therefore
 * precedes everything that its CPU did later, and everything that another CPU did after having seen
 * that. Events that do not fit are not written. A reader sees from the count that some are missing,
 * and rejects the trace.
 */
#ifndef HOST_FAST

#include <arch/check.h>
#include <fcntl.h>

#include "tests/host/host.h"

#define TRACE_MAGIC 0x3165636172746c61ULL /* "altrace1" */

enum { EVENTS_MAX = 1 << 22 };

struct trace_event {
	u32 cpu, event; /* event + 1; 0 is a place that was taken and never filled */
	u64 a, b;
};

struct trace {
	u64 magic, used;
	u64 events_max;
	struct trace_event event[EVENTS_MAX];
};

static struct trace *trace;

void host_trace_open(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || ftruncate(fd, sizeof(struct trace)) < 0)
		host_die("cannot make the trace %s", path);
	trace = mmap(NULL, sizeof(struct trace), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (trace == MAP_FAILED)
		host_die("cannot map the trace %s", path);
	trace->magic = TRACE_MAGIC;
	trace->events_max = EVENTS_MAX;
}

void check_event(enum check_event event, u64 a, u64 b)
{
	u64 place;

	if (!trace)
		return;
	place = atomic_fetch_add(&trace->used, 1);
	if (place >= EVENTS_MAX)
		return;
	trace->event[place].cpu = host_me->id;
	trace->event[place].a = a;
	trace->event[place].b = b;
	atomic_store_release(&trace->event[place].event, (u32)event + 1);
}

#else
#include "tests/host/host.h"

void host_trace_open(const char *path)
{
	host_die("this backend writes no trace: %s", path);
}
#endif
