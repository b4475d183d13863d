/* HPETs that are none. */
#include "arch/x86_64/time/hpet.h"

#include "tests/kernel/test.h"

TEST(arch_hpet, registers_that_no_device_decodes_are_no_hpet)
{
	EXPECT(!hpet_is_there(~0U, ~0U));
	EXPECT(!hpet_is_there(~0U, 10000000));
	EXPECT(!hpet_is_there(0x8086a201, 0));
	EXPECT(!hpet_is_there(0x8086a201, HPET_PERIOD_MAX_FS + 1));
	EXPECT(hpet_is_there(0x8086a201, 69841279));
}
