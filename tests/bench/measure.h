/* What benchmarks use: the clock, options, output, the table of benchmarks, and memory. */
#pragma once

#include <arch/clock.h>

#include "kernel/console/input.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/padata.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/lib/string.h"
#include "kernel/run/bench.h"
#include "mm/clear/clear.h"
#include "mm/debug/account.h"
#include "mm/mm.h"
#include "mm/page/pcp_drain.h"
#include "mm/zone/section_close.h"
#include "tests/bench/sort.h"
#include "tests/kernel/chain.h"

/* Do [0, size) in chunks by at most so many CPUs, of any node. */
static inline void do_by(unsigned cpus, void (*fn)(u64, u64, void *), void *arg, u64 size)
{
	padata_run(&(struct padata_mt_job){.thread_fn = fn,
					   .arg = arg,
					   .size = size,
					   .min_chunk = 1,
					   .max_threads = cpus,
					   .node = NODE_NONE});
}
