/* Readers of the CPU's registers: CPUID, MTRRs, banks of machine checks. */
#include "tests/prove/prove.h"

#include "arch/x86_64/cpu/mtrr.c"
#include "arch/x86_64/cpu/topology.c"
#include "arch/x86_64/traps/mce_decode.c"

static struct cpuid any_leaf(u32 leaf, u32 subleaf, const void *ctx)
{
	return ANY(struct cpuid);
}

PROVE(topology, "9", "a-package-smaller-than-a-core", "any answers to CPUID")
{
	const struct topology found = topology_read(any_leaf, NULL);

	prove(found.source && found.core_shift <= found.package_shift && found.package_shift < 32);
}

PROVE(mtrr, "4", "the-type-of-the-range-above", "up to 3 registers of any contents")
{
	struct mtrrs m;
	const phys_t addr = ANY_BELOW(phys_t, ~0ULL), other = ANY(phys_t);
	phys_t until, unused;
	unsigned type;

	assume(m.count <= 3);
	type = mtrr_type(&m, addr, &until);
	prove(type <= TYPE_MASK && until > addr);
	prove(other < addr || other >= until || mtrr_type(&m, other, &unused) == type);
}

int format(char *buf, size_t size, const char *text, ...)
{
	return 0;
}

PROVE(mce, "13", "a-code-of-no-row", "any words of a bank")
{
	const struct mce_error error = ANY(struct mce_error);
	char text[8];

	mce_describe(&error, text, sizeof(text));
	prove(mce_corrected_count(&error) >= 1 && mce_corrected_count(&error) <= COUNT_MASK);
	prove(!mce_names_page(&error) ||
	      ((error.status & STATUS_ADDR_VALID) && !mce_corrected(error.status)));
	prove(!mce_interrupts(error.status, ANY_BOOL) || !mce_corrected(error.status));
}
