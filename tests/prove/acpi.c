/* ACPI tables: roots, entries, sorting, CPUs, nodes, devices, the text of acpidump. */
#include "tests/prove/prove.h"

#include "arch/x86_64/acpi/acpi_devices.c"
#include "arch/x86_64/acpi/acpi_dump.c"
#include "arch/x86_64/acpi/acpi_root.c"
#include "kernel/lib/words.c"

/* Stands in for acpi_sort(), which has a harness of its own, for up to 3 records. */
static void sort_few(const struct acpi_order *order, size_t count)
{
	static const u8 firsts[] = {0, 1, 0};

	prove(count <= 3);
	for (unsigned step = 0; step < 3; step++) {
		u8 *first = (u8 *)order->base + firsts[step] * order->size;
		u8 *second = first + order->size;

		if (firsts[step] + 1u >= count || order->key(first) <= order->key(second))
			continue;
		for (size_t i = 0; i < order->size; i++) {
			const u8 byte = first[i];

			first[i] = second[i];
			second[i] = byte;
		}
	}
}

#define acpi_sort sort_few
#include "arch/x86_64/acpi/acpi_cpu_order.c"
#include "arch/x86_64/acpi/acpi_madt.c"
#include "arch/x86_64/acpi/acpi_srat.c"
#undef acpi_sort

