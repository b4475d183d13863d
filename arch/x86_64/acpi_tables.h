/*
 * ACPI tables as bytes: pure parsers over (pointer, length).
 *
 *   RSDP -> XSDT (64-bit pointers) or RSDT (32-bit) -> MADT: CPUs and APICs      FADT: PM timer, reset
 *                                                      SRAT: nodes of CPUs, RAM  HPET: timer block
 *                                                      SLIT: distances           SPCR, MCFG: console, PCI
 *
 * Nothing here follows a pointer found in a table, allocates, or reads past the given length; everything compiles
 * hosted, where the tests and the fuzzer live. Lists have no ceiling: a caller counts first and then fills memory of
 * that size. What is wrong in a table is named on the log and skipped.
 *
 * Source: UEFI Forum, "Advanced Configuration and Power Interface Specification" 6.5, 2022-08, chapter 5.2.
 */
#pragma once

#include "kernel/types.h"

/* A generic address (5.2.3.2). */
struct acpi_address {
	u8 space, bits, offset, access;
	u64 addr;
} __packed;

enum { ACPI_SPACE_MEMORY = 0, ACPI_SPACE_IO = 1 };

/* What every table but the RSDP starts with (5.2.6). */
struct acpi_header {
	char signature[4];
	u32 length;
	u8 revision, checksum;
	char oem_id[6], oem_table[8];
	u32 oem_revision, creator, creator_revision;
} __packed;

enum { ACPI_HEADER_SIZE = 36, ACPI_RSDP_V1_SIZE = 20, ACPI_RSDP_V2_SIZE = 36 };

/* A table cut to the length its header states. data NULL: absent. */
struct acpi_table {
	const u8 *data;
	size_t len;
};

/* ---- roots: acpi_root.c ---------------------------------------------------------------------------------------- */

struct acpi_rsdp {
	phys_t xsdt, rsdt; /* 0: none */
	u8 revision;
};

/* 0, or -EINVAL if this is no RSDP or its checksums are wrong (named if the signature is there). */
int acpi_rsdp_parse(const void *data, size_t len, struct acpi_rsdp *out);

/* Offset of the first valid RSDP on a 16-byte border of an area, or -ENOENT. */
s64 acpi_rsdp_scan(const void *area, size_t len);

/* Length stated by a header of which ACPI_HEADER_SIZE bytes are at hand; 0 if it is impossible. */
size_t acpi_header_length(const void *data, size_t len);

bool acpi_has_signature(const void *data, size_t len, const char *signature);

/*
 * Check a table: signature, length, checksum. 0; -EINVAL if it is not that table or does not hold its own length;
 * -EIO, with *out usable, if only the checksum is wrong, which is named.
 */
int acpi_table_open(const void *data, size_t len, const char *signature, struct acpi_table *out);

/* Pointers of an XSDT or RSDT (told apart by signature). */
size_t acpi_root_count(const struct acpi_table *root);
phys_t acpi_root_entry(const struct acpi_table *root, size_t index);

/* ---- sorting: acpi_sort.c -------------------------------------------------------------------------------------- */

/* Records of any kind, in rising order of a key. */
struct acpi_order {
	void *base;
	size_t size; /* of a record */
	u64 (*key)(const void *record);
};

void acpi_sort(const struct acpi_order *order, size_t count);

/* ---- MADT: acpi_madt.c ----------------------------------------------------------------------------------------- */

struct cpu_desc {
	u32 apic_id;
	node_t node;
	bool enabled; /* will be started; cleared for one whose ID the APIC mode cannot address */
};

struct acpi_io_apic {
	u32 phys, gsi_base;
};

struct acpi_madt {
	phys_t local_apic; /* address of the local APICs, type 5 respected */
	size_t disabled;   /* entries of CPUs that are not there or not to be used */
	size_t ignored;    /* entries with impossible IDs, duplicates */
	size_t overrides;  /* interrupt source overrides (type 2) */
	int nmi_lint;      /* pin that is NMI on every CPU (types 4 and 10), or -1 */
	bool truncated;    /* ended early by an impossible entry */
};

/* Most CPUs and I/O APICs the table can yield. */
size_t acpi_madt_cpus_max(const struct acpi_table *madt);
size_t acpi_madt_io_apics_max(const struct acpi_table *madt);

