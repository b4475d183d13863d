/*
 * The topologies of other machines as CPUID reports them, and machine checks described in words.
 */
#include "arch/x86_64/cpu/topology.h"
#include "arch/x86_64/traps/mce_decode.h"
#include "tests/kernel/test.h"

struct answer {
	u32 leaf, subleaf;
	struct cpuid id;
};

struct machine {
	struct answer answer[5];
	unsigned core_shift, package_shift;
};

static struct cpuid ask(u32 leaf, u32 subleaf, const void *ctx)
{
	const struct machine *m = ctx;

	for (size_t i = 0; i < ARRAY_LEN(m->answer); i++)
		if (m->answer[i].leaf == leaf && m->answer[i].subleaf == subleaf)
			return m->answer[i].id;
	return (struct cpuid){0};
}

TEST(arch_topology, threads_cores_and_dies)
{
	static const struct machine machines[] = {
		/* 2 threads, 32 cores, 2 dies, of leaf 1fh */
		{{{0x1f, 0, {1, 2, 0x100, 0}},
		  {0x1f, 1, {6, 64, 0x201, 0}},
		  {0x1f, 2, {7, 128, 0x502, 0}},
		  {0xb, 0, {1, 2, 0x100, 0}},
		  {0xb, 1, {6, 64, 0x201, 0}}},
		 1,
		 7},
		/* Haswell, of leaf bh */
		{{{0xb, 0, {1, 2, 0x100, 0}}, {0xb, 1, {4, 16, 0x201, 0}}}, 1, 4},
		/* Zen 1: 16 threads and 6 bits, 2 threads in each core */
		{{{0x80000008, 0, {0, 0, 0x600f, 0}},
		  {0x80000001, 0, {0, 0, 1 << 22, 0}},
		  {0x8000001e, 0, {0, 0x100, 0, 0}}},
		 1,
		 6},
		{{{0x80000008, 0, {0, 0, 3, 0}}}, 0, 2},    /* Opteron */
		{{{1, 0, {0, 2 << 16, 0, 1 << 28}}}, 1, 1}, /* Prescott */
		{{{1, 0, {0, 4 << 16, 0, 1 << 28}}, {4, 0, {3u << 26, 0, 0, 0}}},
		 0,
		 2}, /* Core 2 */
		{{{0}}, 0, 0},
		/* what makes no sense is passed over: shifts that fall, and no level of threads */
		{{{0xb, 0, {5, 2, 0x100, 0}}, {0xb, 1, {1, 4, 0x201, 0}}}, 0, 0},
		{{{0xb, 0, {5, 2, 0x200, 0}}}, 0, 0},
	};

	for (unsigned i = 0; i < ARRAY_LEN(machines); i++) {
		const struct topology t = topology_read(ask, &machines[i]);

		if (t.core_shift != machines[i].core_shift ||
		    t.package_shift != machines[i].package_shift)
			test_fail(__FILE__, __LINE__, "machine %u: shifts %u and %u", i,
				  t.core_shift, t.package_shift);
	}
}

#define VALID   (1ULL << 63)
#define LOST    (1ULL << 62)
#define UC      (1ULL << 61)
#define MISCV   (1ULL << 59)
#define ADDRV   (1ULL << 58)
#define CORRUPT (1ULL << 57)

TEST(arch_mce, only_an_uncorrected_error_with_a_physical_address_names_a_page)
{
	struct mce_error error = {.status = VALID | UC | ADDRV | 0x9f, .addr = 0x1000};

	EXPECT(mce_names_page(&error));
	error.status |= MISCV;
	EXPECT(!mce_names_page(&error)); /* segment offset */
	error.misc = 2 << 6 | 6;
	EXPECT(mce_names_page(&error));
	error.misc = 2 << 6 | 30; /* precise only to a GiB */
	EXPECT(!mce_names_page(&error));
	error.status = VALID | ADDRV | 0x9f;
	EXPECT(!mce_names_page(&error));
	error.status = VALID | UC | 0x9f;
	EXPECT(!mce_names_page(&error));
}

/* A scalable bank of AMD's, of a memory controller: the PPR of family 19h lays it out. */
TEST(arch_mce, addresses_of_amd_are_not_the_systems)
{
	const struct mce_error ecc = {
		.bank = 17, .status = VALID | UC | ADDRV | 0x11b, .addr = 0x3d1f000, .amd = true};
	char text[160];

	EXPECT(!mce_names_page(&ecc));
	mce_describe(&ecc, text, sizeof(text));
	EXPECT(strcmp(text, "uncorrected error, cache hierarchy, bank 17, code 011b, the unit's "
			    "address 3d1f000") == 0);
}

TEST(arch_mce, a_bank_stands_for_as_many_corrected_errors_as_it_counted)
{
	struct mce_error error = {.status = VALID | 700ULL << 38 | 0x9f, .counted = true};
	char text[160];

	EXPECT_EQ(mce_corrected_count(&error), 700);
	mce_describe(&error, text, sizeof(text));
	EXPECT(strcmp(text, "corrected error, memory controller, bank 0, code 009f, 700 times") ==
	       0);
	error.counted = false; /* other bits have that place */
	EXPECT_EQ(mce_corrected_count(&error), 1);
	error = (struct mce_error){.status = VALID | 0x9f, .counted = true};
	EXPECT_EQ(mce_corrected_count(&error), 1);
	error = (struct mce_error){.status = VALID | ~0ULL, .counted = true, .amd = true};
	EXPECT_EQ(mce_corrected_count(&error), 1);
	error = (struct mce_error){.status = VALID | 0x21};
	mce_describe(&error, text, sizeof(text));
	EXPECT(strcmp(text, "corrected error, unknown kind, bank 0, code 0021") == 0);
}
