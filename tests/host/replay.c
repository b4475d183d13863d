/*
 * The hosted machine in the shape of another one; see replay.h. Its RAM is a file with holes, which
 * takes memory of the host only where it is written to, so a machine of terabytes fits anywhere.
 */
#include <stdio.h>

#include "arch/x86_64/acpi/acpi_dump.h"
#include "arch/x86_64/acpi/acpi_machine.h"
#include "arch/x86_64/acpi/acpi_madt.h"
#include "arch/x86_64/acpi/acpi_root.h"
#include "tests/host/host.h"
#include "tests/host/replay.h"

enum { FILE_MAX = 64 * 1024 * 1024 };

static struct replay_text text;
static struct acpi_table madt, srat, slit;
static size_t cpus_described;

static void read_file(const char *path)
{
	FILE *file = fopen(path, "r");
	char *room = malloc(FILE_MAX);

	if (!file || !room)
		host_die("-r: \"%s\" cannot be read", path);
	text = (struct replay_text){room, fread(room, 1, FILE_MAX, file)};
	if (!feof(file))
		host_die("-r: \"%s\" has more than %u MiB", path, FILE_MAX >> 20);
	fclose(file);
	/* cppcheck-suppress memleak; `text` keeps it */
}

static void keep(const struct acpi_table *raw, const char *signature, struct acpi_table *out)
{
	int err;

	if (out->data || !acpi_has_signature(raw->data, raw->len, signature))
		return;
	err = acpi_table_open(raw->data, raw->len, signature, out);
	/* as acpi_find.c: a MADT is used in spite of a wrong checksum */
	if (err == 0 || (err == -EIO && out == &madt))
		return;
	*out = (struct acpi_table){0};
	pr_warn("ACPI: %s is damaged and not used", signature);
}

static void read_tables(void)
{
	struct acpi_dump dump = {.at = text.text, .end = text.text + text.len};
	struct acpi_table raw;

	dump.left = text.len / 3 + 1;
	dump.room = malloc(dump.left);
	if (!dump.room)
		host_die("-r: no memory for the tables");
	while (acpi_dump_next(&dump, &raw)) {
		keep(&raw, "APIC", &madt);
		keep(&raw, "SRAT", &srat);
		keep(&raw, "SLIT", &slit);
	}
}

void replay_load(const char *path, struct boot_info *info, phys_t *end)
{
	size_t bad;

	read_file(path);
	if (!replay_is_whole(&text, &bad))
		host_die("-r: \"%s\", line %zu: the machine's text was damaged on its way", path,
			 bad);
	if (replay_ranges(&text, info) == 0)
		host_die("-r: \"%s\" has no line that describes memory", path);
	*end = 0;
	for (size_t i = 0; i < info->ranges; i++)
		if (info->range[i].kind == MEM_RAM || info->range[i].kind == MEM_LOADER)
			*end = MAX(*end, info->range[i].end);
	if (*end == 0)
		host_die("-r: \"%s\" describes no usable RAM", path);
	if (*end > MIN(DIRECT_MAP_SIZE, PHYS_LIMIT))
		host_die("-r: \"%s\" has RAM up to 0x%llx, this build reaches 0x%llx", path, *end,
			 MIN(DIRECT_MAP_SIZE, PHYS_LIMIT));
	*end = ALIGN_UP(*end, PAGE_SIZE);
}

static void one_cpu(void)
{
	pr_warn("no MADT: one CPU is used");
	cpu_count = 1;
	cpus_described = 1;
}

static void read_cpus(void)
{
	struct cpu_desc *list;
	struct acpi_madt info;
	u32 boot;

	if (!madt.data) {
		one_cpu();
		return;
	}
	list = acpi_machine_cpus(&madt, &cpus_described, &info, NULL);
	if (!replay_boot_apic_id(&text, &boot))
		boot = cpus_described ? list[0].apic_id : 0;
	cpus_described = cpu_list_boot_first(list, cpus_described, boot);
	cpu_descs = list;
	cpu_count = (cpu_t)cpus_described;
}

void replay_firmware(cpu_t max)
{
	read_tables();
	read_cpus();
	acpi_machine_nodes(srat.data ? &srat : NULL, slit.data ? &slit : NULL);
	acpi_machine_order_cpus(replay_cpuid, &text, max);
}

void replay_describe(char *line, size_t size)
{
	const struct topology t = topology_read(replay_cpuid, &text);

	if (t.package_shift)
		format(line, size, "%zu CPUs described, APIC IDs: core %u.., package %u.. (%s)",
		       cpus_described, t.core_shift, t.package_shift, t.source);
	else
		format(line, size, "%zu CPUs described, no topology", cpus_described);
}
