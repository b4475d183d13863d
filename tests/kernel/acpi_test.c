/*
 * ACPI parsers, on tables built here byte by byte.
 *
 * Every table is parsed from the very end of a buffer, so that under the address sanitizer one byte too far is caught.
 */
#include "arch/x86_64/acpi_tables.h"
#include "kernel/string.h"
#include "kernel/test.h"

enum { ROOM = 8192, LIST = 400 };

/* A table under construction. */
struct build {
	size_t len;
	u8 bytes[ROOM];
};

static struct build build;
static u8 place[ROOM];
static struct cpu_desc cpus[LIST];
static struct acpi_mem_affinity mems[LIST];
static struct acpi_cpu_affinity affinities[LIST];
static u32 domains[2 * LIST];

static void put(u64 value, size_t size)
{
	memcpy(build.bytes + build.len, &value, size);
	build.len += size;
}

static void poke(size_t at, u64 value, size_t size)
{
	memcpy(build.bytes + at, &value, size);
}

static void zeros(size_t n)
{
	memset(build.bytes + build.len, 0, n);
	build.len += n;
}

static void begin(const char *signature, u8 revision)
{
	build.len = 0;
	zeros(ACPI_HEADER_SIZE);
	memcpy(build.bytes, signature, 4);
	build.bytes[8] = revision;
}

static u8 sum(const u8 *bytes, size_t len)
{
	u8 n = 0;

	while (len--)
		n = (u8)(n + *bytes++);
	return n;
}

/* State the length, make the checksum right. */
static void finish(void)
{
	poke(4, build.len, 4);
	build.bytes[9] = 0;
	build.bytes[9] = (u8)-sum(build.bytes, build.len);
}

/* The first `len` bytes of what was built, at the very end of the other buffer. */
static const u8 *at_end(size_t len)
{
	return memcpy(place + sizeof(place) - len, build.bytes, len);
}

static struct acpi_table view(size_t len)
{
	return (struct acpi_table){.data = at_end(len), .len = len};
}

static void begin_madt(void)
{
	begin("APIC", 4);
	put(0xfee00000, 4);
	put(1, 4);
}

static void madt_local(u8 id, u32 flags)
{
	put(0, 1), put(8, 1), put(id, 1), put(id, 1), put(flags, 4);
}

static void madt_x2(u32 id, u32 flags)
{
	put(9, 1), put(16, 1), put(0, 2), put(id, 4), put(flags, 4), put(id, 4);
}

static size_t parse_madt(struct acpi_madt *info)
{
	struct acpi_table table;

	finish();
	table = view(build.len);
	return acpi_madt_parse(&table, cpus, acpi_madt_cpus_max(&table), info);
}

/* ---- RSDP ------------------------------------------------------------------------------------------------------ */

static void build_rsdp(u8 revision)
{
	build.len = 0;
	zeros(ACPI_RSDP_V2_SIZE);
	memcpy(build.bytes, "RSD PTR ", 8);
	build.bytes[15] = revision;
	poke(16, 0x1000, 4);
	build.bytes[8] = (u8)-sum(build.bytes, ACPI_RSDP_V1_SIZE);
	if (revision < 2)
		return;
	poke(20, ACPI_RSDP_V2_SIZE, 4);
	poke(24, 0x123456789000, 8);
	build.bytes[32] = (u8)-sum(build.bytes, ACPI_RSDP_V2_SIZE);
}

TEST(acpi_rsdp, both_revisions_are_read)
{
	struct acpi_rsdp rsdp;

	build_rsdp(0);
	EXPECT_EQ(acpi_rsdp_parse(at_end(20), 20, &rsdp), 0);
	EXPECT_EQ(rsdp.rsdt, 0x1000);
	EXPECT_EQ(rsdp.xsdt, 0);
	build_rsdp(2);
	EXPECT_EQ(acpi_rsdp_parse(at_end(36), 36, &rsdp), 0);
	EXPECT_EQ(rsdp.xsdt, 0x123456789000);
	EXPECT_EQ(rsdp.rsdt, 0x1000);
}

TEST(acpi_rsdp, truncated_at_every_length)
{
	struct acpi_rsdp rsdp;

	build_rsdp(2);
	for (size_t len = 0; len <= ACPI_RSDP_V2_SIZE; len++) {
		int err = acpi_rsdp_parse(at_end(len), len, &rsdp);

		EXPECT_EQ(err == 0, len >= ACPI_RSDP_V1_SIZE);
		EXPECT_EQ(rsdp.xsdt != 0, len >= ACPI_RSDP_V2_SIZE);
	}
}

