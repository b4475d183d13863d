/*
 * Fuzzer for the ACPI parsers. The first byte chooses the kind of table, and the rest is the table.
 * It is parsed as it is, and once more with signature, length and checksum corrected, so that the
 * inside is reached, too.
 *
 * Beyond memory errors it checks that counts are kept, that lists are sorted and have no
 * duplicates, and that nodes are dense.
 *
 * The file can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined -I. tests/fuzz/acpi_fuzz.c -o acpi_fuzz
 */

#include "arch/x86_64/acpi/acpi_devices.c"
#include "arch/x86_64/acpi/acpi_devices.h"
#include "arch/x86_64/acpi/acpi_dump.c"
#include "arch/x86_64/acpi/acpi_dump.h"
#include "arch/x86_64/acpi/acpi_madt.c"
#include "arch/x86_64/acpi/acpi_madt.h"
#include "arch/x86_64/acpi/acpi_root.c"
#include "arch/x86_64/acpi/acpi_root.h"
#include "arch/x86_64/acpi/acpi_srat.c"
#include "arch/x86_64/acpi/acpi_srat.h"
#include "kernel/lib/words.c"
#include "tests/fuzz/fuzz.h"

enum { KIND_RSDP, KIND_ROOT, KIND_MADT, KIND_SRAT, KIND_SLIT, KIND_DEVICES, KIND_DUMP, KINDS };

void printk(enum log_level level, const char *fmt, ...)
{
}

static void fuzz_rsdp(const u8 *data, size_t len)
{
	struct acpi_rsdp found, rsdp;
	s64 at = acpi_rsdp_scan(data, len, &found);

	require(at == -ENOENT || (at >= 0 && (u64)at + ACPI_RSDP_V1_SIZE <= len));
	if (at >= 0)
		require(acpi_rsdp_parse(data + at, len - (size_t)at, &rsdp) == 0 &&
			rsdp.rsdt == found.rsdt && rsdp.xsdt == found.xsdt);
	acpi_rsdp_parse(data, len, &rsdp);
}

static void fuzz_root(const struct acpi_table *table)
{
	struct acpi_table inner;
	u64 sum = 0;

	for (size_t i = 0; i < acpi_root_count(table); i++)
		sum += acpi_root_entry(table, i);
	require(acpi_root_entry(table, acpi_root_count(table)) == 0);
	require(acpi_table_open(table->data, table->len, "XSDT", &inner) < 0 ||
		inner.len <= table->len);
	*(volatile u64 *)&sum = sum;
}

static size_t io_apics;

static void count_io_apic(phys_t phys, u32 gsi_base)
{
	io_apics++;
}

static void fuzz_madt(const struct acpi_table *table)
{
	const size_t max = acpi_entries_max(table);
	struct cpu_desc *cpus = malloc(max * sizeof(*cpus) + 1);
	struct acpi_madt info;
	size_t n;

	io_apics = 0;
	n = acpi_madt_parse(table, cpus, max, &info, count_io_apic);
	require(io_apics <= max);
	require(n <= max);
	for (size_t i = 1; i < n; i++)
		require(cpus[i - 1].apic_id < cpus[i].apic_id);
	if (n) {
		u32 last = cpus[n - 1].apic_id;

		require(last != 0xffffffff);
		require(cpu_list_boot_first(cpus, n, last) == n && cpus[0].apic_id == last);
	}
	require(info.nmi_lint >= -1 && info.nmi_lint <= 1);
	free(cpus);
}

