/*
 * The monitor's `machine text`: firmware's map of memory, the boot CPU's CPUID and the ACPI tables
 * that are used, as Linux, cpuid and acpidump print them. The console is then a text from which the
 * hosted kernel boots as this machine (tests/host/replay.h).
 *
 * A serial line may lose or change bytes, so each line ends with a sum (machine_text.h). The DSDT
 * says nothing that a replay reads. Ranges, leaves and bytes of a table are bounded.
 *
 * Names: e820_print_type() and efi_md_typeattr_format() of Linux 6.x.
 */
#include "arch/x86_64/machine_text.h"

#include "arch/x86_64/acpi/acpi_find.h"
#include "arch/x86_64/cpu/cpu.h"
#include "boot/boot_info.h"
#include "kernel/console/command.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum { TABLE_BYTES = 256 * 1024, LEAVES = 64, SUBLEAVES = 8, ROW = 16 };

static unsigned number; /* of the next line */

static __printf(1, 2) void line(const char *fmt, ...)
{
	char text[192];

	FORMAT_ARGS(text, sizeof(text), fmt);
	print("%s  ~%04x\n", text, machine_text_sum(number++, text, strlen(text)));
}

static void print_efi(size_t i, const struct mem_range *range)
{
	static const char *const types[] = {"",
					    "Reserved",
					    "Loader Code",
					    "Loader Data",
					    "Boot Code",
					    "Boot Data",
					    "Runtime Code",
					    "Runtime Data",
					    "Conventional Memory",
					    "Unusable",
					    "ACPI Reclaim",
					    "ACPI NVS",
					    "MMIO",
					    "MMIO Port",
					    "PAL Code",
					    "Persistent",
					    "Unaccepted"};
	static const char *const attributes[] = {"UC", "WC", "WT", "WB", "UCE", [12] = "WP",
						 "RP", "XP", "NV", "MR", "RO",  "SP"};
	const char *type = "Unknown";
	char text[64] = "";
	int len = 0;

	if (range->efi_type < ARRAY_LEN(types))
		type = types[range->efi_type];
	for (u32 bit = 0; bit < ARRAY_LEN(attributes); bit++)
		if (attributes[bit] && range->efi_attributes >> bit & 1)
			len += format(text + len, sizeof(text) - (size_t)len, "%s|",
				      attributes[bit]);
	line("efi: mem%02zu: [%s|%s] range=[0x%016llx-0x%016llx]", i, type, text, range->start,
	     range->end - 1);
}

/* Firmware's map also shows what the loader itself put into RAM. */
static void print_ranges(const struct boot_info *info)
{
	bool efi = false;

	for (size_t i = 0; i < info->ranges; i++)
		efi |= info->range[i].efi_type != 0;
	for (size_t i = 0; i < info->ranges; i++) {
		const struct mem_range *range = &info->range[i];

		if (efi && range->efi_type)
			print_efi(i, range);
		else if (!efi && range->kind != MEM_LOADER)
			line("BIOS-e820: [mem 0x%016llx-0x%016llx] %s", range->start,
			     range->end - 1, range->kind == MEM_RAM ? "usable" : "reserved");
	}
}

static void print_leaf(u32 leaf)
{
	const struct cpuid first = cpuid(leaf, 0);

	for (u32 sub = 0; sub < SUBLEAVES; sub++) {
		const struct cpuid r = cpuid(leaf, sub);

		if (!(r.eax | r.ebx | r.ecx | r.edx) || (sub && memcmp(&r, &first, sizeof(r)) == 0))
			return;
		line("   0x%08x 0x%02x: eax=0x%08x ebx=0x%08x ecx=0x%08x edx=0x%08x", leaf, sub,
		     r.eax, r.ebx, r.ecx, r.edx);
	}
}

static void print_table(const struct acpi_table *table)
{
	if (table->len > TABLE_BYTES) {
		line("%.4s has %zu bytes and is left out", (const char *)table->data, table->len);
		return;
	}
	line("%.4s @ 0x%016llx", (const char *)table->data, 0ULL);
	for (size_t at = 0; at < table->len; at += ROW) {
		char text[3 * ROW + 1];

		for (size_t i = 0; i < MIN((size_t)ROW, table->len - at); i++)
			format(text + 3 * i, 4, " %02X", table->data[at + i]);
		line("    %04zX:%s", at, text);
	}
}

static int cmd_text(const struct words *words)
{
	number = 0;
	print_ranges(&boot_info);
	for (u32 leaf = 0; leaf < 2 * LEAVES; leaf++)
		print_leaf(leaf < LEAVES ? leaf : 0x80000000 + leaf - LEAVES);
	for (unsigned kind = 0; kind < ACPI_KINDS; kind++)
		if (kind != ACPI_DSDT && acpi_get(kind))
			print_table(acpi_get(kind));
	line(MACHINE_TEXT_END);
	return 0;
}

COMMAND(machine text, .help = "a text from which `make test WHAT=replay` boots as this machine",
	.run = cmd_text);
