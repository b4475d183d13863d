/*
 * MADT: the CPUs of the machine, by APIC ID. See acpi_tables.h.
 *
 *   header | local APIC address, flags | type len ... | type len ... | ...
 *
 * Firmware is careless here. Known cases are IDs 0xFF for empty sockets, the same CPU once as type
 * 0 and once as type 9, and entries of length zero. So only enabled entries count, impossible IDs
 * are ignored, duplicates merge, a length shorter than the entry's own header ends the table, and
 * unknown types are skipped.
 *
 * The list is sorted by APIC ID. IDs encode the topology (package, core, thread), so neighbours in
 * the list are neighbours in the machine, whatever order the firmware chose.
 *
 * Source: ACPI 6.5, 5.2.12 "Multiple APIC Description Table".
 */
#include "arch/x86_64/acpi/acpi_madt.h"

#include "arch/x86_64/acpi/acpi_root.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum madt_type {
	MADT_LOCAL_APIC = 0,
	MADT_IO_APIC = 1,
	MADT_NMI = 4,
	MADT_X2APIC = 9,
	MADT_X2APIC_NMI = 10,
};

enum { MADT_ENTRIES = 44, MADT_ENABLED = 1, APIC_ID_NONE8 = 0xff };

#define APIC_ID_NONE32 0xffffffffu

struct madt_local_apic {
	u8 type, length, uid, apic_id;
	u32 flags;
} __packed;

struct madt_io_apic {
	u8 type, length, id, reserved;
	u32 phys, gsi_base;
} __packed;

struct madt_nmi {
	u8 type, length, uid;
	u16 flags;
	u8 lint;
} __packed;

struct madt_x2apic {
	u8 type, length;
	u16 reserved;
	u32 apic_id, flags, uid;
} __packed;

struct madt_x2apic_nmi {
	u8 type, length;
	u16 flags;
	u32 uid;
	u8 lint, reserved[3];
} __packed;

static const u8 madt_sizes[] = {
	[MADT_LOCAL_APIC] = sizeof(struct madt_local_apic),
	[MADT_IO_APIC] = sizeof(struct madt_io_apic),
	[MADT_NMI] = sizeof(struct madt_nmi),
	[MADT_X2APIC] = sizeof(struct madt_x2apic),
	[MADT_X2APIC_NMI] = sizeof(struct madt_x2apic_nmi),
};

/* Set *apic_id to the CPU of an entry that is enabled and valid; else false. */
static bool entry_cpu(const u8 *entry, u32 *apic_id, struct acpi_madt *out)
{
	const struct madt_local_apic *local = (const void *)entry;
	const struct madt_x2apic *x2apic = (const void *)entry;
	bool valid, enabled;

	if (entry[0] == MADT_LOCAL_APIC) {
		*apic_id = local->apic_id;
		valid = local->apic_id != APIC_ID_NONE8;
		enabled = local->flags & MADT_ENABLED;
	} else if (entry[0] == MADT_X2APIC) {
		*apic_id = x2apic->apic_id;
		valid = x2apic->apic_id != APIC_ID_NONE32;
		enabled = x2apic->flags & MADT_ENABLED;
	} else {
		return false;
	}
	out->disabled += !enabled;
	out->ignored += enabled && !valid;
	return enabled && valid;
}

/*
 * Record the local pin for NMIs. If two entries name different pins, neither can be trusted for all
 * CPUs.
 */
static void note_nmi(const u8 *entry, struct acpi_madt *out, bool *seen)
{
	u8 lint;

	if (entry[0] == MADT_NMI)
		lint = ((const struct madt_nmi *)entry)->lint;
	else if (entry[0] == MADT_X2APIC_NMI)
		lint = ((const struct madt_x2apic_nmi *)entry)->lint;
	else
		return;
	out->nmi_lint = lint <= 1 && (!*seen || out->nmi_lint == lint) ? lint : -1;
	*seen = true;
}

static u64 apic_id_key(const void *record)
{
	return ((const struct cpu_desc *)record)->apic_id;
}

static size_t drop_duplicates(struct cpu_desc *cpus, size_t count)
{
	size_t kept = 0;

	for (size_t i = 0; i < count; i++)
		if (kept == 0 || cpus[kept - 1].apic_id != cpus[i].apic_id)
			cpus[kept++] = cpus[i];
	return kept;
}

size_t acpi_madt_parse(const struct acpi_table *madt, struct cpu_desc *cpus, size_t max,
		       struct acpi_madt *out, io_apic_fn *add_io_apic)
{
	struct acpi_walk walk = {madt, MADT_ENTRIES, madt_sizes, ARRAY_LEN(madt_sizes)};
	size_t count = 0, kept;
	bool nmi_seen = false;
	const u8 *entry;
	u32 apic_id;

	*out = (struct acpi_madt){.nmi_lint = -1};
	for (entry = acpi_walk_next(&walk); entry; entry = acpi_walk_next(&walk)) {
		const struct madt_io_apic *io = (const void *)entry;

		note_nmi(entry, out, &nmi_seen);
		if (entry[0] == MADT_IO_APIC && add_io_apic)
			add_io_apic(io->phys, io->gsi_base);
		if (entry_cpu(entry, &apic_id, out) && count < max)
			cpus[count++] = (struct cpu_desc){.apic_id = apic_id, .enabled = true};
	}
	acpi_sort(&(struct acpi_order){cpus, sizeof(*cpus), apic_id_key}, count);
	kept = drop_duplicates(cpus, count);
	out->ignored += count - kept;
	return kept;
}

size_t cpu_list_boot_first(struct cpu_desc *cpus, size_t count, u32 boot_apic_id)
{
	size_t at = 0;

	while (at < count && cpus[at].apic_id != boot_apic_id)
		at++;
	if (at == count) {
		pr_warn("ACPI: MADT does not list the boot CPU (APIC ID %u), added", boot_apic_id);
		count++;
	}
	memmove(&cpus[1], &cpus[0], at * sizeof(*cpus));
	cpus[0] = (struct cpu_desc){.apic_id = boot_apic_id, .enabled = true};
	return count;
}
