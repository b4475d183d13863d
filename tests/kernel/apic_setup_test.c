/*
 * The set-up of a local APIC with one that follows the manual's rule: while it is software-disabled
 * all entries of its LVT are masked, and none can be opened. Emulators do not have that rule.
 */
#include "arch/x86_64/traps/apic_setup.h"

#include "tests/kernel/test.h"

enum { REGISTERS = 0x400 / 16, VERSION_7_ENTRIES = 6 << 16 | 0x15, FIRMWARE_VECTOR = 0x41 };

static struct {
	u32 reg[REGISTERS];
	bool delivered; /* a source of firmware's was open while the APIC was enabled */
	bool faulted;   /* an entry was touched that the APIC lacks, a fault in x2APIC mode */
} model;

/* In the order in which APICs got them: the first four are in all. */
static const unsigned lvt[] = {APIC_LVT_TIMER, APIC_LVT_LINT0,   APIC_LVT_LINT1, APIC_LVT_ERROR,
			       APIC_LVT_PERF,  APIC_LVT_THERMAL, APIC_LVT_CMCI};

static bool enabled(void)
{
	return model.reg[APIC_SVR / 16] & SVR_ENABLE;
}

static bool is_lvt(unsigned reg)
{
	for (size_t i = 0; i < ARRAY_LEN(lvt); i++)
		if (lvt[i] == reg)
			return true;
	return false;
}

/* The version register has the number of the last entry. */
static void check_exists(unsigned reg)
{
	for (size_t i = (model.reg[APIC_VERSION / 16] >> 16) + 1; i < ARRAY_LEN(lvt); i++)
		model.faulted |= lvt[i] == reg;
}

static u32 model_read(unsigned reg)
{
	check_exists(reg);
	return model.reg[reg / 16];
}

static void model_write(unsigned reg, u32 value)
{
	check_exists(reg);
	model.reg[reg / 16] = is_lvt(reg) && !enabled() ? value | LVT_MASKED : value;
	for (size_t i = 0; enabled() && i < ARRAY_LEN(lvt); i++)
		model.delivered |= (model.reg[lvt[i] / 16] & 0xff) == FIRMWARE_VECTOR &&
				   !(model.reg[lvt[i] / 16] & LVT_MASKED);
}

static const struct apic_access access = {model_read, model_write};

/* As after INIT: software-disabled, with all sources masked. */
static void reset(void)
{
	memset(&model, 0, sizeof(model));
	model.reg[APIC_VERSION / 16] = VERSION_7_ENTRIES;
	model.reg[APIC_SVR / 16] = VECTOR_SPURIOUS;
	for (size_t i = 0; i < ARRAY_LEN(lvt); i++)
		model.reg[lvt[i] / 16] = LVT_MASKED;
}

TEST(arch_apic, the_pin_of_nmis_is_open_after_a_set_up_from_reset)
{
	reset();
	apic_set_up(&access, 1);
	EXPECT(enabled());
	EXPECT_EQ(model_read(APIC_LVT_LINT1), LVT_MODE_NMI);
	EXPECT_EQ(model_read(APIC_LVT_LINT0), LVT_MASKED);
	reset();
	apic_set_up(&access, 0);
	EXPECT_EQ(model_read(APIC_LVT_LINT0), LVT_MODE_NMI);
	EXPECT_EQ(model_read(APIC_LVT_LINT1), LVT_MASKED);
	reset();
	apic_set_up(&access, -1);
	for (size_t i = 0; i < ARRAY_LEN(lvt); i++)
		EXPECT(model_read(lvt[i]) & LVT_MASKED);
}

TEST(arch_apic, what_firmware_left_open_is_masked_before_the_apic_is_enabled)
{
	const u32 smi = LVT_MODE_SMI;

	reset();
	for (size_t i = 0; i < ARRAY_LEN(lvt); i++)
		model.reg[lvt[i] / 16] = FIRMWARE_VECTOR;
	model.reg[APIC_LVT_THERMAL / 16] = smi;
	apic_set_up(&access, 1);
	EXPECT(!model.delivered);
	EXPECT_EQ(model_read(APIC_LVT_LINT0), LVT_MASKED);
	EXPECT(!(model_read(APIC_LVT_LINT1) & LVT_MASKED));
	EXPECT(model_read(APIC_LVT_TIMER) & LVT_MASKED);

	/* enabled by firmware, as on the boot CPU: its thermal entry is left as it is */
	reset();
	model.reg[APIC_SVR / 16] |= SVR_ENABLE;
	model.reg[APIC_LVT_THERMAL / 16] = smi;
	apic_set_up(&access, 1);
	EXPECT_EQ(model_read(APIC_LVT_THERMAL), smi);
}

TEST(arch_apic, of_the_entries_for_local_sources_those_that_exist_are_masked)
{
	for (u32 last = 3; last < ARRAY_LEN(lvt); last++) {
		reset();
		model.reg[APIC_VERSION / 16] = last << 16 | 0x15;
		model.reg[APIC_SVR / 16] |= SVR_ENABLE;
		for (size_t i = 0; i <= last; i++)
			model.reg[lvt[i] / 16] = FIRMWARE_VECTOR;
		apic_set_up(&access, -1);
		EXPECT(!model.faulted);
		for (size_t i = 0; i <= last; i++)
			EXPECT(model.reg[lvt[i] / 16] & LVT_MASKED);
	}
}

static enum apic_mode choose(enum apic_mode left, bool opted_out, u32 highest_id, bool asked)
{
	const struct apic_facts facts = {
		.left = left, .available = true, .opted_out = opted_out, .highest_id = highest_id};

	return apic_mode_for(&facts, asked);
}

TEST(arch_apic, the_mode_that_firmware_left_is_kept_where_it_reaches_all)
{
	const struct apic_facts old = {.left = APIC_XAPIC, .highest_id = 300};

	EXPECT_EQ(choose(APIC_XAPIC, false, 254, false), APIC_XAPIC);
	EXPECT_EQ(choose(APIC_XAPIC, false, 255, false), APIC_X2APIC);
	EXPECT_EQ(choose(APIC_XAPIC, false, 7, true), APIC_X2APIC);
	EXPECT_EQ(choose(APIC_X2APIC, false, 7, false), APIC_X2APIC);
	EXPECT_EQ(choose(APIC_X2APIC, true, 7, false), APIC_X2APIC);
	EXPECT_EQ(choose(APIC_NONE, false, 0, true), APIC_NONE);
	EXPECT_EQ(apic_mode_for(&old, true), APIC_XAPIC);
}

TEST(arch_apic, firmware_that_opts_out_of_x2apic_is_heard)
{
	EXPECT_EQ(choose(APIC_XAPIC, true, 300, false), APIC_XAPIC);
	EXPECT_EQ(choose(APIC_XAPIC, true, 7, true), APIC_X2APIC);
}
