/* Reference allocators for the rows of alloc_bench.c: what is reachable without zones, types, checks. See probe.c. */
#pragma once

#include "kernel/types.h"

enum probe_kind {
	PROBE_BUDDY, /* a buddy under one lock */
	PROBE_LIST,  /* with per-CPU linked lists, refilled and drained 64 at a time: the shape Linux has */
	PROBE_RING,  /* with per-CPU rings of frame numbers, refilled with one run */
};

#define PROBE_NONE ((u64)-1)

/* A fresh one over `frames` frames (a multiple of 512), all free. False: no memory. */
bool probe_init(enum probe_kind kind, u64 frames);
void probe_exit(void);

/* Orders 0 and 9; by number of the first frame. */
u64 probe_alloc(cpu_t cpu, unsigned order);
void probe_free(cpu_t cpu, u64 frame, unsigned order);
void probe_drain(cpu_t cpus);
