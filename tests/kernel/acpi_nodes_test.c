/*
 * The ACPI parsers for nodes (SRAT, SLIT) and devices (HPET, FADT, SPCR).
 */
#include "arch/x86_64/acpi/acpi_devices.h"
#include "arch/x86_64/acpi/acpi_srat.h"
#include "tests/kernel/acpi_build.h"
#include "tests/kernel/test.h"

enum { LIST = 16 };

static struct acpi_mem_affinity mems[LIST];
static struct acpi_cpu_affinity affinities[LIST];
static u32 domains[2 * LIST];

/* ---- SRAT, SLIT ---- */

static void begin_srat(u8 revision)
{
	build_begin("SRAT", revision);
	build_zeros(12);
}

static void srat_cpu(u8 id, u32 domain, u32 flags)
{
	build_put(0, 1), build_put(16, 1), build_put(domain & 0xff, 1), build_put(id, 1),
		build_put(flags, 4), build_put(0, 1), build_put(domain >> 8, 3), build_put(0, 4);
}

static void srat_x2(u32 id, u32 domain, u32 flags)
{
	build_put(2, 1), build_put(24, 1), build_put(0, 2), build_put(domain, 4), build_put(id, 4),
		build_put(flags, 4), build_put(0, 8);
}

static void srat_mem(u64 base, u64 size, u32 domain, u32 flags)
{
	build_put(1, 1), build_put(40, 1), build_put(domain, 4), build_put(0, 2),
		build_put(base, 8), build_put(size, 8), build_put(0, 4), build_put(flags, 4),
		build_put(0, 8);
}

static int parse_srat(struct acpi_srat *srat)
{
	struct acpi_table table;

	table = build_finish();
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
	srat_cpu(1, 0x10203, 1); /* a CPU without memory */
	srat_x2(999, 300, 1);
	srat_x2(1000, 4, 0); /* disabled */
	EXPECT_EQ(parse_srat(&srat), 0);
	EXPECT_EQ(srat.nodes, 3);
	EXPECT_EQ(srat.mem_count, 2);
	EXPECT_EQ(srat.mem[0].start, 0);
	EXPECT_EQ(srat.mem[0].end, GIB(3));
	EXPECT_EQ(acpi_srat_node(&srat, srat.mem[0].domain), 0);
	EXPECT_EQ(acpi_srat_node(&srat, srat.mem[1].domain), 1);
	EXPECT_EQ(srat.domain[2], 0x10203);
	EXPECT_EQ(acpi_srat_cpu_node(&srat, 0), 0);
	EXPECT_EQ(acpi_srat_cpu_node(&srat, 1), 2);
	EXPECT_EQ(acpi_srat_cpu_node(&srat, 999), 1);
	EXPECT_EQ(acpi_srat_cpu_node(&srat, 1000), 0);
	begin_srat(1); /* domains had eight bits before revision 2 */
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
	srat_mem(GIB(1), MIB(1), 0, 1); /* inside the first range, in the same domain: allowed */
	/* This range overlaps the first one, not its neighbour in the list. */
	srat_mem(GIB(4) - PAGE_SIZE, GIB(1), 1, 1);
	EXPECT_EQ(parse_srat(&srat), -EINVAL);

	begin_srat(3);
	srat_cpu(5, 0, 1);
	srat_x2(5, 0, 1); /* twice the same: allowed */
	EXPECT_EQ(parse_srat(&srat), 0);
	srat_x2(5, 1, 1);
	EXPECT_EQ(parse_srat(&srat), -EINVAL);

	begin_srat(3);
	EXPECT_EQ(parse_srat(&srat), -EINVAL); /* the table names no domain */
}

TEST(acpi_srat, cut_at_every_length)
{
	struct acpi_srat srat = {.mem = mems, .cpu = affinities, .domain = domains};

	begin_srat(3);
	srat_cpu(0, 0, 1);
	srat_mem(0, GIB(1), 0, 1);
	srat_x2(1, 1, 1);
	build_finish();
	for (size_t len = 0; len <= build.len; len++) {
		struct acpi_table table = build_view(len);

		EXPECT_EQ(acpi_srat_parse(&table, &srat) == 0, len >= 64);
		EXPECT_EQ(srat.mem_count, len >= 104);
		EXPECT_EQ(srat.cpu_count, (len >= 64) + (len >= 128));
	}
}

static int parse_slit(u64 size, const char *matrix, size_t bytes, struct acpi_slit *slit)
{
	struct acpi_table table;

	build_begin("SLIT", 1);
	build_put(size, 8);
	memcpy(build.bytes + build.len, matrix, bytes);
	build.len += bytes;
	table = build_finish();
	return acpi_slit_parse(&table, slit);
}