static void fuzz_srat(const struct acpi_table *table)
{
	const size_t max = acpi_entries_max(table);
	struct acpi_srat srat;

	srat.mem = malloc(max * sizeof(*srat.mem) + 1);
	srat.cpu = malloc(max * sizeof(*srat.cpu) + 1);
	srat.domain = malloc(max * sizeof(*srat.domain) + 1);
	if (acpi_srat_parse(table, &srat) == 0) {
		require(srat.mem_count + srat.cpu_count <= max);
		require(srat.nodes >= 1 && srat.nodes <= srat.mem_count + srat.cpu_count);
		for (size_t i = 0; i < srat.mem_count; i++)
			require(srat.domain[acpi_srat_node(&srat, srat.mem[i].domain)] ==
					srat.mem[i].domain &&
				srat.mem[i].start < srat.mem[i].end);
		for (size_t i = 0; i < srat.cpu_count; i++) {
			node_t node = acpi_srat_cpu_node(&srat, srat.cpu[i].apic_id);

			require(srat.domain[node] == srat.cpu[i].domain);
		}
	}
	free(srat.mem);
	free(srat.cpu);
	free(srat.domain);
}

static void fuzz_slit(const struct acpi_table *table)
{
	struct acpi_slit slit;

	acpi_slit_parse(table, &slit);
	for (u32 i = 0; i < 16; i++)
		for (u32 j = 0; j < 16; j++)
			require(acpi_slit_distance(&slit, i, j) >= ACPI_DISTANCE_LOCAL);
	acpi_slit_distance(&slit, 0xffffffff, 0xffffffff);
}

static void fuzz_devices(const struct acpi_table *table)
{
	struct acpi_fadt fadt;
	struct acpi_spcr spcr;
	u8 types[2];
	u32 buses;

	acpi_hpet_base(table);
	acpi_fadt_parse(table, &fadt);
	require(fadt.pm_timer_port <= 0xffff);
	acpi_spcr_parse(table, &spcr);
	require(acpi_mcfg_base(table, &buses) == 0 || (buses > 0 && buses <= 256));
	if (acpi_s5_parse(table, types))
		require(types[0] <= ACPI_SLEEP_TYPE_MAX && types[1] <= ACPI_SLEEP_TYPE_MAX);
}

/* Parse the input as text. No byte may be made up, and tables follow each other in the room. */
static void fuzz_dump(const u8 *data, size_t len)
{
	u8 *room = malloc(len / 3 + 1);
	struct acpi_dump dump = {.at = (const char *)data,
				 .end = (const char *)data + len,
				 .room = room,
				 .left = len / 3};
	struct acpi_table table;
	const u8 *next = room;

	while (acpi_dump_next(&dump, &table)) {
		require(table.data == next && table.len <= len / 3);
		next += table.len;
	}
	require(next == dump.room && (size_t)(next - room) + dump.left == len / 3);
	free(room);
}

static void fuzz_table(unsigned kind, const struct acpi_table *table)
{
	static void (*const fuzz[KINDS])(const struct acpi_table *) = {
		[KIND_ROOT] = fuzz_root, [KIND_MADT] = fuzz_madt,       [KIND_SRAT] = fuzz_srat,
		[KIND_SLIT] = fuzz_slit, [KIND_DEVICES] = fuzz_devices,
	};

	fuzz[kind](table);
}

/* Correct the header, open the table as the kernel does, and look inside. */
static void fuzz_whole(unsigned kind, u8 *copy, size_t len)
{
	struct acpi_table table;
	u8 sum = 0;

	memcpy(copy, "FUZZ", 4);
	memcpy(copy + 4, &(u32){(u32)len}, 4);
	copy[9] = 0;
	for (size_t i = 0; i < len; i++)
		sum = (u8)(sum + copy[i]);
	copy[9] = (u8)-sum;
	require(acpi_table_open(copy, len, "FUZZ", &table) == 0 && table.len == len);
	fuzz_table(kind, &table);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	const unsigned kind = size ? data[0] % KINDS : 0;
	struct acpi_table table;
	u8 *copy;

	if (size < 1)
		return 0;
	size--;
	copy = exact_copy(data + 1, size);
	if (kind == KIND_RSDP) {
		fuzz_rsdp(copy, size);
	} else if (kind == KIND_DUMP) {
		fuzz_dump(copy, size);
	} else if (acpi_header_length(copy, size)) {
		if (acpi_table_open(copy, size, "APIC", &table) != -EINVAL)
			fuzz_table(kind, &table);
		fuzz_whole(kind, copy, size);
	}
	free(copy);
	return 0;
}
