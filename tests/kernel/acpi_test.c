/*
 * The ACPI parsers for roots, table headers and CPUs. acpi_nodes_test.c covers nodes and devices.
 */
#include "arch/x86_64/acpi/acpi_cpu_order.h"
#include "arch/x86_64/acpi/acpi_madt.h"
#include "arch/x86_64/acpi/acpi_root.h"
#include "tests/kernel/acpi_build.h"
#include "tests/kernel/test.h"

enum { LIST = 400 };

static struct cpu_desc cpus[LIST];

static void begin_madt(void)
{
	build_begin("APIC", 4);
	build_put(0xfee00000, 4);
	build_put(1, 4);
}

static void madt_local(u8 id, u32 flags)
{
	build_put(0, 1), build_put(8, 1), build_put(id, 1), build_put(id, 1), build_put(flags, 4);
}

static void madt_x2(u32 id, u32 flags)
{
	build_put(9, 1), build_put(16, 1), build_put(0, 2), build_put(id, 4), build_put(flags, 4),
		build_put(id, 4);
}

static size_t parse_madt(struct acpi_madt *info)
{
	struct acpi_table table;

	table = build_finish();
	return acpi_madt_parse(&table, cpus, acpi_entries_max(&table), info, NULL);
}

/* ---- RSDP ---- */

static void build_rsdp(u8 revision)
{
	build.len = 0;
	build_zeros(ACPI_RSDP_V2_SIZE);
	memcpy(build.bytes, "RSD PTR ", 8);
	build.bytes[15] = revision;
	build_poke(16, 0x1000, 4);
	build.bytes[8] = (u8)-build_sum(build.bytes, ACPI_RSDP_V1_SIZE);
	if (revision < 2)
		return;
	build_poke(20, ACPI_RSDP_V2_SIZE, 4);
	build_poke(24, 0x123456789000, 8);
	build.bytes[32] = (u8)-build_sum(build.bytes, ACPI_RSDP_V2_SIZE);
}

TEST(acpi_rsdp, truncated_at_every_length)
{
	struct acpi_rsdp rsdp;

	build_rsdp(2);
	for (size_t len = 0; len <= ACPI_RSDP_V2_SIZE; len++) {
		int err = acpi_rsdp_parse(build_at_end(len), len, &rsdp);

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
		EXPECT(acpi_rsdp_parse(build_at_end(20), 20, &rsdp) < 0);
	}
	/* the extended checksum, or a length beyond the bytes at hand: the RSDT is left */
	for (size_t at = 20; at <= 24; at += 4) {
		build_rsdp(2);
		build_poke(at, 0xffffffff, 4);
		EXPECT_EQ(acpi_rsdp_parse(build_at_end(36), 36, &rsdp), 0);
		EXPECT_EQ(rsdp.xsdt, 0);
		EXPECT_EQ(rsdp.rsdt, 0x1000);
	}
}

TEST(acpi_rsdp, the_first_good_one_on_a_boundary_is_found)
{
	u8 area[128] = {0};
	struct acpi_rsdp rsdp;

	build_rsdp(0);
	memcpy(area + 8, build.bytes, ACPI_RSDP_V1_SIZE); /* on no boundary */
	memcpy(area + 48, build.bytes, ACPI_RSDP_V1_SIZE);
	area[48 + 9] ^= 1;
	EXPECT_EQ(acpi_rsdp_scan(area, sizeof(area), &rsdp), -ENOENT);
	memcpy(area + 96, build.bytes, ACPI_RSDP_V1_SIZE);
	EXPECT_EQ(acpi_rsdp_scan(area, sizeof(area), &rsdp), 96);
	EXPECT_EQ(rsdp.rsdt, 0x1000);
}

/* ---- headers and roots ---- */

TEST(acpi_table, header_decides_what_may_be_read)
{
	struct acpi_table table;

	build_begin("HPET", 1);
	build_zeros(20);
	build_finish();
	for (size_t len = 0; len < build.len; len++)
		EXPECT_EQ(acpi_table_open(build_at_end(len), len, "HPET", &table), -EINVAL);
	EXPECT_EQ(acpi_table_open(build_at_end(build.len), build.len, "HPET", &table), 0);
	EXPECT_EQ(table.len, 56);
	EXPECT_EQ(acpi_table_open(build_at_end(build.len), build.len, "APIC", &table), -EINVAL);
	build.bytes[50] = 1;
	EXPECT_EQ(acpi_table_open(build_at_end(build.len), build.len, "HPET", &table), -EIO);
	EXPECT(table.data != NULL);
	build_poke(4, 35, 4);
	EXPECT_EQ(acpi_table_open(build_at_end(build.len), build.len, "HPET", &table), -EINVAL);
	EXPECT(table.data == NULL);
}

