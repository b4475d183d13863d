/* Setting up a local APIC; see apic_setup.h. */
#include "arch/x86_64/traps/apic_setup.h"

/*
 * Mask a local source. A source that raises SMIs belongs to firmware (thermal management) and is
 * left as it is.
 */
static void mask_source(const struct apic_access *apic, unsigned reg)
{
	const u32 value = apic->read(reg);

	if ((value & LVT_MODE) != LVT_MODE_SMI)
		apic->write(reg, value | LVT_MASKED);
}

static void mask_sources(const struct apic_access *apic)
{
	const unsigned last = apic->read(APIC_VERSION) >> 16 & 0xff;

	mask_source(apic, APIC_LVT_TIMER);
	mask_source(apic, APIC_LVT_ERROR);
	apic->write(APIC_LVT_LINT0, LVT_MASKED);
	apic->write(APIC_LVT_LINT1, LVT_MASKED);
	if (last >= 4)
		mask_source(apic, APIC_LVT_PERF);
	if (last >= 5)
		mask_source(apic, APIC_LVT_THERMAL);
	if (last >= 6)
		mask_source(apic, APIC_LVT_CMCI);
}

void apic_set_up(const struct apic_access *apic, int nmi_pin)
{
	apic->write(APIC_TPR, 0);
	mask_sources(apic);
	apic->write(APIC_SVR, SVR_ENABLE | VECTOR_SPURIOUS);
	if (nmi_pin >= 0)
		apic->write(nmi_pin == 0 ? APIC_LVT_LINT0 : APIC_LVT_LINT1, LVT_MODE_NMI);
}

enum apic_mode apic_mode_for(const struct apic_facts *facts, bool asked)
{
	if (facts->left != APIC_XAPIC || !facts->available)
		return facts->left;
	if (asked || (facts->highest_id > XAPIC_ID_MAX && !facts->opted_out))
		return APIC_X2APIC;
	return APIC_XAPIC;
}
