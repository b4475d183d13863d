/* Instructions that may fault, and where to go on if they do: entries for inline assembly (arch/x86_64/traps.h). */
#pragma once

/* Local labels of the instruction that may fault, and of the place to continue at. */
#define EXTABLE(insn, fixup) ".pushsection ex_table, \"a\"\n.balign 8\n.quad " #insn ", " #fixup "\n.popsection\n"
