/* Stacks that programs take. That a CPU which overruns one is stopped: test_payload_api.py. */

#include "kernel/core/reason_set.h"
#include "tests/kernel/test.h"
#include "mm/mapping/fault.h"
#include "mm/mapping/stack.h"
#include "mm/mm.h"

static bool described(virt_t addr, const char *glob)
{
	char text[256];

	fault_describe(FAULT_BUG, addr, true, false, text, sizeof(text));
	return glob_match(glob, text);
}

TEST(mm_stack, its_guard_is_told_from_other_addresses)
{
	char *top = stack_alloc(KIB(16)), *plain = huge_map(KIB(16), PAGE_SIZE, 0);

	REQUIRE(top && plain);
	EXPECT(described((virt_t)top - KIB(16) - 1, "*overflow of the stack of 16 KiB that *"));
	EXPECT(described((virt_t)top - KIB(16) - MIB(100), "*overflow of the stack of 16 KiB*"));
	EXPECT(!described((virt_t)top + PAGE_SIZE, "*overflow of*"));
	EXPECT(!described((virt_t)plain - 1, "*overflow of the stack*"));
	stack_free(top);
	EXPECT(!described((virt_t)top - KIB(16) - 1, "*overflow of the stack*"));
	huge_unmap(plain);
}

TEST(mm_stack, one_that_cannot_be_had)
{
	reason_set(REASON_NONE);
	EXPECT(!stack_alloc(0));
	EXPECT_EQ(last_reason(), REASON_BAD_SIZE);
}
