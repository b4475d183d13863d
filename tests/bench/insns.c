/* Order of the clearing instructions; see insns.h. */
#include "tests/bench/insns.h"

#include "tests/bench/measure.h"

static const struct clear_insn *insn_named(const char *name)
{
	const struct clear_insn *insn = clear_insns;

	while (insn->name && strcmp(insn->name, name) != 0)
		insn++;
	return insn->name && clear_insn_supported(insn) ? insn : NULL;
}

static const struct clear_insn *first_insn(void)
{
	const struct clear_insn *insn = insn_named("erms");

	return insn ? insn : insn_named("rep");
}

const struct clear_insn *insn_in_turn(unsigned n)
{
	const struct clear_insn *first = first_insn(), *insn;

	if (n == 0)
		return first;
	for (insn = clear_insns; insn->name; insn++)
		if (insn != first && clear_insn_supported(insn) && --n == 0)
			return insn;
	return NULL;
}

void extent_name(u64 extent, char *buf, size_t size)
{
	const unsigned unit = extent < MIB(1) ? 0 : extent < GIB(1) ? 1 : 2;

	if (extent == CLEAR_WHOLE)
		format(buf, size, "whole");
	else
		format(buf, size, "%llu%c", extent >> 10 * (unit + 1), "KMG"[unit]);
}
