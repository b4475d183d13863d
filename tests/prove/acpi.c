/* ACPI tables: roots, entries, sorting, CPUs, nodes, devices. */
#include "tests/prove/prove.h"

#include "arch/x86_64/acpi/acpi_devices.c"
#include "arch/x86_64/acpi/acpi_root.c"

/* Stands in for acpi_sort(), which has a harness of its own: two records at most. */
#define SORT(type)                                                                                 \
	if (order->size == sizeof(type) && order->key(order->base) > order->key(second)) {         \
		const type first = *(type *)order->base;                                           \
                                                                                                   \
		*(type *)order->base = *(type *)second;                                            \
		*(type *)second = first;                                                           \
	}
static void sort_two(const struct acpi_order *order, size_t count)
{
	void *second = (u8 *)order->base + order->size;

	prove(count <= 2);
	if (count < 2)
		return;
	SORT(u32);
	SORT(struct cpu_desc);
	SORT(struct acpi_mem_affinity);
	SORT(struct acpi_cpu_affinity);
}

/*
 * Stands in for acpi_walk_next(), which has a harness of its own: at most two entries. Of each only
 * the bytes that a reader of its type may read exist.
 */
static const u8 *any_entry(struct acpi_walk *walk)
{
	static struct {
		u8 byte[40];
	} room;
	const u8 type = ANY_BELOW(u8, 11);
	u8 *entry;

	if (walk->at > 2)
		walk->at = 0;
	assume(type < walk->types && walk->sizes[type]);
	if (walk->at++ == 2 || ANY_BOOL)
		return NULL;
	room = ANY(typeof(room));
	entry = room.byte + sizeof(room) - walk->sizes[type];
	entry[0] = type;
	return entry;
}

MOVER(move_cpus, struct cpu_desc)
#define memmove        move_cpus
#define acpi_sort      sort_two
#define acpi_walk_next any_entry
#include "arch/x86_64/acpi/acpi_cpu_order.c"
#include "arch/x86_64/acpi/acpi_madt.c"
#include "arch/x86_64/acpi/acpi_srat.c"
#undef acpi_sort
#undef acpi_walk_next
#undef memmove

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

PROVE(acpi_madt, "4", "an-empty-socket-is-a-cpu", "up to 2 entries of any contents")
{
	static const struct acpi_table table;
	struct cpu_desc cpus[3];
	struct acpi_madt info;
	const u32 boot = ANY(u32);
	size_t n = acpi_madt_parse(&table, cpus, 2, &info, count_io_apic);

	prove(n + io_apics + info.disabled + info.ignored <= 2);
	prove(n < 2 || cpus[0].apic_id < cpus[1].apic_id);
	prove(n < 1 || (cpus[n - 1].apic_id != ~0u && cpus[n - 1].enabled));
	prove(info.nmi_lint >= -1 && info.nmi_lint <= 1);
	n = cpu_list_boot_first(cpus, n, boot);
	prove(n >= 1 && n <= 3 && cpus[0].apic_id == boot && cpus[0].enabled);
	prove(n < 3 || cpus[1].apic_id < cpus[2].apic_id);
}

