/*
 * The set-up of a local APIC as a function of its registers, and the choice of its mode. Pure, so
 * that tests can stand in for APICs that no emulator has.
 *
 * Source: Intel SDM vol. 3A, 11.4.7.2 "Local APIC State After It Has Been Software Disabled": the
 * mask bits of all LVT entries are set, and an attempt to clear one is ignored.
 */
#pragma once

#include "arch/x86_64/traps/apic.h"

enum {
	APIC_VERSION = 0x30,
	APIC_TPR = 0x80,
	APIC_SVR = 0xf0,
	APIC_LVT_CMCI = 0x2f0,
	APIC_LVT_TIMER = 0x320,
	APIC_LVT_THERMAL = 0x330,
	APIC_LVT_PERF = 0x340,
	APIC_LVT_LINT0 = 0x350,
	APIC_LVT_LINT1 = 0x360,
	APIC_LVT_ERROR = 0x370,
};

enum {
	SVR_ENABLE = 1 << 8,
	LVT_MASKED = 1 << 16,
	LVT_MODE = 7 << 8,
	LVT_MODE_SMI = 2 << 8,
	LVT_MODE_NMI = 4 << 8,
};

struct apic_access {
	u32 (*read)(unsigned reg);
	void (*write)(unsigned reg, u32 value);
};

/*
 * Mask all local sources, software-enable the APIC, and open pin `nmi_pin` (0, 1 or -1: none) for
 * NMIs. In this order: before the APIC is enabled nothing may be open that firmware left, and
 * hardware opens nothing while it is disabled.
 */
void apic_set_up(const struct apic_access *apic, int nmi_pin);

struct apic_facts {
	enum apic_mode left; /* by firmware */
	bool available;      /* the CPU has x2APIC mode */
	bool opted_out;      /* firmware asks in its DMAR that this mode be not entered */
	u32 highest_id;      /* of a CPU that is to be started */
};

/*
 * The mode for all CPUs. x2APIC mode that is on is never left. It is entered for IDs above 254
 * unless firmware opted out, and in any case if it is `asked` for (x2apic=on).
 */
enum apic_mode apic_mode_for(const struct apic_facts *facts, bool asked);