TEST(acpi_rsdp, any_wrong_byte_is_noticed)
{
	struct acpi_rsdp rsdp;

	for (size_t i = 0; i < ACPI_RSDP_V1_SIZE; i++) {
		build_rsdp(0);
		build.bytes[i] ^= 0x40;
		EXPECT(acpi_rsdp_parse(at_end(20), 20, &rsdp) < 0);
	}
}

TEST(acpi_rsdp, bad_extended_checksum_leaves_the_rsdt)
{
	struct acpi_rsdp rsdp;

	build_rsdp(2);
	build.bytes[24]++;
	EXPECT_EQ(acpi_rsdp_parse(at_end(36), 36, &rsdp), 0);
	EXPECT_EQ(rsdp.xsdt, 0);
	EXPECT_EQ(rsdp.rsdt, 0x1000);
	build_rsdp(2);
	poke(20, 0xffffffff, 4); /* length beyond the bytes at hand */
	EXPECT_EQ(acpi_rsdp_parse(at_end(36), 36, &rsdp), 0);
	EXPECT_EQ(rsdp.xsdt, 0);
}

TEST(acpi_rsdp, scan_finds_the_first_valid_on_a_border)
{
	static u8 area[256];

	memset(area, 0, sizeof(area));
	build_rsdp(0);
	memcpy(area + 24, build.bytes, 20); /* not on a border */
	EXPECT_EQ(acpi_rsdp_scan(area, sizeof(area)), (s64)-ENOENT);
	memcpy(area + 64, build.bytes, 20);
	area[64 + 9] ^= 1; /* checksum */
	memcpy(area + 128, build.bytes, 20);
	EXPECT_EQ(acpi_rsdp_scan(area, sizeof(area)), 128);
	EXPECT_EQ(acpi_rsdp_scan(area, 147), (s64)-ENOENT); /* cut off */
}

/* ---- headers and roots ----------------------------------------------------------------------------------------- */

TEST(acpi_table, header_decides_what_may_be_read)
{
	struct acpi_table table;

	begin("HPET", 1);
	zeros(20);
	finish();
	for (size_t len = 0; len < build.len; len++)
		EXPECT_EQ(acpi_table_open(at_end(len), len, "HPET", &table), -EINVAL);
	EXPECT_EQ(acpi_table_open(at_end(build.len), build.len, "HPET", &table), 0);
	EXPECT_EQ(table.len, 56);
	EXPECT_EQ(acpi_table_open(at_end(build.len), build.len, "APIC", &table), -EINVAL);
	build.bytes[50] = 1;
	EXPECT_EQ(acpi_table_open(at_end(build.len), build.len, "HPET", &table), -EIO);
	EXPECT(table.data != NULL);
	poke(4, 35, 4);
	EXPECT_EQ(acpi_table_open(at_end(build.len), build.len, "HPET", &table), -EINVAL);
	EXPECT(table.data == NULL);
}

TEST(acpi_table, roots_hold_whole_pointers)
{
	struct acpi_table root;

	begin("XSDT", 1);
	put(0x1122334455667788, 8);
	put(0xabcd, 8);
	zeros(7); /* not a pointer */
	finish();
	REQUIRE(acpi_table_open(at_end(build.len), build.len, "XSDT", &root) == 0);
	EXPECT_EQ(acpi_root_count(&root), 2);
	EXPECT_EQ(acpi_root_entry(&root, 0), 0x1122334455667788);
	EXPECT_EQ(acpi_root_entry(&root, 1), 0xabcd);
	EXPECT_EQ(acpi_root_entry(&root, 2), 0);

	begin("RSDT", 1);
	put(0xfffffff0, 4);
	zeros(3);
	finish();
	REQUIRE(acpi_table_open(at_end(build.len), build.len, "RSDT", &root) == 0);
	EXPECT_EQ(acpi_root_count(&root), 1);
	EXPECT_EQ(acpi_root_entry(&root, 0), 0xfffffff0);
}

/* ---- MADT ------------------------------------------------------------------------------------------------------ */

