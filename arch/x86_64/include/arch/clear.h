/*
 * Clearing memory with one instruction or one tight loop over a whole extent, so that the processor
 * knows the extent's size (Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04).
 *
 * The best variant depends on how much is cleared in all, so each of three classes of sizes has its
 * own. Memory that its user is about to read should stay in the caches; memory larger than the
 * caches should bypass them.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/check.h>

#include "kernel/lib/types.h"

struct clear_insn {
	const char *name; /* name in clear.insn= and in records: orig, rep, erms, clzero, nt */
	void (*clear)(void *addr, size_t bytes); /* addr and bytes: multiples of 64 */
	const bool *needs; /* the feature of the CPU; NULL: every CPU has the instruction */
};

/* All variants; ends with a NULL name. */
extern const struct clear_insn clear_insns[];

static inline bool clear_insn_supported(const struct clear_insn *insn)
{
	return !insn->needs || *insn->needs;
}

/* Clear with this variant. All clearing by assembly in mm/ and arch/ goes through here. */
static inline void clear_with(const struct clear_insn *insn, void *addr, size_t bytes)
{
	check_cleared(addr, bytes);
	insn->clear(addr, bytes);
}

/*
 * Classes by the number of bytes cleared for one purpose: below CLEAR_LARGE_FROM, up to 32 MiB, and
 * beyond 32 MiB, where some CPUs bypass the caches by themselves.
 */
enum clear_class { CLEAR_SMALL, CLEAR_LARGE, CLEAR_GIANT, CLEAR_CLASSES };
#define CLEAR_LARGE_FROM  KIB(256)
#define CLEAR_GIANT_ABOVE MIB(32)
enum clear_class clear_class_of(u64 bytes);

/* The variant in use for a class, chosen by CPUID or by clear.insn=. */
extern const struct clear_insn *clear_insns_now[CLEAR_CLASSES]; /* atomic */
static inline const struct clear_insn *clear_insn_selected(enum clear_class class)
{
	return atomic_load_relaxed(&clear_insns_now[class]);
}

/* The variant that CPUID alone selects. */
const struct clear_insn *clear_insn_by_cpuid(enum clear_class class);

/*
 * Clear `count` 4 KiB pages at `addr` (page-aligned, mapped) with one instruction, however many
 * they are. For large extents use mm/clear/clear.h. Any context.
 */
void clear_pages(void *addr, size_t count);
