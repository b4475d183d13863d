/*
 * The content of this machine's firmware tables, once arch_firmware_init() has read them. The
 * parsers, which know nothing of this machine, are in acpi_tables.h.
 *
 *   acpi_find.c   boot protocol or legacy search -> RSDP -> root -> the tables named below, mapped
 *                 and checked
 *   firmware.c    tables -> CPUs, nodes, RAM's nodes, clocks
 *
 * The boot CPU writes all of it during start-up; afterwards it is read-only.
 */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"
#include "kernel/lib/types.h"

struct boot_info;

enum acpi_kind {
	ACPI_MADT,
	ACPI_SRAT,
	ACPI_SLIT,
	ACPI_HPET,
	ACPI_FADT,
	ACPI_SPCR,
	ACPI_DMAR,
	ACPI_KINDS
};

/* CPUs by dense index; there are cpu_count of them, and 0 is the boot CPU. */
extern struct cpu_desc *cpu_descs;
