/* ACPI tables that describe single devices: HPET, FADT, SPCR, DMAR, MCFG. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/* The address of the timer block; 0: none. */
phys_t acpi_hpet_base(const struct acpi_table *table);

/* Does firmware ask the system not to enter x2APIC mode? */
bool acpi_dmar_opts_out(const struct acpi_table *table);

/*
 * Where PCI's configuration lies in memory: of bus 0 of the first segment, and of how many buses.
 * 0: nowhere.
 */
phys_t acpi_mcfg_base(const struct acpi_table *table, u32 *buses);

/*
 * The values that select the state "power is off" in the FADT's two control ports. They are in
 * \_S5, which is found by its name, because nothing here interprets AML. False if no \_S5 is a
 * package of constants.
 */
enum { ACPI_SLEEP_TYPE_MAX = 7 };
bool acpi_s5_parse(const struct acpi_table *dsdt, u8 types[2]);
