/*
 * What the firmware tables of this machine say, once arch_firmware_init() has read them. The parsers, which know
 * nothing of this machine, are in acpi_tables.h.
 *
 *   acpi_find.c   boot protocol or legacy search -> RSDP -> root -> the tables named below, mapped and checked
 *   firmware.c    tables -> CPUs, nodes, RAM's nodes, clocks
 *
 * All of it is written by the boot CPU during start-up and read-only afterwards.
 */
#pragma once

#include "arch/x86_64/acpi_tables.h"
#include "kernel/types.h"

struct boot_info;

enum acpi_kind { ACPI_MADT, ACPI_SRAT, ACPI_SLIT, ACPI_HPET, ACPI_FADT, ACPI_SPCR, ACPI_MCFG, ACPI_KINDS };

/*
 * Find, map and check the tables. Physical addresses at or above `limit` are taken for wrong. True if there are ACPI
 * tables at all. A table whose checksum is wrong is used, with a warning, where the worst it can do is to name CPUs
 * that do not answer (MADT), and left out where it would be believed silently (all others).
 */
bool acpi_find_tables(const struct boot_info *info, phys_t limit);

/* The table, or NULL if there is none that can be used. */
const struct acpi_table *acpi_get(enum acpi_kind kind);

/* Start of the extended BIOS data area, or 0 if the BIOS names none where one can be. After acpi_find_tables(). */
phys_t acpi_ebda(void);

/* CPUs by dense index; cpu_count of them, 0 is the boot CPU. */
extern struct cpu_desc *cpu_descs;