/*
 * Fill `cpus` with the enabled CPUs, one entry per APIC ID, sorted by APIC ID, at most `max`. Returns their number.
 */
size_t acpi_madt_parse(const struct acpi_table *madt, struct cpu_desc *cpus, size_t max, struct acpi_madt *out);

/* Fill at most `max` I/O APICs; returns their number. */
size_t acpi_madt_io_apics(const struct acpi_table *madt, struct acpi_io_apic *out, size_t max);

/*
 * Make the boot CPU number 0, the others keep their order. False if its ID is not in the list (then nothing changes).
 */
bool cpu_list_boot_first(struct cpu_desc *cpus, size_t count, u32 boot_apic_id);

/* ---- SRAT, SLIT: acpi_srat.c ----------------------------------------------------------------------------------- */

struct acpi_mem_affinity {
	phys_t start, end;
	u32 domain;
	node_t node;
};

struct acpi_cpu_affinity {
	u32 apic_id, domain;
	node_t node;
};

/* Lists are the caller's: counted first, then filled, sorted by address and by APIC ID; `domains` ascending. */
struct acpi_srat {
	struct acpi_mem_affinity *mem;
	struct acpi_cpu_affinity *cpu;
	u32 *domain; /* domain[node]: its proximity domain; room for mem_count + cpu_count */
	size_t mem_count, cpu_count;
	node_t nodes;
};

/* Most entries of each kind the table can yield. */
void acpi_srat_count(const struct acpi_table *srat, size_t *mem, size_t *cpu);

/*
 * Fill lists made with the counts above; domains are numbered densely as nodes, by rising domain. 0 with nodes >= 1;
 * -EINVAL, named, if the table contradicts itself (ranges of different domains overlap, a CPU is in two) or names no
 * domain: then the machine is one node.
 */
int acpi_srat_parse(const struct acpi_table *table, struct acpi_srat *srat);

/* Node of a CPU; node 0 if the table does not list it. */
node_t acpi_srat_cpu_node(const struct acpi_srat *srat, u32 apic_id);

enum { ACPI_DISTANCE_LOCAL = 10, ACPI_DISTANCE_REMOTE = 20, ACPI_DISTANCE_UNREACHABLE = 255 };

struct acpi_slit {
	const u8 *matrix; /* NULL: none */
	u64 size;         /* of either side */
};

/* 0, or -EINVAL, named: does not fit, a domain is not 10 from itself, or nearer to another than to itself. */
int acpi_slit_parse(const struct acpi_table *table, struct acpi_slit *slit);
unsigned acpi_slit_distance(const struct acpi_slit *slit, u32 from_domain, u32 to_domain);

/* ---- the small ones: acpi_devices.c ---------------------------------------------------------------------------- */

/* 0 and the address of the timer block, or -EINVAL. */
int acpi_hpet_parse(const struct acpi_table *table, phys_t *base);

struct acpi_fadt {
	u32 pm_timer_port;   /* 0: none */
	bool pm_timer_32bit; /* else it wraps at 24 bits */
	bool reset_supported;
	struct acpi_address reset;
	u8 reset_value;
};
int acpi_fadt_parse(const struct acpi_table *table, struct acpi_fadt *out);

struct acpi_spcr {
	u8 interface; /* 0: 16550, 1: 16450-compatible subset; others are not UARTs of this kind */
	struct acpi_address base;
	u8 baud; /* 3: 9600, 4: 19200, 6: 57600, 7: 115200, 0: as it is */
};
int acpi_spcr_parse(const struct acpi_table *table, struct acpi_spcr *out);

struct acpi_mcfg_entry {
	u64 base;
	u16 segment;
	u8 bus_first, bus_last;
};
size_t acpi_mcfg_count(const struct acpi_table *table);
int acpi_mcfg_entry(const struct acpi_table *table, size_t index, struct acpi_mcfg_entry *out);

/* ---- text of acpidump: acpi_dump.c ------------------------------------------------------------------------------ */

/* What is left to read, and where bytes go: a third of the text's length is always enough. */
struct acpi_dump {
	const char *at, *end;
	u8 *room;
	size_t left;
};

/* The next table of the dump, as many bytes as the text has of it: open it with acpi_table_open(). False at the end. */
bool acpi_dump_next(struct acpi_dump *dump, struct acpi_table *out);
