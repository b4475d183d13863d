/*
 * Reference allocators for the rows of alloc_bench.c, which show the speed reachable without zones,
 * types and checks. See probe.c.
 */
#pragma once

#include "kernel/lib/types.h"

enum probe_kind {
	PROBE_BUDDY, /* a buddy under one lock */
	/* with per-CPU linked lists, refilled and drained 64 at a time, as in Linux */
	PROBE_LIST,
	PROBE_RING, /* with per-CPU rings of frame numbers, refilled with one run */
};

#define PROBE_NONE ((u64)-1)

/*
 * Set up a new probe over `frames` frames (a multiple of 512), all free. False if there is no
 * memory.
 */
bool probe_init(enum probe_kind kind, u64 frames);
void probe_exit(void);

/*
 * Allocate and free pages of orders 0 and 9, by the number of the first frame. probe_drain()
 * empties the per-CPU lists.
 */
u64 probe_alloc(cpu_t cpu, unsigned order);
void probe_free(cpu_t cpu, u64 frame, unsigned order);
void probe_drain(cpu_t cpus);