TEST(acpi_madt, only_enabled_cpus_with_possible_ids)
{
	struct acpi_madt info;

	begin_madt();
	madt_local(4, 1);
	madt_local(0, 1);
	madt_local(2, 0);          /* disabled */
	madt_local(6, 2);          /* could be plugged in */
	madt_local(0xff, 1);       /* no ID */
	madt_x2(0xffffffff, 1);    /* no ID */
	madt_x2(300, 1);
	madt_x2(301, 0);
	EXPECT_EQ(parse_madt(&info), 3);
	EXPECT_EQ(cpus[0].apic_id, 0);
	EXPECT_EQ(cpus[1].apic_id, 4);
	EXPECT_EQ(cpus[2].apic_id, 300);
	EXPECT(cpus[0].enabled && cpus[1].enabled && cpus[2].enabled);
	EXPECT_EQ(info.disabled, 3);
	EXPECT_EQ(info.ignored, 2);
	EXPECT_EQ(info.local_apic, 0xfee00000);
	EXPECT(!info.truncated);
}

TEST(acpi_madt, same_cpu_as_types_0_and_9_is_one)
{
	struct acpi_madt info;

	begin_madt();
	for (u32 id = 0; id < 8; id++) {
		madt_local((u8)id, 1);
		madt_x2(7 - id, 1);
	}
	madt_local(3, 1);
	EXPECT_EQ(parse_madt(&info), 8);
	EXPECT_EQ(info.ignored, 9);
	for (u32 id = 0; id < 8; id++)
		EXPECT_EQ(cpus[id].apic_id, id);
}

TEST(acpi_madt, more_cpus_than_eight_bits)
{
	struct acpi_madt info;

	begin_madt();
	for (u32 i = 0; i < 320; i++)
		madt_x2((i * 7919) % 320 * 4, 1); /* sparse, in no order: 7919 is prime to 320 */
	EXPECT_EQ(parse_madt(&info), 320);
	for (u32 i = 0; i < 320; i++)
		EXPECT_EQ(cpus[i].apic_id, i * 4);
}

TEST(acpi_madt, zero_length_entry_ends_the_table)
{
	struct acpi_madt info;

	begin_madt();
	madt_local(1, 1);
	put(0, 1), put(0, 1);
	zeros(6);
	madt_local(2, 1);
	EXPECT_EQ(parse_madt(&info), 1);
	EXPECT(info.truncated);
	EXPECT_EQ(cpus[0].apic_id, 1);
}

TEST(acpi_madt, entry_that_leaves_the_table_ends_it)
{
	struct acpi_madt info;

	begin_madt();
	madt_local(1, 1);
	madt_local(2, 1);
	build.bytes[build.len - 7] = 9; /* length of the last: one byte too many */
	EXPECT_EQ(parse_madt(&info), 1);
	EXPECT(info.truncated);
}

TEST(acpi_madt, short_and_unknown_entries_are_stepped_over)
{
	struct acpi_madt info;

	begin_madt();
	put(0, 1), put(3, 1), put(5, 1);         /* type 0, too short to have an ID and flags */
	put(9, 1), put(8, 1), put(0, 2), put(7, 4); /* type 9 likewise */
	put(0x80, 1), put(5, 1), zeros(3);       /* OEM's */
	put(0x0b, 1), put(80, 1), zeros(78);     /* GICC */
	madt_local(9, 1);
	EXPECT_EQ(parse_madt(&info), 1);
	EXPECT_EQ(cpus[0].apic_id, 9);
	EXPECT(!info.truncated);
}

TEST(acpi_madt, other_entries_are_understood)
{
	struct acpi_io_apic io[2];
	struct acpi_table table;
	struct acpi_madt info;

	begin_madt();
	put(1, 1), put(12, 1), put(0, 2), put(0xfec00000, 4), put(24, 4);
	put(2, 1), put(10, 1), zeros(8);
	put(4, 1), put(6, 1), put(0xff, 1), put(0, 2), put(1, 1);
	put(5, 1), put(12, 1), put(0, 2), put(0x1fee00000, 8);
	put(10, 1), put(12, 1), put(0, 2), put(0xffffffff, 4), put(1, 1), zeros(3);
	EXPECT_EQ(parse_madt(&info), 0);
	EXPECT_EQ(info.local_apic, 0x1fee00000);
	EXPECT_EQ(info.overrides, 1);
	EXPECT_EQ(info.nmi_lint, 1);
	table = view(build.len);
	EXPECT_EQ(acpi_madt_io_apics_max(&table), 1);
	EXPECT_EQ(acpi_madt_io_apics(&table, io, 2), 1);
	EXPECT_EQ(io[0].phys, 0xfec00000);
	EXPECT_EQ(io[0].gsi_base, 24);

	put(4, 1), put(6, 1), put(3, 1), put(0, 2), put(0, 1); /* CPU 3 differs */
	parse_madt(&info);
	EXPECT_EQ(info.nmi_lint, -1);
}