#define ANY_TABLE(name, most)                                                                      \
	ANY_BYTES(name##_bytes, name##_len, most);                                                 \
	const struct acpi_table name = {name##_bytes, name##_len}

PROVE(acpi_rsdp, "38", "rsdp-of-a-length-that-is-not-there", "structures of up to 37 bytes")
{
	struct acpi_rsdp rsdp;
	ANY_BYTES(area, len, 37);
	const int err = acpi_rsdp_parse(area, len, &rsdp);

	prove(err == -EINVAL || (len >= ACPI_RSDP_V1_SIZE && (rsdp.rsdt || rsdp.xsdt)));
	prove(rsdp.xsdt == 0 || (len >= ACPI_RSDP_V2_SIZE && area[15] >= 2));
}

PROVE(acpi_rsdp_scan, "38", "an-area-shorter-than-its-last-step", "areas of up to 37 bytes")
{
	struct acpi_rsdp rsdp;
	ANY_BYTES(area, len, 37);
	const s64 at = acpi_rsdp_scan(area, len, &rsdp);

	prove(at == -ENOENT || at == 0 || (at == 16 && len >= 16 + ACPI_RSDP_V1_SIZE));
}

PROVE(acpi_root, "60", "table-longer-than-what-is-mapped", "tables of up to 56 bytes")
{
	ANY_BYTES(data, len, 56);
	const size_t index = ANY(size_t);
	struct acpi_table table;
	const int err = acpi_table_open(data, len, "XSDT", &table);

	prove(err == 0 || err == -EINVAL || err == -EIO);
	prove(err == -EINVAL
		      ? !table.data
		      : table.data == data && table.len <= len && table.len >= ACPI_HEADER_SIZE);
	if (err == -EINVAL)
		return;
	prove(acpi_root_count(&table) == (table.len - ACPI_HEADER_SIZE) / 8);
	prove(acpi_root_entry(&table, index) == 0 || index < acpi_root_count(&table));
}

PROVE(acpi_walk, "22", "192-entry-longer-than-the-table",
      "tables of up to 40 bytes, from any byte on")
{
	ANY_TABLE(table, 40);
	u8 sizes[4];
	struct acpi_walk walk = {&table, ANY(size_t), sizes, ARRAY_LEN(sizes)};
	const u8 *entry;

	assume(walk.at <= table.len);
	entry = acpi_walk_next(&walk);
	prove(walk.at <= table.len);
	if (entry) {
		prove(entry >= table.data && entry + entry[1] == table.data + walk.at);
		prove(entry[0] < ARRAY_LEN(sizes) && entry[1] >= sizes[entry[0]]);
	}
}

static u64 key_of(const void *record)
{
	return *(const u16 *)record;
}

PROVE(acpi_sort, "5", "a-child-is-not-compared", "up to 3 records, any keys")
{
	u16 record[3], before[3];
	const size_t count = ANY_BELOW(size_t, 4), i = ANY_BELOW(size_t, 2);
	const struct acpi_order order = {record, sizeof(record[0]), key_of};
	const u16 key = ANY(u16);
	unsigned was = 0, is = 0;
	size_t found;

	memcpy(before, record, sizeof(record));
	acpi_sort(&order, count);
	for (size_t n = 0; n < count; n++) {
		was += before[n] == key;
		is += record[n] == key;
	}
	prove(was == is);
	if (i + 1 < count)
		prove(record[i] <= record[i + 1]);
	found = acpi_search(&order, count, key);
	if (count) {
		prove(found < count && (record[found] <= key || found == 0));
		prove(found + 1 == count || record[found + 1] > key);
	}
}

static size_t io_apics;

static void count_io_apic(phys_t phys, u32 gsi_base)
{
	io_apics++;
}

PROVE(acpi_madt, "26", "a-cpu-that-is-off-is-started", "tables of up to 64 bytes")
{
	ANY_TABLE(table, 64);
	struct cpu_desc cpus[9];
	struct acpi_madt info;
	size_t n;

	assume(table.len >= ACPI_HEADER_SIZE);
	n = acpi_madt_parse(&table, cpus, acpi_entries_max(&table), &info, count_io_apic);
	prove(n <= 2 && n <= acpi_entries_max(&table) && io_apics <= 1);
	prove(n < 2 || cpus[0].apic_id < cpus[1].apic_id);
	prove(n < 1 || (cpus[n - 1].apic_id != 0xffffffff && cpus[0].enabled));
	prove(info.nmi_lint >= -1 && info.nmi_lint <= 1);
	if (n == 1 && table.data[44] == MADT_LOCAL_APIC)
		prove(table.data[48] & 1 || table.data[52] & 1);
	prove(cpu_list_boot_first(cpus, n, 7) <= n + 1 && cpus[0].apic_id == 7);
}

PROVE(acpi_srat, "26", "ranges-of-two-nodes-may-overlap", "tables of up to 128 bytes")
{
	ANY_TABLE(table, 128);
	struct acpi_mem_affinity mem[16];
	struct acpi_cpu_affinity cpu[16];
	u32 domain[16];
	struct acpi_srat srat = {.mem = mem, .cpu = cpu, .domain = domain};
	const u64 addr = ANY(u64);

	assume(table.len >= SRAT_ENTRIES);
	/* entries of one kind, two at most: each has 40 bytes */
	assume(table.data[SRAT_ENTRIES] == SRAT_MEMORY);
	if (acpi_srat_parse(&table, &srat) != 0)
		return;
	prove(srat.mem_count + srat.cpu_count <= 4 && srat.nodes >= 1);
	prove(srat.nodes <= srat.mem_count + srat.cpu_count);
	if (srat.mem_count == 2) {
		prove(mem[0].start <= mem[1].start);
		prove(!(addr >= mem[0].start && addr < mem[0].end && addr >= mem[1].start &&
			addr < mem[1].end) ||
		      mem[0].domain == mem[1].domain);
	}
	if (srat.mem_count)
		prove(mem[0].start < mem[0].end &&
		      domain[acpi_srat_node(&srat, mem[0].domain)] == mem[0].domain);
}

PROVE(acpi_slit, "18", "a-matrix-larger-than-its-table", "tables of up to 60 bytes")
{
	ANY_TABLE(table, 60);
	const u32 from = ANY(u32), to = ANY(u32);
	struct acpi_slit slit;
	const int err = acpi_slit_parse(&table, &slit);
	const unsigned distance = acpi_slit_distance(&slit, from, to);

	prove(err == 0 ? slit.size >= 1 && slit.size <= 4 : slit.size == 0);
	prove(from == to ? distance == ACPI_DISTANCE_LOCAL : distance >= ACPI_DISTANCE_LOCAL);
}

PROVE(acpi_devices, "20", "a-field-behind-the-table", "tables of up to 268 bytes")
{
	ANY_TABLE(table, 268);
	struct acpi_fadt fadt;
	struct acpi_spcr spcr;
	u32 buses;

	acpi_hpet_base(&table);
	prove(acpi_fadt_parse(&table, &fadt) == (table.len >= FADT_FLAGS + 4 ? 0 : -EINVAL));
	prove(fadt.pm_timer_port <= 0xffff);
	prove(acpi_spcr_parse(&table, &spcr) == -EINVAL || spcr.base.addr != 0);
	prove(acpi_spcr_bits(&spcr) <= 115200);
	prove(acpi_mcfg_base(&table, &buses) == 0 || (buses > 0 && buses <= 256));
	acpi_dmar_opts_out(&table);
}

PROVE(acpi_s5, "30", "any-number-is-a-sleep-type", "tables of up to 60 bytes")
{
	ANY_TABLE(table, 60);
	u8 types[2];

	if (acpi_s5_parse(&table, types))
		prove(types[0] <= ACPI_SLEEP_TYPE_MAX && types[1] <= ACPI_SLEEP_TYPE_MAX);
}

PROVE(acpi_dump, "44", "78-dump-read-past-its-end", "texts of up to 32 bytes")
{
	u8 room[10];
	ANY_BYTES(text, len, 32);
	const size_t left = len / 3;
	struct acpi_dump dump = {.at = (const char *)text,
				 .end = (const char *)text + len,
				 .room = room,
				 .left = left};
	struct acpi_table table;

	if (acpi_dump_next(&dump, &table)) {
		prove(table.data == room && table.len <= left);
		prove(dump.room == room + table.len && dump.left + table.len == left);
	}
	prove(dump.at >= (const char *)text && dump.at <= dump.end);
}

PROVE(cpu_order, "26", "738-siblings-before-cores", "up to 3 CPUs, any IDs and nodes")
{
	struct cpu_desc list[3] = {0};
	const size_t count = 1 + ANY_BELOW(size_t, 3), i = ANY_BELOW(size_t, 3);
	const unsigned shift = ANY_BELOW(unsigned, 3);
	u32 boot;

	for (size_t n = 0; n < 3; n++) {
		list[n].apic_id = ANY(u32);
		list[n].node = ANY_BELOW(u32, 1u << 23);
		list[n].enabled = ANY_BOOL;
		assume(n < 2 || list[n - 1].apic_id < list[n].apic_id);
	}
	boot = list[0].apic_id;
	for (size_t n = 1; n < 3; n++)
		assume(list[n].apic_id != boot);
	acpi_order_cpus(list, count, shift, ANY_BOOL);
	prove(list[0].apic_id == boot);
	if (i >= 1 && i + 1 < count) {
		prove(list[i].enabled >= list[i + 1].enabled);
		prove(list[i].enabled != list[i + 1].enabled ||
		      list[i].thread <= list[i + 1].thread);
	}
}
