/*
 * ACPI tables as bytes: pure parsers over (pointer, length).
 *
 *   RSDP -> XSDT (64-bit pointers) or RSDT (32-bit)
 *             MADT: CPUs and APICs      FADT: PM timer, reset, power -> DSDT: a value for it
 *             SRAT: nodes of CPUs, RAM  HPET: timer block
 *             SLIT: distances           SPCR: console
 *
 * The parsers follow no pointer found in a table, allocate nothing, and do not read past the given
 * length. All of them compile hosted, where the tests and the fuzzer run. Lists have no upper
 * limit; a caller makes them as long as the table may need (acpi_entries_max()). Errors in a table
 * are logged, and the wrong part is skipped.
 *
 * Source: UEFI Forum, "Advanced Configuration and Power Interface Specification" 6.5, 2022-08,
 * chapter 5.2.
 */
#pragma once

#include "kernel/lib/types.h"

/* A generic address (5.2.3.2). */
struct acpi_address {
	u8 space, bits, offset, access;
	u64 addr;
} __packed;

enum { ACPI_SPACE_MEMORY = 0, ACPI_SPACE_IO = 1 };

/* The header that every table but the RSDP starts with (5.2.6). */
struct acpi_header {
	char signature[4];
	u32 length;
	u8 revision; /* 27 bytes follow: checksum, names, versions */
} __packed;

enum { ACPI_HEADER_SIZE = 36, ACPI_RSDP_V1_SIZE = 20, ACPI_RSDP_V2_SIZE = 36 };

/* A table cut to the length its header states. data NULL: absent. */
struct acpi_table {
	const u8 *data;
	size_t len;
};

/* ---- roots: acpi_root.c ---- */

struct acpi_rsdp {
	phys_t xsdt, rsdt; /* 0: none */
	u8 revision;
};

/* A walk over the entries of a MADT or an SRAT, from byte `at` on. */
struct acpi_walk {
	const struct acpi_table *table;
	size_t at;
	const u8 *sizes; /* bytes of an entry of each type that are read; 0: it is passed over */
	size_t types;
};

/* Records of any kind, in rising order of a key. */
struct acpi_order {
	void *base;
	size_t size; /* of a record */
	u64 (*key)(const void *record);
};

/* ---- MADT: acpi_madt.c ---- */

struct cpu_desc {
	u32 apic_id;
	node_t node;
	bool enabled; /* will be started; cleared for a CPU whose ID the APIC mode cannot address */
	/* For acpi_cpu_order.c: numbers within the core, and within class and node. */
	bool efficient;
	u32 thread, turn;
};

struct acpi_madt {
	size_t disabled; /* entries of CPUs that are absent or not to be used */
	size_t ignored;  /* entries with impossible IDs, duplicates */
	int nmi_lint;    /* local pin that delivers NMIs on every CPU (types 4 and 10), or -1 */
};

/* Takes the address of an I/O APIC's registers and the number of its first line. */
typedef void io_apic_fn(phys_t phys, u32 gsi_base);

/* ---- SRAT, SLIT: acpi_srat.c ---- */

struct acpi_mem_affinity {
	phys_t start, end;
	u32 domain;
};

struct acpi_cpu_affinity {
	u32 apic_id, domain;
};

/*
 * The lists belong to the caller. The parser fills them. They are sorted by address and by APIC
 * ID, and `domain` ascends.
 */
struct acpi_srat {
	struct acpi_mem_affinity *mem;
	struct acpi_cpu_affinity *cpu;
	/* domain[node] is the node's proximity domain; room for mem_count + cpu_count */
	u32 *domain;
	size_t mem_count, cpu_count;
	node_t nodes;
};

enum { ACPI_DISTANCE_LOCAL = 10, ACPI_DISTANCE_REMOTE = 20 };

struct acpi_slit {
	const u8 *matrix; /* NULL: none */
	u64 size;         /* rows, and as many columns */
};

/* ---- the small tables: acpi_devices.c ---- */

struct acpi_fadt {
	u32 pm_timer_port;   /* 0: none */
	bool pm_timer_32bit; /* else it wraps at 24 bits */
	bool reset_supported;
	struct acpi_address reset;
	u8 reset_value;
	phys_t dsdt; /* 0: none */
	/* how power is switched off: two ports, or on machines without them a register; 0: none */
	u16 pm1_control[2];
	struct acpi_address sleep_control;
	u16 smi_port; /* where `acpi_on` is written so that the ports are ACPI's; 0: they are */
	u8 acpi_on;
};
int acpi_fadt_parse(const struct acpi_table *table, struct acpi_fadt *out);

struct acpi_spcr {
	u8 interface; /* 0: 16550, 1: 16450-compatible subset; others are not UARTs of this kind */
	struct acpi_address base;
	u8 baud; /* 3: 9600, 4: 19200, 6: 57600, 7: 115200, 0: as firmware set it */
};
int acpi_spcr_parse(const struct acpi_table *table, struct acpi_spcr *out);
u32 acpi_spcr_bits(const struct acpi_spcr *spcr); /* a second; 0: as firmware set it */

/* ---- text of acpidump: acpi_dump.c ---- */

/*
 * The text that is left to read, and the room for bytes; a third of the text's length is always
 * enough.
 */
struct acpi_dump {
	const char *at, *end;
	u8 *room;
	size_t left;
};