TEST(acpi_madt, cut_at_every_length)
{
	struct acpi_madt info;

	begin_madt();
	madt_local(1, 1);
	madt_x2(1000, 1);
	madt_local(2, 1);
	finish();
	for (size_t len = 0; len <= build.len; len++) {
		struct acpi_table table = view(len);
		size_t max = acpi_madt_cpus_max(&table), n = acpi_madt_parse(&table, cpus, max, &info);
		size_t whole = (len >= 52) + (len >= 68) + (len >= 76);

		EXPECT_EQ(max, whole);
		EXPECT_EQ(n, whole);
	}
}

TEST(acpi_madt, boot_cpu_becomes_number_0)
{
	struct cpu_desc list[4] = {{.apic_id = 0}, {.apic_id = 2}, {.apic_id = 4}, {.apic_id = 6}};

	EXPECT(cpu_list_boot_first(list, 4, 4));
	EXPECT_EQ(list[0].apic_id, 4);
	EXPECT_EQ(list[1].apic_id, 0);
	EXPECT_EQ(list[2].apic_id, 2);
	EXPECT_EQ(list[3].apic_id, 6);
	EXPECT(!cpu_list_boot_first(list, 4, 5));
	EXPECT_EQ(list[0].apic_id, 4);
	EXPECT(!cpu_list_boot_first(list, 0, 4));
}

/* ---- SRAT, SLIT ------------------------------------------------------------------------------------------------ */

static void begin_srat(u8 revision)
{
	begin("SRAT", revision);
	zeros(12);
}

static void srat_cpu(u8 id, u32 domain, u32 flags)
{
	put(0, 1), put(16, 1), put(domain & 0xff, 1), put(id, 1), put(flags, 4), put(0, 1), put(domain >> 8, 3), put(0, 4);
}

static void srat_x2(u32 id, u32 domain, u32 flags)
{
	put(2, 1), put(24, 1), put(0, 2), put(domain, 4), put(id, 4), put(flags, 4), put(0, 8);
}

static void srat_mem(u64 base, u64 size, u32 domain, u32 flags)
{
	put(1, 1), put(40, 1), put(domain, 4), put(0, 2), put(base, 8), put(size, 8), put(0, 4), put(flags, 4), put(0, 8);
}

static int parse_srat(struct acpi_srat *srat)
{
	struct acpi_table table;

	finish();
	table = view(build.len);
	*srat = (struct acpi_srat){.mem = mems, .cpu = affinities, .domain = domains};
	return acpi_srat_parse(&table, srat);
}

TEST(acpi_srat, domains_become_dense_nodes)
{
	struct acpi_srat srat;

	begin_srat(3);
	srat_mem(GIB(4), GIB(4), 300, 1);
	srat_mem(0, GIB(3), 7, 1);
	srat_mem(GIB(32), GIB(1), 5, 0); /* disabled */
	srat_cpu(0, 7, 1);
	srat_cpu(1, 0x10203, 1);         /* CPUs without memory */
	srat_x2(999, 300, 1);
	srat_x2(1000, 4, 0);             /* disabled */
	EXPECT_EQ(parse_srat(&srat), 0);
	EXPECT_EQ(srat.nodes, 3);
	EXPECT_EQ(srat.mem_count, 2);
	EXPECT_EQ(srat.mem[0].start, 0);
	EXPECT_EQ(srat.mem[0].end, GIB(3));
	EXPECT_EQ(srat.mem[0].node, 0);
	EXPECT_EQ(srat.mem[1].node, 1);
	EXPECT_EQ(srat.domain[2], 0x10203);
	EXPECT_EQ(acpi_srat_cpu_node(&srat, 0), 0);
	EXPECT_EQ(acpi_srat_cpu_node(&srat, 1), 2);
	EXPECT_EQ(acpi_srat_cpu_node(&srat, 999), 1);
	EXPECT_EQ(acpi_srat_cpu_node(&srat, 1000), 0);
}

