/*
 * Finding the ACPI tables of this machine and mapping them. The parsers, which know nothing of this
 * machine, are in acpi_tables.h.
 *
 *   acpi_find.c   boot protocol or legacy search -> RSDP -> root -> the tables named below, mapped
 *                 and checked
 *   firmware.c    tables -> CPUs, nodes, RAM's nodes, clocks
 *
 * The boot CPU writes all of it during start-up; afterwards it is read-only.
 */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

struct boot_info;

enum acpi_kind {
	ACPI_MADT,
	ACPI_SRAT,
	ACPI_SLIT,
	ACPI_HPET,
	ACPI_FADT,
	ACPI_SPCR,
	ACPI_DMAR,
	ACPI_MCFG,
	ACPI_DSDT,
	ACPI_KINDS
};

/*
 * Find, map and check the tables.
 *
 * A table whose checksum is wrong is logged. The MADT is used all the same, because the worst it
 * can do is to name CPUs that do not answer. All others are left out, because their errors would go
 * unnoticed.
 */
void acpi_find_tables(const struct boot_info *info);

/* The table, or NULL if there is none that can be used. */
const struct acpi_table *acpi_get(enum acpi_kind kind);

/*
 * Start of the extended BIOS data area, or 0 if the BIOS names none at a possible address. Call
 * after acpi_find_tables().
 */
phys_t acpi_ebda(void);
