/*
 * Caches as CPUID describes them. Pure functions of CPUID's answers (topology.h).
 *
 * Sources: Intel SDM vol. 2A, "CPUID", leaf 4; AMD APM vol. 3, E.4.15 (8000_001Dh).
 */
#pragma once

#include "arch/x86_64/cpu/topology.h"

struct cache_level {
	unsigned level;
	char kind;        /* 'd' data, 'i' instructions, 'u' both */
	u32 kib, sharing; /* `sharing`: number of CPU IDs that may share it */
};

enum { CACHES_MAX = 8 };

/* Fill in the caches, at most CACHES_MAX. Returns their number. */
unsigned caches_read(cpuid_fn *leaf, const void *ctx, struct cache_level out[CACHES_MAX]);

/*
 * Is the cache that has `sharing` IDs (struct cache_level) the same for two APIC IDs? CPUID states
 * the IDs that are reserved for its CPUs and not how many CPUs there are: IDs that agree above as
 * many bits share it (SDM vol. 2A, CPUID, leaf 4, note on bits 25:14; APM vol. 3, E.4.15).
 */
bool cache_is_shared(u32 sharing, u32 id, u32 other);