PROVE(acpi_srat, "5", "ranges-of-two-nodes-may-overlap", "up to 2 entries of any contents")
{
	ANY_BYTES(bytes, len, ACPI_HEADER_SIZE);
	const struct acpi_table table = {bytes, len};
	struct acpi_mem_affinity mem[2];
	struct acpi_cpu_affinity cpu[2];
	u32 domain[2];
	struct acpi_srat srat = {.mem = mem, .cpu = cpu, .domain = domain};
	const u64 addr = ANY(u64);

	assume(len == ACPI_HEADER_SIZE);
	if (acpi_srat_parse(&table, &srat) != 0)
		return;
	prove(srat.mem_count + srat.cpu_count <= 2 && srat.nodes >= 1);
	prove(srat.nodes <= srat.mem_count + srat.cpu_count);
	prove(srat.nodes < 2 || domain[0] < domain[1]);
	if (srat.mem_count == 2) {
		prove(mem[0].start <= mem[1].start);
		prove(addr < mem[0].start || addr >= mem[0].end || addr < mem[1].start ||
		      addr >= mem[1].end || mem[0].domain == mem[1].domain);
	}
	if (srat.mem_count)
		prove(mem[0].start < mem[0].end &&
		      domain[acpi_srat_node(&srat, mem[0].domain)] == mem[0].domain);
	for (size_t i = 0; i < srat.cpu_count; i++)
		prove(domain[acpi_srat_cpu_node(&srat, cpu[i].apic_id)] == cpu[i].domain);
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

PROVE(acpi_devices, "4", "a-field-behind-the-table", "tables of up to 64 bytes")
{
	ANY_TABLE(table, 64);
	struct acpi_spcr spcr;
	u32 buses;

	prove(acpi_hpet_base(&table) == 0 || table.len >= HPET_ADDRESS + 12);
	prove(acpi_spcr_parse(&table, &spcr) == -EINVAL || spcr.base.addr != 0);
	prove(acpi_spcr_bits(&spcr) <= 115200);
	prove(acpi_mcfg_base(&table, &buses) == 0 || (buses > 0 && buses <= 256));
	prove(!acpi_dmar_opts_out(&table) || table.len > DMAR_FLAGS);
}

PROVE(acpi_fadt, "4", "a-timer-port-of-any-length", "tables of up to 276 bytes")
{
	ANY_TABLE(table, 276);
	struct acpi_fadt fadt;
	const size_t end = table.len;

	if (acpi_fadt_parse(&table, &fadt) != 0) {
		prove(end < FADT_FLAGS + 4 && !fadt.pm_timer_port && !fadt.reset_supported);
		return;
	}
	prove(end >= FADT_FLAGS + 4);
	prove(!fadt.reset_supported || end > FADT_RESET_VALUE);
	prove(fadt.pm_timer_port == 0 || end > FADT_PM_TIMER_LEN);
	prove(end >= FADT_X_PM_TIMER + 12 || table.data[FADT_PM_TIMER_LEN] == 4 ||
	      fadt.pm_timer_port == 0);
	prove(!(table.data[FADT_FLAGS + 2] >> 4 & 1) ||
	      !(fadt.pm1_control[0] | fadt.pm1_control[1]));
	prove(end >= FADT_X_DSDT + 8 || fadt.dsdt <= ~0u);
	prove(fadt.sleep_control.addr == 0 || end >= FADT_SLEEP_CONTROL + 12);
}

PROVE(acpi_s5, "24", "any-number-is-a-sleep-type", "tables of up to 56 bytes")
{
	ANY_TABLE(table, 56);
	u8 types[2];

	if (acpi_s5_parse(&table, types))
		prove(types[0] <= ACPI_SLEEP_TYPE_MAX && types[1] <= ACPI_SLEEP_TYPE_MAX);
}

PROVE(cpu_order, "4", "738-siblings-before-cores", "up to 3 CPUs, any IDs and nodes")
{
	struct cpu_desc list[3];
	const size_t count = 1 + ANY_BELOW(size_t, 3);
	const unsigned shift = ANY_BELOW(unsigned, 3);
	const u32 boot = list[0].apic_id;

	for (size_t n = 0; n < 3; n++)
		list[n] = (struct cpu_desc){.apic_id = list[n].apic_id,
					    .node = ANY_BELOW(u32, 1u << 23),
					    .enabled = ANY_BOOL};
	assume(list[1].apic_id < list[2].apic_id && list[1].apic_id != boot &&
	       list[2].apic_id != boot);
	acpi_order_cpus(list, count, shift, ANY_BOOL);
	prove(list[0].apic_id == boot);
	prove(count < 3 || list[1].enabled >= list[2].enabled);
	prove(count < 3 || list[1].enabled != list[2].enabled || list[1].thread <= list[2].thread);
}
