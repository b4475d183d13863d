/* HPETs that emulators do not have, and registers that are none. */
#include "arch/x86_64/time/hpet.h"

#include "tests/kernel/test.h"

enum { CAPS_ICH9 = 0x8086a301, CAPS_32_TIMERS = 0x80861f01, PERIOD_ICH9 = 69841279 };
enum { LEVEL = 1 << 1, PERIODIC = 1 << 3, MESSAGES = 1 << 14, PIN_20 = 20 << 9 };

TEST(arch_hpet, registers_that_no_device_decodes_are_no_hpet)
{
	EXPECT(!hpet_is_there(~0U, ~0U));
	EXPECT(!hpet_is_there(~0U, 10000000));
	EXPECT(!hpet_is_there(0x8086a201, 0));
	EXPECT(!hpet_is_there(0x8086a201, HPET_PERIOD_MAX_FS + 1));
	EXPECT(hpet_is_there(0x8086a201, 69841279));
}

/*
 * An HPET as firmware leaves it, in memory: all timers tick. `pins` are those that each timer can
 * be routed to. The registers of timers that do not exist must stay as they are.
 */
static void check_start(u32 caps, u32 pins, u32 timer)
{
	static u32 regs[0x600 / 4];
	volatile void __iomem *hpet = (volatile void __iomem *)(uintptr_t)regs;
	const unsigned timers = (caps >> 8 & 0x1f) + 1;

	memset(regs, 0, sizeof(regs));
	regs[HPET_CAPS / 4] = caps;
	regs[HPET_PERIOD / 4] = PERIOD_ICH9;
	regs[HPET_CONFIG / 4] = HPET_LEGACY | 1u << 31;
	for (unsigned at = HPET_TIMER0; at < sizeof(regs); at += HPET_TIMER_BYTES) {
		regs[at / 4] = timer | HPET_INTERRUPTS;
		regs[at / 4 + 1] = pins;
	}
	EXPECT_EQ(hpet_start(hpet), PERIOD_ICH9);
	EXPECT_EQ(regs[HPET_CONFIG / 4], HPET_ENABLE | 1u << 31);
	for (unsigned n = 0; HPET_TIMER0 + n * HPET_TIMER_BYTES < sizeof(regs); n++) {
		const u32 *own = &regs[(HPET_TIMER0 + n * HPET_TIMER_BYTES) / 4];

		EXPECT_EQ(own[0], n < timers ? timer : timer | HPET_INTERRUPTS);
		EXPECT_EQ(own[1], pins);
	}
}

/* QEMU's timers reach pin 2 only, and those of most chipsets pins 20 to 23. */
TEST(arch_hpet, whatever_its_timers_reach_it_counts_and_none_interrupts)
{
	static const u32 pins[] = {0, 1 << 2, 0xf << 20, ~0U};
	static const u32 timer[] = {PERIODIC, LEVEL | PIN_20, MESSAGES | PERIODIC};

	for (size_t i = 0; i < ARRAY_LEN(pins) * ARRAY_LEN(timer); i++) {
		check_start(CAPS_ICH9, pins[i % 4], timer[i / 4]);
		check_start(CAPS_32_TIMERS, pins[i % 4], timer[i / 4]);
	}
}

TEST(arch_hpet, registers_of_no_hpet_are_not_written)
{
	u32 regs[HPET_TIMER0 / 4 + 8], before[ARRAY_LEN(regs)];

	memset(regs, 0xff, sizeof(regs));
	memcpy(before, regs, sizeof(regs));
	EXPECT_EQ(hpet_start((volatile void __iomem *)(uintptr_t)regs), 0);
	EXPECT(memcmp(regs, before, sizeof(regs)) == 0);
}