TEST(acpi_slit, distances_and_nonsense)
{
	struct acpi_slit slit;

	EXPECT_EQ(parse_slit(2, "\12\25\26\12", 4, &slit), 0);
	EXPECT_EQ(acpi_slit_distance(&slit, 0, 1), 21);
	EXPECT_EQ(acpi_slit_distance(&slit, 1, 0), 22);
	EXPECT_EQ(acpi_slit_distance(&slit, 1, 1), ACPI_DISTANCE_LOCAL);
	EXPECT_EQ(acpi_slit_distance(&slit, 0, 2), ACPI_DISTANCE_REMOTE);
	/* a node is not 10 from itself */
	EXPECT_EQ(parse_slit(2, "\12\25\26\13", 4, &slit), -EINVAL);
	EXPECT_EQ(acpi_slit_distance(&slit, 0, 1), ACPI_DISTANCE_REMOTE);
	/* nearer than the node itself, a byte short, a square of 0 in 64 bits, nothing */
	EXPECT_EQ(parse_slit(2, "\12\11\26\12", 4, &slit), -EINVAL);
	EXPECT_EQ(parse_slit(2, "\12\25\26", 3, &slit), -EINVAL);
	EXPECT_EQ(parse_slit(1ULL << 32, "\12\25\26\12", 4, &slit), -EINVAL);
	EXPECT_EQ(parse_slit(0, "", 0, &slit), -EINVAL);
}

/* ---- the small tables ---- */

static void address(size_t at, u8 space, u64 addr)
{
	build_poke(at, space, 1);
	build_poke(at + 4, addr, 8);
}

TEST(acpi_devices, fadt_of_any_age)
{
	struct acpi_table table;
	struct acpi_fadt fadt;

	build_begin("FACP", 6);
	build_zeros(244 - ACPI_HEADER_SIZE);
	build_poke(76, 0x608, 4);
	build_poke(91, 4, 1);
	build_poke(112, 1 << 8 | 1 << 10, 4);
	address(116, ACPI_SPACE_IO, 0xcf9);
	build_poke(128, 6, 1);
	build_finish();
	table = build_view(116); /* ACPI 1.0 */
	EXPECT_EQ(acpi_fadt_parse(&table, &fadt), 0);
	EXPECT_EQ(fadt.pm_timer_port, 0x608);
	EXPECT(fadt.pm_timer_32bit);
	EXPECT(!fadt.reset_supported);
	table = build_view(244);
	EXPECT_EQ(acpi_fadt_parse(&table, &fadt), 0);
	EXPECT(fadt.reset_supported);
	EXPECT_EQ(fadt.reset.addr, 0xcf9);
	EXPECT_EQ(fadt.reset_value, 6);
	address(208, ACPI_SPACE_IO, 0x408);
	table = build_view(244);
	acpi_fadt_parse(&table, &fadt);
	EXPECT_EQ(fadt.pm_timer_port, 0x408);
	address(208, ACPI_SPACE_MEMORY, 0xfe000000); /* not a port, so the old field counts */
	build_poke(91, 0, 1);                        /* the old field says that there is no timer */
	table = build_view(244);
	acpi_fadt_parse(&table, &fadt);
	EXPECT_EQ(fadt.pm_timer_port, 0);
	table = build_view(115);
	EXPECT_EQ(acpi_fadt_parse(&table, &fadt), -EINVAL);
}

TEST(acpi_devices, fadt_says_how_power_is_switched_off)
{
	struct acpi_table table;
	struct acpi_fadt fadt;

	build_begin("FACP", 6);
	build_zeros(256 - ACPI_HEADER_SIZE);
	build_poke(40, 0x7ffd0000, 4);
	build_poke(48, 0xb2, 4);
	build_poke(52, 0xa0, 1);
	build_poke(64, 0x1804, 4);
	build_poke(68, 0x1904, 4);
	build_finish();
	table = build_view(116);
	EXPECT_EQ(acpi_fadt_parse(&table, &fadt), 0);
	EXPECT_EQ(fadt.dsdt, 0x7ffd0000);
	EXPECT(fadt.smi_port == 0xb2 && fadt.acpi_on == 0xa0);
	EXPECT(fadt.pm1_control[0] == 0x1804 && fadt.pm1_control[1] == 0x1904);
	build_poke(140, 0x17ffd0000, 8);
	address(172, ACPI_SPACE_IO, 0x804);
	address(244, ACPI_SPACE_MEMORY, 0xfea00000);
	table = build_view(256);
	acpi_fadt_parse(&table, &fadt);
	EXPECT_EQ(fadt.dsdt, 0x17ffd0000);
	EXPECT(fadt.pm1_control[0] == 0x804 && fadt.pm1_control[1] == 0x1904);
	EXPECT(fadt.sleep_control.addr == 0xfea00000);
	build_poke(112, 1 << 20, 4); /* hardware-reduced: the ports mean nothing */
	table = build_view(256);
	acpi_fadt_parse(&table, &fadt);
	EXPECT(fadt.pm1_control[0] == 0 && fadt.pm1_control[1] == 0);
}

