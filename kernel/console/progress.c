/* Long operations: see progress.h. */
#include "kernel/console/progress.h"

#include <arch/clock.h>

#include "kernel/console/input.h"
#include "kernel/core/printk.h"

struct progress progress_begin(const char *what, const char *unit, u64 total)
{
	const u64 now = clock_ns();

	return (struct progress){
		.what = what, .unit = unit, .total = total, .start = now, .shown = now};
}

bool progress_stopped(struct progress *progress, u64 done)
{
	const u64 now = clock_ns(), ms = (now - progress->start) / NS_PER_MS + 1;

	if (now - progress->shown >= NS_PER_S) {
		const u64 rate = done * 1000 / ms,
			  left = done ? ms * (progress->total - MIN(done, progress->total)) / done
				      : 0;

		progress->shown = now;
		print("  %s: %llu of %llu %s, %llu/s, %llu.%llu s left\n", progress->what, done,
		      progress->total, progress->unit, rate, left / 1000, left / 100 % 10);
	}
	if (!input_stop_asked())
		return false;
	print("  %s: stopped by Ctrl-C after %llu of %llu %s\n", progress->what, done,
	      progress->total, progress->unit);
	return true;
}