/* ---- MADT ---- */

TEST(acpi_madt, only_enabled_cpus_with_possible_ids)
{
	struct acpi_madt info;

	begin_madt();
	madt_local(4, 1);
	madt_local(0, 1);
	madt_local(2, 0);       /* disabled */
	madt_local(6, 2);       /* could be plugged in */
	madt_local(0xff, 1);    /* no ID */
	madt_x2(0xffffffff, 1); /* no ID */
	madt_x2(300, 1);
	madt_x2(301, 0);
	madt_x2(4, 1); /* the same CPU again */
	EXPECT_EQ(parse_madt(&info), 3);
	EXPECT_EQ(cpus[0].apic_id, 0);
	EXPECT_EQ(cpus[1].apic_id, 4);
	EXPECT_EQ(cpus[2].apic_id, 300);
	EXPECT(cpus[0].enabled && cpus[1].enabled && cpus[2].enabled);
	EXPECT_EQ(info.disabled, 3);
	EXPECT_EQ(info.ignored, 3);
}

TEST(acpi_madt, entry_that_leaves_the_table_ends_it)
{
	struct acpi_madt info;

	begin_madt();
	madt_local(1, 1);
	madt_local(2, 1);
	build.bytes[build.len - 7] = 9; /* length of the last entry: one byte too many */
	said_begin();
	EXPECT_EQ(parse_madt(&info), 1);
	said_end();
	EXPECT(said_says("*APIC entry at byte 52 states the impossible length 9,*"));
	build.bytes[build.len - 7] = 0; /* an entry without a length */
	madt_local(3, 1);
	EXPECT_EQ(parse_madt(&info), 1);
	EXPECT_EQ(cpus[0].apic_id, 1);
}

/*
 * The bytes behind each short entry are chosen so that they would say "enabled" if they were read
 * as part of it.
 */
TEST(acpi_madt, short_and_unknown_entries_are_stepped_over)
{
	struct acpi_madt info;

	begin_madt();
	/* type 0 without ID and flags */
	build_put(0, 1), build_put(3, 1), build_put(5, 1);
	build_put(0x80, 1), build_put(5, 1), build_zeros(3); /* an OEM's entry */
	/* type 9 without flags */
	build_put(9, 1), build_put(8, 1), build_put(0, 2), build_put(7, 4);
	build_put(0x81, 1), build_put(80, 1), build_zeros(78); /* an OEM's entry */
	madt_local(9, 1);
	build_put(9, 1), build_put(12, 1), build_put(0, 2), build_put(7, 4),
		build_put(1, 4); /* no UID, at the very end */
	EXPECT_EQ(parse_madt(&info), 1);
	EXPECT_EQ(cpus[0].apic_id, 9);
	EXPECT_EQ(info.disabled + info.ignored, 0);
}

static unsigned io_apics;

static void see_io_apic(phys_t phys, u32 gsi_base)
{
	EXPECT_EQ(phys, 0xfec00000);
	EXPECT_EQ(gsi_base, 24);
	io_apics++;
}

TEST(acpi_madt, other_entries_are_understood)
{
	struct acpi_table table;
	struct acpi_madt info;

	begin_madt();
	build_put(1, 1), build_put(12, 1), build_put(0, 2), build_put(0xfec00000, 4),
		build_put(24, 4);
	build_put(2, 1), build_put(10, 1), build_zeros(8);
	build_put(4, 1), build_put(6, 1), build_put(0xff, 1), build_put(0, 2), build_put(1, 1);
	build_put(5, 1), build_put(12, 1), build_put(0, 2), build_put(0x1fee00000, 8);
	build_put(10, 1), build_put(12, 1), build_put(0, 2), build_put(0xffffffff, 4),
		build_put(1, 1), build_zeros(3);
	EXPECT_EQ(parse_madt(&info), 0);
	EXPECT_EQ(info.nmi_lint, 1);
	table = build_view(build.len);
	io_apics = 0;
	acpi_madt_parse(&table, cpus, acpi_entries_max(&table), &info, see_io_apic);
	EXPECT_EQ(io_apics, 1);

	/* CPU 3 differs from the others. */
	build_put(4, 1), build_put(6, 1), build_put(3, 1), build_put(0, 2), build_put(0, 1);
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
	build_finish();
	for (size_t len = 0; len <= build.len; len++) {
		struct acpi_table table = build_view(len);
		size_t n = acpi_madt_parse(&table, cpus, acpi_entries_max(&table), &info, NULL);

		EXPECT_EQ(n, (len >= 52) + (len >= 68) + (len >= 76));
	}
}

