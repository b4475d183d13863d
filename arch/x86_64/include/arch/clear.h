/*
 * Clearing memory: one instruction or a tight loop over a whole extent, so that the processor knows its size
 * (Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04).
 *
 * Which way is best depends on how much is cleared in all, so it is chosen for each of three classes: what its user is
 * about to read should stay in the caches, what is larger than they are should pass them by.
 */
#pragma once

#include <arch/check.h>

#include "kernel/types.h"

struct clear_insn {
	const char *name; /* as in clear_insn= and in records: orig, rep, erms, clzero, nt */
	void (*clear)(void *addr, size_t bytes); /* addr and bytes: multiples of 64 */
	bool (*supported)(void);
};

/* All variants; ends with a NULL name. */
extern const struct clear_insn clear_insns[];

/* Clear so: all that mm/ and arch/ clear by assembly comes by here. */
static inline void clear_with(const struct clear_insn *insn, void *addr, size_t bytes)
{
	check_cleared(addr, bytes);
	insn->clear(addr, bytes);
}

/* By bytes cleared for one purpose: below CLEAR_LARGE_FROM, up to 32 MiB, and beyond, where some CPUs skip the caches. */
enum clear_class { CLEAR_SMALL, CLEAR_LARGE, CLEAR_GIANT, CLEAR_CLASSES };
#define CLEAR_LARGE_FROM KIB(256)
#define CLEAR_GIANT_ABOVE MIB(32)
enum clear_class clear_class_of(u64 bytes);

/* The variant in use for a class: by CPUID, or as clear_insn= or a calibration says. */
const struct clear_insn *clear_insn_selected(enum clear_class class);

/* What CPUID alone says. */
const struct clear_insn *clear_insn_by_cpuid(enum clear_class class);

/* A calibration's result; NULL: CPUID's again. Ignored where clear_insn= has forced one: then false. */
bool clear_insn_choose(enum clear_class class, const struct clear_insn *insn);

/*
 * Clear `count` 4 KiB pages at `addr` (page-aligned, mapped), of any number; with one instruction, however many they
 * are: for large extents see mm/clear.h. Any context.
 */
void clear_pages(void *addr, size_t count);