TEST(acpi_srat, domains_had_eight_bits_before_revision_2)
{
	struct acpi_srat srat;

	begin_srat(1);
	srat_mem(0, GIB(1), 0xabcdef01, 1);
	srat_cpu(0, 0xabcdef01, 1);
	EXPECT_EQ(parse_srat(&srat), 0);
	EXPECT_EQ(srat.nodes, 1);
	EXPECT_EQ(srat.domain[0], 1);
}

TEST(acpi_srat, contradictions_are_refused)
{
	struct acpi_srat srat;

	begin_srat(3);
	srat_mem(0, GIB(4), 0, 1);
	srat_mem(GIB(1), MIB(1), 0, 1);            /* inside, same domain: fine */
	srat_mem(GIB(4) - PAGE_SIZE, GIB(1), 1, 1); /* overlaps the first, not its neighbour in the list */
	EXPECT_EQ(parse_srat(&srat), -EINVAL);

	begin_srat(3);
	srat_cpu(5, 0, 1);
	srat_x2(5, 0, 1); /* twice the same: fine */
	EXPECT_EQ(parse_srat(&srat), 0);
	srat_x2(5, 1, 1);
	EXPECT_EQ(parse_srat(&srat), -EINVAL);

	begin_srat(3);
	EXPECT_EQ(parse_srat(&srat), -EINVAL); /* names no domain */
}

TEST(acpi_srat, impossible_entries_are_left_out)
{
	struct acpi_srat srat;

	begin_srat(3);
	srat_mem(0, 0, 9, 1);                       /* empty */
	srat_mem(~0ULL - 5, PAGE_SIZE, 9, 1);       /* wraps around */
	put(1, 1), put(8, 1), zeros(6);             /* too short */
	put(5, 1), put(32, 1), zeros(30);           /* type 5 */
	srat_cpu(0, 0, 1);
	put(0, 1), put(0, 1);                       /* length 0 */
	srat_cpu(1, 1, 1);
	EXPECT_EQ(parse_srat(&srat), 0);
	EXPECT_EQ(srat.mem_count, 0);
	EXPECT_EQ(srat.cpu_count, 1);
	EXPECT_EQ(srat.nodes, 1);
}

TEST(acpi_srat, cut_at_every_length)
{
	struct acpi_srat srat = {.mem = mems, .cpu = affinities, .domain = domains};
	size_t max_mem, max_cpu;

	begin_srat(3);
	srat_cpu(0, 0, 1);
	srat_mem(0, GIB(1), 0, 1);
	srat_x2(1, 1, 1);
	finish();
	for (size_t len = 0; len <= build.len; len++) {
		struct acpi_table table = view(len);

		acpi_srat_count(&table, &max_mem, &max_cpu);
		EXPECT_EQ(max_mem, len >= 104);
		EXPECT_EQ(max_cpu, (len >= 64) + (len >= 128));
		EXPECT_EQ(acpi_srat_parse(&table, &srat) == 0, len >= 64);
	}
}

static struct acpi_table slit_of(u64 size, const char *matrix, size_t bytes)
{
	begin("SLIT", 1);
	put(size, 8);
	memcpy(build.bytes + build.len, matrix, bytes);
	build.len += bytes;
	finish();
	return view(build.len);
}

TEST(acpi_slit, distances_and_nonsense)
{
	struct acpi_table table = slit_of(2, "\12\25\26\12", 4);
	struct acpi_slit slit;

	EXPECT_EQ(acpi_slit_parse(&table, &slit), 0);
	EXPECT_EQ(acpi_slit_distance(&slit, 0, 1), 21);
	EXPECT_EQ(acpi_slit_distance(&slit, 1, 0), 22);
	EXPECT_EQ(acpi_slit_distance(&slit, 1, 1), ACPI_DISTANCE_LOCAL);
	EXPECT_EQ(acpi_slit_distance(&slit, 0, 2), ACPI_DISTANCE_REMOTE);

	table = slit_of(2, "\12\25\26\13", 4); /* not 10 from itself */
	EXPECT_EQ(acpi_slit_parse(&table, &slit), -EINVAL);
	EXPECT_EQ(acpi_slit_distance(&slit, 0, 1), ACPI_DISTANCE_REMOTE);
	table = slit_of(2, "\12\11\26\12", 4); /* nearer than itself */
	EXPECT_EQ(acpi_slit_parse(&table, &slit), -EINVAL);
	table = slit_of(2, "\12\25\26", 3); /* a byte short */
	EXPECT_EQ(acpi_slit_parse(&table, &slit), -EINVAL);
	table = slit_of(1ULL << 32, "\12\25\26\12", 4); /* its square is 0 in 64 bits */
	EXPECT_EQ(acpi_slit_parse(&table, &slit), -EINVAL);
	table = slit_of(0, "", 0);
	EXPECT_EQ(acpi_slit_parse(&table, &slit), -EINVAL);
}