TEST(acpi_madt, boot_cpu_becomes_number_0)
{
	struct cpu_desc list[5] = {{.apic_id = 0}, {.apic_id = 2}, {.apic_id = 4}, {.apic_id = 6}};

	EXPECT_EQ(cpu_list_boot_first(list, 4, 4), 4);
	EXPECT_EQ(list[0].apic_id, 4);
	EXPECT_EQ(list[1].apic_id, 0);
	EXPECT_EQ(list[2].apic_id, 2);
	EXPECT_EQ(list[3].apic_id, 6);
	EXPECT_EQ(cpu_list_boot_first(list, 4, 5), 5);
	EXPECT_EQ(list[0].apic_id, 5);
	EXPECT_EQ(list[1].apic_id, 4);
	EXPECT_EQ(list[4].apic_id, 6);
	EXPECT_EQ(cpu_list_boot_first(list, 0, 4), 1);
	EXPECT_EQ(list[0].apic_id, 4);
}

/*
 * Order CPUs with these IDs, the boot CPU first, and compare. CPUs with `node_bit` in their ID are
 * on node 1. A core has two IDs.
 */
static bool ordered(const u32 *ids, const u32 *wanted, size_t count, u32 node_bit, bool hybrid)
{
	size_t right = 0;

	for (size_t i = 0; i < count; i++)
		cpus[i] = (struct cpu_desc){
			.apic_id = ids[i], .node = (ids[i] & node_bit) != 0, .enabled = true};
	if (count > 0) /* behind the list lies the other thread of its last core */
		cpus[count] = (struct cpu_desc){.apic_id = ids[count - 1] ^ 1};
	acpi_order_cpus(cpus, count, 1, hybrid);
	for (size_t i = 0; i < count; i++)
		right += cpus[i].apic_id == wanted[i];
	return right == count;
}

TEST(acpi_cpus, one_thread_of_each_core_comes_first)
{
	static const u32 ids[] = {0, 1, 2, 3, 4, 5, 6, 7}, wanted[] = {0, 2, 4, 6, 1, 3, 5, 7};
	/* booted on a second thread: its sibling waits */
	static const u32 odd[] = {3, 0, 1, 2, 4, 5}, odd_wanted[] = {3, 0, 4, 1, 2, 5};

	EXPECT(ordered(ids, wanted, 8, 0, false));
	EXPECT(ordered(odd, odd_wanted, 6, 0, false));
	EXPECT(ordered(ids, wanted, 1, 0, false));
	EXPECT(ordered(ids, wanted, 0, 0, false));
}

TEST(acpi_cpus, performance_cores_come_before_efficient_ones)
{
	/* two cores of two threads between four of one */
	static const u32 ids[] = {0, 1, 4, 6, 8, 9, 16, 18}, wanted[] = {0, 8, 4, 6, 16, 18, 1, 9};
	static const u32 plain[] = {0, 4, 6, 8, 16, 18, 1, 9}, single[] = {0, 4, 6, 8};

	EXPECT(ordered(ids, wanted, 8, 0, true));
	EXPECT(ordered(ids, plain, 8, 0, false));
	EXPECT(ordered(single, single, 4, 0, true));
}

TEST(acpi_cpus, nodes_take_turns)
{
	static const u32 ids[] = {0, 1, 2, 3, 8, 9, 10, 11}, wanted[] = {0, 8, 2, 10, 1, 9, 3, 11};
	/* booted on node 1, which has more cores */
	static const u32 upper[] = {8, 0, 10, 12, 14}, upper_wanted[] = {8, 0, 10, 12, 14};

	EXPECT(ordered(ids, wanted, 8, 8, false));
	EXPECT(ordered(upper, upper_wanted, 5, 8, false));
}
