/* Which timer of an HPET may tick for the watchdog, on machines that no emulator is. */
#include "arch/x86_64/time/hpet.h"

#include "kernel/run/test.h"

enum {
	REPEATS = 1 << 4,
	PINS_24 = 24,
	QEMU_Q35 = 0xff0104,
	QEMU_PC = 0x4,
	ICH10_TIMER3 = 0xf00800
};

static int choose(u32 config, u32 routes, u32 pins, u32 *route)
{
	const struct hpet_timer timers[] = {{0, ~0U}, {config, routes}};

	*route = 0;
	return hpet_tick_choose(timers, ARRAY_LEN(timers), pins, route);
}

TEST(arch_hpet, the_highest_pin_above_those_of_isa_is_taken)
{
	u32 route;

	EXPECT_EQ(choose(REPEATS, QEMU_Q35, PINS_24, &route), 1);
	EXPECT_EQ(route, 23);
	EXPECT_EQ(choose(REPEATS, ICH10_TIMER3, PINS_24, &route), 1);
	EXPECT_EQ(route, 23);
	EXPECT_EQ(choose(REPEATS, ~0U, 120, &route), 1);
	EXPECT_EQ(route, 31);
	EXPECT_EQ(choose(REPEATS, ~0U, 17, &route), 1);
	EXPECT_EQ(route, 16);
}

TEST(arch_hpet, a_pin_of_isa_is_never_taken)
{
	u32 route;

	EXPECT_EQ(choose(REPEATS, QEMU_PC, PINS_24, &route), -ENOENT);
	EXPECT_EQ(choose(REPEATS, 0xffff, PINS_24, &route), -ENOENT);
	EXPECT_EQ(choose(REPEATS, QEMU_Q35, 16, &route), -ENOENT);
	EXPECT_EQ(choose(REPEATS, ~0U, 0, &route), -ENOENT); /* no I/O APIC */
	EXPECT_EQ(choose(0, QEMU_Q35, PINS_24, &route), -ENOENT);
}

TEST(arch_hpet, registers_that_no_device_decodes_are_no_hpet)
{
	EXPECT(!hpet_is_there(~0U, ~0U));
	EXPECT(!hpet_is_there(~0U, 10000000));
	EXPECT(!hpet_is_there(0x8086a201, 0));
	EXPECT(!hpet_is_there(0x8086a201, HPET_PERIOD_MAX_FS + 1));
	EXPECT(hpet_is_there(0x8086a201, 69841279));
}
