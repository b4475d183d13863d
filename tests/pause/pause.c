/*
 * The pauses of a guest whose schedule is input: see points.h. The Makefile links this with
 * make run SEED= only.
 */
#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "tests/kernel/test.h"
#include "tests/kernel/cpus.h"
#include "tests/pause/points.h"

enum { RATE = 16, PAUSES_MAX = 4, TURNS = 8 };

static u64 seed;
OPTION_U64(test.pause_seed, seed, 0, UINT64_MAX, "CPUs pause at points drawn from it; 0: never");

/* CPUs write these as they like: QEMU runs one at a time, and a lost update has the same effect. */
static u64 drawn, pauses;

/* Knuth's MMIX (The Art of Computer Programming, vol. 2, 3.3.4); the high bits are used. */
void pause_at_point(void)
{
	u64 times;

	if (seed == 0)
		return;
	drawn = (drawn ^ seed) * 6364136223846793005ULL + 1442695040888963407ULL;
	times = (drawn >> 40) % RATE ? 0 : 1 + (drawn >> 48) % PAUSES_MAX;
	pauses += times;
	while (times--)
		cpu_relax();
}

static char order[CPUS_TOGETHER * TURNS + 1];
static u32 turn;

static void take_turns(void *unused)
{
	for (u32 i = 0; i < TURNS; i++)
		order[atomic_fetch_add(&turn, 1)] = (char)('0' + cpu_id());
}

TEST(guest_pause, the_seed_decides_whose_turn_it_is)
{
	cpu_t cpus;

	turn = 0;
	memset(order, 0, sizeof(order));
	cpus = cpus_run_together(take_turns, NULL);
	EXPECT_EQ(turn, cpus * TURNS);
	EXPECT(pauses > 0);
	print("  # turns %s, %llu pauses\n", order, pauses);
}
