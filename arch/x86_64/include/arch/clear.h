/*
 * Clearing memory: one instruction or a tight loop over a whole extent, so that the processor knows its size
 * (Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04).
 */
#pragma once

#include "kernel/types.h"

struct clear_insn {
	const char *name; /* as in clear_insn= and in records: orig, rep, erms, clzero, nt */
	void (*clear)(void *addr, size_t bytes); /* addr and bytes: multiples of 64 */
	bool (*supported)(void);
};

/* All variants, best choice by CPUID last; ends with a NULL name. */
extern const struct clear_insn clear_insns[];

/* The variant in use: chosen by CPUID, or forced with clear_insn=. */
const struct clear_insn *clear_insn_selected(void);

/* Clear `count` 4 KiB pages at `addr` (page-aligned, mapped). Any context. */
void clear_pages(void *addr, size_t count);
