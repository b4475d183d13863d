/*
 * Finding the ACPI tables; see acpi_find.h. This is the only ACPI file that follows physical
 * pointers.
 *
 *   RSDP   from the boot protocol (a copy, or an address), else on a 16-byte boundary of the first
 *          KiB of the EBDA or of 0xE0000-0xFFFFF (with acpi=module none of these is used, but a
 *          dump that the loader passed along)
 *   root   the XSDT if it is whole, else the RSDT; else there is no ACPI
 *
 * Firmware's pointers are checked. An address that the CPU cannot have, or a table of an absurd
 * length, is logged and left alone. Mappings are read-only and kept, as the tables are read again
 * by later users.
 *
 * Source: ACPI 6.5, 5.2.5.1 "Finding the RSDP on IA-PC Systems", 5.2.5.2 "... on UEFI Enabled
 * Systems".
 */
#include "arch/x86_64/acpi/acpi_find.h"

#include "arch/x86_64/acpi/acpi_dump.h"
#include "arch/x86_64/acpi/acpi_root.h"
#include "boot/boot_info.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "mm/map/memblock.h"
#include "mm/map/vmap.h"

enum { EBDA_POINTER = 0x40e, EBDA_SEARCH = 1024, BIOS_AREA = 0xe0000, BIOS_AREA_SIZE = 0x20000 };

/* No table that is read here is longer: 65,536 CPUs as x2APIC entries make 1 MiB. */
#define TABLE_MAX MIB(4)
/* Room for a dump of all tables of a large server, DSDT included. */
#define DUMP_MAX MIB(64)

static const char *const signatures[ACPI_KINDS] = {
	[ACPI_MADT] = "APIC", [ACPI_SRAT] = "SRAT", [ACPI_SLIT] = "SLIT",
	[ACPI_HPET] = "HPET", [ACPI_FADT] = "FACP", [ACPI_SPCR] = "SPCR",
	[ACPI_DMAR] = "DMAR", [ACPI_MCFG] = "MCFG", [ACPI_DSDT] = "DSDT",
};

enum acpi_source { ACPI_FIRMWARE, ACPI_OFF, ACPI_MODULE };

static unsigned acpi_source;
OPTION_CHOICE(acpi, acpi_source, "on|off|module",
	      "tables to use: the firmware's; none (one CPU, one node); those of an acpidump "
	      "loaded as a module",
	      .boot_only = true);

static struct acpi_table tables[ACPI_KINDS];

const struct acpi_table *acpi_get(enum acpi_kind kind)
{
	return tables[kind].data ? &tables[kind] : NULL;
}

static const void *map(phys_t phys, u64 size)
{
	if (phys == 0 || !phys_is_possible(phys, size)) {
		pr_warn("ACPI: a pointer to the impossible address %llx is ignored", phys);
		return NULL;
	}
	return vmap_phys(phys, size, PT_RO);
}

static bool rsdp_search(phys_t start, size_t len, struct acpi_rsdp *rsdp)
{
	const u8 *area = map(start, len);

	return area && acpi_rsdp_scan(area, len, rsdp) >= 0;
}

phys_t acpi_ebda(void)
{
	const u8 *pointer = map(EBDA_POINTER, 2);
	phys_t ebda = pointer ? (phys_t)(pointer[0] | pointer[1] << 8) << 4 : 0;

	return ebda >= 0x80000 && ebda < 0xa0000 ? ebda : 0;
}

static bool rsdp_legacy(struct acpi_rsdp *rsdp)
{
	const phys_t ebda = acpi_ebda();

	return (ebda && rsdp_search(ebda, EBDA_SEARCH, rsdp)) ||
	       rsdp_search(BIOS_AREA, BIOS_AREA_SIZE, rsdp);
}

static const char *find_rsdp(const struct boot_info *info, struct acpi_rsdp *rsdp)
{
	const size_t copied = MIN((size_t)info->rsdp_copy_len, sizeof(info->rsdp_copy));

	if (copied && acpi_rsdp_parse(info->rsdp_copy, copied, rsdp) == 0)
		return "the loader's copy";
	if (info->rsdp && rsdp_search(info->rsdp, ACPI_RSDP_V2_SIZE, rsdp))
		return "the loader";
	if (copied || info->rsdp)
		pr_warn("ACPI: the loader's RSDP is invalid, memory is searched for another");
	return rsdp_legacy(rsdp) ? "legacy search" : NULL;
}