/* \_S5 as compilers have written it for boards of many years. -1: it must not be read. */
static const struct {
	const char *aml;
	size_t len;
	int a, b;
} sleep[] = {
#define AML(text, a, b)                                                                            \
	{                                                                                          \
		text, sizeof(text) - 1, a, b                                                       \
	}
	AML("\x08_S5_\x12\x06\x04\x00\x00\x00\x00", 0, 0), /* QEMU */
	AML("\x08_S5_\x12\x08\x04\x0a\x05\x00\x00\x00", 5, 0),
	AML("\x08_S5_\x12\x06\x02\x0a\x05\x0a\x05", 5, 5),
	AML("\x08\\_S5_\x12\x06\x02\x0a\x07\x0a\x07", 7, 7), /* in the root */
	AML("\x08_S5_\x12\x0a\x04\x0a\x02\x0a\x02\x0a\x02\x0a\x02", 2, 2),
	AML("\x08_S5_\x12\x4a\x00\x04\x0a\x07\x01\x00\x00", 7, 1), /* a longer length */
	AML("\x08_S5_\x12\x08\x02\x0b\x06\x00\x0b\x04\x00", 6, 4),
	AML("\x08_S5_\x12\x0c\x02\x0c\x06\x00\x00\x00\x0c\x04\x00\x00\x00", 6, 4),
	AML("\x08_S5_\x12\x03\x01\x0a\x05", 5, 5), /* for both ports */
	AML("\x0d_S5_\x00\x14\x07_S5_\x00\xa4\x08_S5_\x12\x04\x02\x01\x01", 1,
	    1),                                                              /* not the first */
	AML("\x14\x0f_S5_\x00\xa4\x12\x06\x04\x0a\x05\x00\x00\x00", -1, -1), /* a method */
	AML("\x08_S5_\x12\x06\x02\x0a\x08\x0a\x05", -1, -1),                 /* three bits */
	AML("\x08_S5_\x12\x04\x02\xff\x00", -1, -1),
	AML("\x08_S5_\x12\x0a\x02SLPASLPB", -1, -1), /* names of others */
	AML("\x08_S5_\x12\x02\x00", -1, -1),
	AML("\x08_S4_\x12\x06\x02\x0a\x05\x0a\x05", -1, -1),
};

TEST(acpi_devices, s5_is_found_and_read_however_it_is_written)
{
	u8 types[2] = {0};
	bool found;

	for (size_t i = 0; i < ARRAY_LEN(sleep); i++) {
		struct acpi_table table;

		build_begin("DSDT", 2);
		for (size_t n = 0; n < sleep[i].len; n++)
			build_put((u8)sleep[i].aml[n], 1);
		table = build_finish();
		found = acpi_s5_parse(&table, types);
		if (found != (sleep[i].a >= 0) ||
		    (found && (types[0] != sleep[i].a || types[1] != sleep[i].b)))
			test_fail(__FILE__, __LINE__, "row %zu: %s %u, %u", i,
				  found ? "found" : "not found", types[0], types[1]);
		for (size_t len = ACPI_HEADER_SIZE; len < build.len; len++) {
			table = build_view(len); /* a read behind the end is caught */
			acpi_s5_parse(&table, types);
		}
	}
}

TEST(acpi_devices, mcfg_names_the_first_segment)
{
	struct acpi_table table;
	u32 buses;

	build_begin("MCFG", 1);
	build_zeros(8);
	build_put(0x12345000, 8), build_put(1, 2), build_put(9 << 8, 2), build_put(0, 4);
	build_put(0xe0000000, 8), build_put(0, 2), build_put(255 << 8, 2), build_put(0, 4);
	table = build_finish();
	EXPECT_EQ(acpi_mcfg_base(&table, &buses), 0xe0000000);
	EXPECT_EQ(buses, 256);
	table = build_view(build.len - 1);
	EXPECT_EQ(acpi_mcfg_base(&table, &buses), 0);
}

TEST(acpi_devices, dmar_says_whether_firmware_opts_out_of_x2apic)
{
	struct acpi_table table;

	build_begin("DMAR", 1);
	build_put(38, 1); /* width of addresses, less 1 */
	build_put(1, 1);  /* interrupts can be remapped */
	build_zeros(10);
	table = build_finish();
	EXPECT(!acpi_dmar_opts_out(&table));
	build_poke(37, 3, 1);
	table = build_finish();
	EXPECT(acpi_dmar_opts_out(&table));
	table = build_view(37);
	EXPECT(!acpi_dmar_opts_out(&table));
}
