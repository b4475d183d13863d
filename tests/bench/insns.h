/* The clearing instructions in the order in which benchmarks measure them. */
#pragma once

#include <arch/clear.h>

enum { INSNS_MAX = 8 };

/*
 * The n-th of the instructions that this CPU has. rep stosb is first, as the series uses it (rep
 * stosq where it is not fast), then come the others in their table's order. NULL past the last.
 */
const struct clear_insn *insn_in_turn(unsigned n);

/* The text of an extent in the form of clear.extent=: "64K", "32M", "1G", "whole". */
void extent_name(u64 extent, char *buf, size_t size);
