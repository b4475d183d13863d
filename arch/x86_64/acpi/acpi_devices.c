/*
 * The small tables: HPET, FADT, SPCR, DMAR, MCFG. See acpi_tables.h.
 *
 * Tables have grown over the years, so a field is read only if the table is long enough to contain
 * it.
 *
 * Source: ACPI 6.5, 5.2.9 "Fixed ACPI Description Table"; Intel, "IA-PC HPET Specification" 1.0a,
 * 2004-10, 3.2.4; Microsoft, "Serial Port Console Redirection Table" 1.08, 2021; Intel,
 * "Virtualization Technology for Directed I/O" 4.1, 8.1 "DMA Remapping Reporting Structure"; PCI-SIG, "PCI
 * Firmware Specification" 3.2, 2015, 4.1.2 "MCFG Table Description".
 */
#include "arch/x86_64/acpi/acpi_devices.h"

#include "kernel/lib/string.h"

enum { HPET_ADDRESS = 40 };
enum {
	FADT_PM_TIMER = 76,
	FADT_PM_TIMER_LEN = 91,
	FADT_FLAGS = 112,
	FADT_RESET = 116,
	FADT_RESET_VALUE = 128,
	FADT_X_PM_TIMER = 208,
	FADT_FLAG_TIMER_32BIT = 1 << 8,
	FADT_FLAG_RESET = 1 << 10,
};
enum { SPCR_INTERFACE = 36, SPCR_ADDRESS = 40, SPCR_BAUD = 58 };
enum { MCFG_ENTRIES = 44, MCFG_SEGMENT = 8, MCFG_LAST_BUS = 11, MCFG_ENTRY = 16 };
enum { DMAR_FLAGS = 37, DMAR_OPT_OUT = 1 << 1 };

/* Copy a field. If the table is too short for it, zero *out and return false. */
static bool field(const struct acpi_table *table, size_t at, void *out, size_t size)
{
	memset(out, 0, size);
	if (at + size > table->len)
		return false;
	memcpy(out, table->data + at, size);
	return true;
}

phys_t acpi_hpet_base(const struct acpi_table *table)
{
	struct acpi_address address;

	field(table, HPET_ADDRESS, &address, sizeof(address));
	return address.space == ACPI_SPACE_MEMORY ? address.addr : 0;
}

/*
 * The extended address is used if it is present and is a port; some firmware fills in only the old
 * field.
 */
static u32 pm_timer_port(const struct acpi_table *table)
{
	struct acpi_address extended;
	u32 port;
	u8 len;

	if (field(table, FADT_X_PM_TIMER, &extended, sizeof(extended)) && extended.addr &&
	    extended.space == ACPI_SPACE_IO && extended.addr <= 0xffff)
		return (u32)extended.addr;
	field(table, FADT_PM_TIMER, &port, sizeof(port));
	field(table, FADT_PM_TIMER_LEN, &len, sizeof(len));
	return len == 4 && port <= 0xffff ? port : 0;
}

int acpi_fadt_parse(const struct acpi_table *table, struct acpi_fadt *out)
{
	u32 flags;

	*out = (struct acpi_fadt){0};
	if (!field(table, FADT_FLAGS, &flags, sizeof(flags)))
		return -EINVAL;
	out->pm_timer_port = pm_timer_port(table);
	out->pm_timer_32bit = flags & FADT_FLAG_TIMER_32BIT;
	out->reset_supported =
		(flags & FADT_FLAG_RESET) &&
		field(table, FADT_RESET, &out->reset, sizeof(out->reset)) &&
		field(table, FADT_RESET_VALUE, &out->reset_value, sizeof(out->reset_value));
	return 0;
}

int acpi_spcr_parse(const struct acpi_table *table, struct acpi_spcr *out)
{
	*out = (struct acpi_spcr){0};
	if (!field(table, SPCR_ADDRESS, &out->base, sizeof(out->base)) || out->base.addr == 0)
		return -EINVAL;
	field(table, SPCR_INTERFACE, &out->interface, sizeof(out->interface));
	field(table, SPCR_BAUD, &out->baud, sizeof(out->baud));
	return 0;
}

u32 acpi_spcr_bits(const struct acpi_spcr *spcr)
{
	static const u32 bits[] = {[3] = 9600, [4] = 19200, [6] = 57600, [7] = 115200};

	return spcr->baud < ARRAY_LEN(bits) ? bits[spcr->baud] : 0;
}

bool acpi_dmar_opts_out(const struct acpi_table *table)
{
	u8 flags;

	return field(table, DMAR_FLAGS, &flags, sizeof(flags)) && (flags & DMAR_OPT_OUT);
}

phys_t acpi_mcfg_base(const struct acpi_table *table, u32 *buses)
{
	phys_t base;
	u16 segment;
	u8 last;

	for (size_t at = MCFG_ENTRIES; at + MCFG_ENTRY <= table->len; at += MCFG_ENTRY) {
		field(table, at, &base, sizeof(base));
		field(table, at + MCFG_SEGMENT, &segment, sizeof(segment));
		field(table, at + MCFG_LAST_BUS, &last, sizeof(last));
		*buses = last + 1u;
		if (segment == 0)
			return base;
	}
	return 0;
}