/* ---- the small ones -------------------------------------------------------------------------------------------- */

static void address(size_t at, u8 space, u64 addr)
{
	poke(at, space, 1);
	poke(at + 4, addr, 8);
}

TEST(acpi_devices, hpet)
{
	struct acpi_table table;
	phys_t base;

	begin("HPET", 1);
	zeros(20);
	address(40, ACPI_SPACE_MEMORY, 0xfed00000);
	finish();
	table = view(build.len);
	EXPECT_EQ(acpi_hpet_parse(&table, &base), 0);
	EXPECT_EQ(base, 0xfed00000);
	table = view(51);
	EXPECT_EQ(acpi_hpet_parse(&table, &base), -EINVAL);
	address(40, ACPI_SPACE_IO, 0xfed00000);
	table = view(build.len);
	EXPECT_EQ(acpi_hpet_parse(&table, &base), -EINVAL);
}

TEST(acpi_devices, fadt_of_any_age)
{
	struct acpi_table table;
	struct acpi_fadt fadt;

	begin("FACP", 6);
	zeros(244 - ACPI_HEADER_SIZE);
	poke(76, 0x608, 4);
	poke(91, 4, 1);
	poke(112, 1 << 8 | 1 << 10, 4);
	address(116, ACPI_SPACE_IO, 0xcf9);
	poke(128, 6, 1);
	finish();
	table = view(116); /* ACPI 1.0 */
	EXPECT_EQ(acpi_fadt_parse(&table, &fadt), 0);
	EXPECT_EQ(fadt.pm_timer_port, 0x608);
	EXPECT(fadt.pm_timer_32bit);
	EXPECT(!fadt.reset_supported);
	table = view(244);
	EXPECT_EQ(acpi_fadt_parse(&table, &fadt), 0);
	EXPECT(fadt.reset_supported);
	EXPECT_EQ(fadt.reset.addr, 0xcf9);
	EXPECT_EQ(fadt.reset_value, 6);
	address(208, ACPI_SPACE_IO, 0x408);
	table = view(244);
	acpi_fadt_parse(&table, &fadt);
	EXPECT_EQ(fadt.pm_timer_port, 0x408);
	address(208, ACPI_SPACE_MEMORY, 0xfe000000); /* not a port: the old field counts */
	poke(91, 0, 1);                              /* which says there is none */
	table = view(244);
	acpi_fadt_parse(&table, &fadt);
	EXPECT_EQ(fadt.pm_timer_port, 0);
	table = view(115);
	EXPECT_EQ(acpi_fadt_parse(&table, &fadt), -EINVAL);
}

TEST(acpi_devices, spcr_and_mcfg)
{
	struct acpi_mcfg_entry entry;
	struct acpi_table table;
	struct acpi_spcr spcr;

	begin("SPCR", 2);
	zeros(44);
	address(40, ACPI_SPACE_IO, 0x2f8);
	poke(58, 7, 1);
	finish();
	table = view(build.len);
	EXPECT_EQ(acpi_spcr_parse(&table, &spcr), 0);
	EXPECT_EQ(spcr.base.addr, 0x2f8);
	EXPECT_EQ(spcr.baud, 7);
	table = view(51);
	EXPECT_EQ(acpi_spcr_parse(&table, &spcr), -EINVAL);

	begin("MCFG", 1);
	zeros(8);
	put(0xe0000000, 8), put(1, 2), put(2, 1), put(255, 1), put(0, 4);
	zeros(15); /* not an entry */
	finish();
	table = view(build.len);
	EXPECT_EQ(acpi_mcfg_count(&table), 1);
	EXPECT_EQ(acpi_mcfg_entry(&table, 0, &entry), 0);
	EXPECT_EQ(entry.base, 0xe0000000);
	EXPECT_EQ(entry.segment, 1);
	EXPECT_EQ(entry.bus_last, 255);
	EXPECT_EQ(acpi_mcfg_entry(&table, 1, &entry), -EINVAL);
	table = view(43);
	EXPECT_EQ(acpi_mcfg_count(&table), 0);
}