/* Map a whole table; its header is mapped already. */
static int open_table(phys_t phys, const u8 *header, const char *signature, struct acpi_table *out)
{
	const size_t length = acpi_header_length(header, ACPI_HEADER_SIZE);
	const void *data;

	*out = (struct acpi_table){0};
	if (length == 0 || length > TABLE_MAX) {
		pr_warn("ACPI: %s at %llx states an impossible length and is not used", signature,
			phys);
		return -EINVAL;
	}
	data = map(phys, length);
	return data ? acpi_table_open(data, length, signature, out) : -EINVAL;
}

static bool open_root(phys_t phys, const char *signature, struct acpi_table *root)
{
	const u8 *header = phys ? map(phys, ACPI_HEADER_SIZE) : NULL;

	if (!header)
		return false;
	if (!acpi_has_signature(header, ACPI_HEADER_SIZE, signature)) {
		pr_warn("ACPI: no %s at %llx", signature, phys);
		return false;
	}
	return open_table(phys, header, signature, root) == 0;
}

/* Keep a table for which acpi_table_open() returned `err`. */
static void take_table(const struct acpi_table *table, int err, enum acpi_kind kind)
{
	if (tables[kind].data) {
		pr_warn("ACPI: a second %s is ignored", signatures[kind]);
		return;
	}
	if (err == 0 || (err == -EIO && kind == ACPI_MADT))
		tables[kind] = *table;
	if (err == -EIO)
		pr_warn("ACPI: %s is %s", signatures[kind],
			kind == ACPI_MADT ? "used in spite of that" : "not used");
}

static void visit_table(phys_t phys)
{
	const u8 *header = map(phys, ACPI_HEADER_SIZE);
	struct acpi_table table;

	for (unsigned kind = 0; header && kind < ACPI_KINDS; kind++)
		if (acpi_has_signature(header, ACPI_HEADER_SIZE, signatures[kind]))
			take_table(&table, open_table(phys, header, signatures[kind], &table),
				   kind);
}

/*
 * Use the tables of another machine; the first module is a text of acpidump. On purpose, they are
 * then mostly wrong about this machine: CPUs that do not exist have to be given up, and the nodes
 * are those of the dump.
 */
static void replay_module(const struct boot_info *info)
{
	const struct boot_module *module = &info->module[0];
	struct acpi_table text, table;
	struct acpi_dump dump = {0};
	size_t found = 0;

	if (info->modules > 0 && module->size <= DUMP_MAX)
		dump.at = map(module->start, module->size);
	if (!dump.at) {
		pr_warn("ACPI: acpi=module, but the loader passed no module that could be read");
		return;
	}
	dump.end = dump.at + module->size;
	dump.left = module->size / 3;
	dump.room = memblock_alloc_or_die(dump.left + 1, NODE_NONE, "the replayed ACPI tables");
	while (acpi_dump_next(&dump, &text)) {
		found++;
		for (unsigned kind = 0; kind < ACPI_KINDS; kind++)
			if (acpi_has_signature(text.data, text.len, signatures[kind]))
				take_table(&table,
					   acpi_table_open(text.data, text.len, signatures[kind],
							   &table),
					   kind);
	}
	pr_info("ACPI: replayed from a module with %zu tables", found);
}

void acpi_find_tables(const struct boot_info *info)
{
	struct acpi_rsdp rsdp;
	struct acpi_fadt fadt;
	struct acpi_table root;
	const char *source;

	if (acpi_source == ACPI_OFF) {
		pr_info("ACPI: not used, because of acpi=off");
		return;
	}
	if (acpi_source == ACPI_MODULE) {
		replay_module(info);
		return;
	}
	source = find_rsdp(info, &rsdp);
	if (!source) {
		pr_warn("ACPI: no RSDP found");
		return;
	}
	if (!open_root(rsdp.xsdt, "XSDT", &root) && !open_root(rsdp.rsdt, "RSDT", &root)) {
		pr_warn("ACPI: neither XSDT nor RSDT can be used");
		return;
	}
	for (size_t i = 0; i < acpi_root_count(&root); i++)
		visit_table(acpi_root_entry(&root, i));
	if (acpi_get(ACPI_FADT) && acpi_fadt_parse(acpi_get(ACPI_FADT), &fadt) == 0 && fadt.dsdt)
		visit_table(fadt.dsdt);
	pr_info("ACPI: revision %u from %s, %.4s with %zu tables", rsdp.revision, source,
		(const char *)root.data, acpi_root_count(&root));
}
