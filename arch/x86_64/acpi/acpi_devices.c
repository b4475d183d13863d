/*
 * The small tables: HPET, FADT, SPCR, DMAR, MCFG, and one value of the DSDT. See acpi_tables.h.
 *
 * Tables have grown over the years, so a field is read only if the table is long enough to contain
 * it.
 *
 * Source: ACPI 6.5, 5.2.9 "Fixed ACPI Description Table", 7.4.2 "System \_Sx states", 20.2 "AML
 * Grammar Definition"; Intel, "IA-PC HPET Specification" 1.0a, 2004-10, 3.2.4; Microsoft, "Serial
 * Port Console Redirection Table" 1.08, 2021; Intel, "Virtualization Technology for Directed I/O"
 * 4.1, 8.1 "DMA Remapping Reporting Structure"; PCI-SIG, "PCI Firmware Specification" 3.2, 2015,
 * 4.1.2 "MCFG Table Description".
 */
#include "arch/x86_64/acpi/acpi_devices.h"

#include "kernel/lib/string.h"

enum { HPET_ADDRESS = 40 };
enum {
	FADT_DSDT = 40,
	FADT_SMI_PORT = 48,
	FADT_ACPI_ON = 52,
	FADT_PM1A_CONTROL = 64,
	FADT_PM1B_CONTROL = 68,
	FADT_PM_TIMER = 76,
	FADT_PM_TIMER_LEN = 91,
	FADT_FLAGS = 112,
	FADT_RESET = 116,
	FADT_RESET_VALUE = 128,
	FADT_X_DSDT = 140,
	FADT_X_PM1A_CONTROL = 172,
	FADT_X_PM1B_CONTROL = 184,
	FADT_X_PM_TIMER = 208,
	FADT_SLEEP_CONTROL = 244,
	FADT_FLAG_TIMER_32BIT = 1 << 8,
	FADT_FLAG_RESET = 1 << 10,
	FADT_FLAG_REDUCED = 1 << 20, /* no ports */
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
static u16 port_at(const struct acpi_table *table, size_t extended_at, size_t at)
{
	struct acpi_address extended;
	u32 port;

	if (field(table, extended_at, &extended, sizeof(extended)) && extended.addr &&
	    extended.space == ACPI_SPACE_IO && extended.addr <= 0xffff)
		return (u16)extended.addr;
	field(table, at, &port, sizeof(port));
	return port <= 0xffff ? (u16)port : 0;
}

static u16 pm_timer_port(const struct acpi_table *table)
{
	u8 len;

	field(table, FADT_PM_TIMER_LEN, &len, sizeof(len));
	return port_at(table, FADT_X_PM_TIMER, len == 4 ? FADT_PM_TIMER : table->len);
}

int acpi_fadt_parse(const struct acpi_table *table, struct acpi_fadt *out)
{
	u32 flags, dsdt;

	*out = (struct acpi_fadt){0};
	if (!field(table, FADT_FLAGS, &flags, sizeof(flags)))
		return -EINVAL;
	out->pm_timer_port = pm_timer_port(table);
	out->pm_timer_32bit = flags & FADT_FLAG_TIMER_32BIT;
	out->reset_supported =
		(flags & FADT_FLAG_RESET) &&
		field(table, FADT_RESET, &out->reset, sizeof(out->reset)) &&
		field(table, FADT_RESET_VALUE, &out->reset_value, sizeof(out->reset_value));
	field(table, FADT_DSDT, &dsdt, sizeof(dsdt));
	if (!field(table, FADT_X_DSDT, &out->dsdt, sizeof(out->dsdt)) || out->dsdt == 0)
		out->dsdt = dsdt;
	if (!(flags & FADT_FLAG_REDUCED)) {
		out->pm1_control[0] = port_at(table, FADT_X_PM1A_CONTROL, FADT_PM1A_CONTROL);
		out->pm1_control[1] = port_at(table, FADT_X_PM1B_CONTROL, FADT_PM1B_CONTROL);
	}
	field(table, FADT_SLEEP_CONTROL, &out->sleep_control, sizeof(out->sleep_control));
	field(table, FADT_SMI_PORT, &out->smi_port, sizeof(out->smi_port));
	field(table, FADT_ACPI_ON, &out->acpi_on, sizeof(out->acpi_on));
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

enum { AML_ZERO = 0, AML_ONE = 1, AML_NAME = 8, AML_BYTE = 10, AML_DWORD = 12, AML_PACKAGE = 18 };

/* The small number that begins at *at, of which *at is moved behind; -1: it is none. */
static int aml_number(const struct acpi_table *dsdt, size_t *at)
{
	u8 op, value;

	if (!field(dsdt, (*at)++, &op, 1))
		return -1;
	if (op == AML_ZERO || op == AML_ONE)
		return op;
	if (op < AML_BYTE || op > AML_DWORD || !field(dsdt, *at, &value, 1))
		return -1;
	*at += 1u << (op - AML_BYTE);
	return value <= ACPI_SLEEP_TYPE_MAX ? value : -1;
}

/*
 *	08 [5c] "_S5_"   12        1 to 4 bytes, whose   1 byte     PM1a   PM1b
 *	name, of root    package   number is in the 1st  elements
 */
static bool sleep_types_at(const struct acpi_table *dsdt, size_t at, u8 types[2])
{
	int type[2];
	u8 op, length, count;

	field(dsdt, at - 1 - (dsdt->data[at - 1] == '\\'), &op, 1);
	if (op != AML_NAME || !field(dsdt, at + 4, &op, 1) || op != AML_PACKAGE ||
	    !field(dsdt, at + 5, &length, 1))
		return false;
	at += 6 + (length >> 6);
	if (!field(dsdt, at++, &count, 1) || count == 0)
		return false;
	type[0] = aml_number(dsdt, &at);
	type[1] = count > 1 ? aml_number(dsdt, &at) : type[0];
	types[0] = (u8)type[0];
	types[1] = (u8)type[1];
	return type[0] >= 0 && type[1] >= 0;
}

bool acpi_s5_parse(const struct acpi_table *dsdt, u8 types[2])
{
	for (size_t at = ACPI_HEADER_SIZE + 1; at + 4 <= dsdt->len; at++)
		if (dsdt->data[at] == '_' && memcmp(dsdt->data + at, "_S5_", 4) == 0 &&
		    sleep_types_at(dsdt, at, types))
			return true;
	return false;
}
