/* The block table: which state may become which. */
#include "kernel/core/panic.h"
#include "kernel/run/test.h"
#include "mm/memmap/block_state.h"
#include "tests/kernel/arena.h"

/* The table of the design, repeated pair by pair, so that neither list can drift alone. */
static const struct {
	u8 from, to;
} changes[] = {
	{BLOCK_UNOPENED, BLOCK_ABSENT}, {BLOCK_UNOPENED, BLOCK_RESERVED},
	{BLOCK_UNOPENED, BLOCK_BARE},   {BLOCK_UNOPENED, BLOCK_FULL},
	{BLOCK_UNOPENED, BLOCK_META},   {BLOCK_BARE, BLOCK_HUGE},
	{BLOCK_BARE, BLOCK_NOHEAD},     {BLOCK_BARE, BLOCK_FULL},
	{BLOCK_BARE, BLOCK_META},       {BLOCK_BARE, BLOCK_UNOPENED},
	{BLOCK_HUGE, BLOCK_BARE},       {BLOCK_HUGE, BLOCK_FULL},
	{BLOCK_NOHEAD, BLOCK_BARE},     {BLOCK_FULL, BLOCK_HUGE},
	{BLOCK_FULL, BLOCK_META},       {BLOCK_FULL, BLOCK_UNOPENED},
	{BLOCK_META, BLOCK_BARE},       {BLOCK_META, BLOCK_FULL},
	{BLOCK_META, BLOCK_UNOPENED},   {BLOCK_FULL, BLOCK_NOHEAD},
	{BLOCK_NOHEAD, BLOCK_FULL},
};

static bool listed(unsigned from, unsigned to)
{
	for (unsigned i = 0; i < ARRAY_LEN(changes); i++)
		if (changes[i].from == from && changes[i].to == to)
			return true;
	return false;
}

TEST(mm_block, only_listed_changes_are_legal)
{
	for (unsigned from = 0; from <= BLOCK_STATES; from++)
		for (unsigned to = 0; to <= BLOCK_STATES; to++)
			if (block_change_legal(from, to) != listed(from, to))
				test_fail(__FILE__, __LINE__, "%s to %s is %s",
					  block_state_name(from), block_state_name(to),
					  listed(from, to) ? "refused" : "allowed");
}
