/* Shootdowns: a CPU that wakes while a round leaves it alone, under the memory order of x86; ranges. */
#include "tests/prove/prove.h"

#include "kernel/core/quiet.h"
#include "kernel/core/shootdown.c"

static struct percpu sleeper = {.self = &sleeper, .rests = SHOOTDOWN_SKIP_IDLE};
static bool awake;

void tlb_flush_local_all(void)
{
}

static void wake(void)
{
	host_this_cpu = &sleeper;
	rest_end(&shootdown_generation);
	atomic_store_release(&awake, true);
}

PROVE(idle, "3 --mm tso", "a-flag-is-cleared-without-a-fence", "two CPUs, every order of TSO")
{
	bool skipped;
	u64 g;

__CPROVER_ASYNC_1:
	wake();
	g = atomic_fetch_add(&shootdown_generation, 1) + 1;
	skipped = flushes_later(&sleeper, SHOOTDOWN_SKIP_IDLE);
	assume(atomic_load_acquire(&awake));
	prove(!skipped || sleeper.tlb_published >= g);
}

PROVE(batch, "10", "a-neighbour-that-is-none", "any ranges gathered, any range")
{
	struct shootdown_batch batch;
	const u64 pages = ANY_BELOW(u64, 1ULL << 36),
		  start = PAGE_SIZE * ANY_BELOW(u64, (1ULL << 36) - pages),
		  page = start + PAGE_SIZE * ANY_BELOW(u64, pages + 1);
	bool covered = false;

	assume(batch.ranges <= SHOOTDOWN_RANGES_MAX && batch.pages <= 2 * SHOOTDOWN_PAGES_MAX);
	for (unsigned i = 0; i < SHOOTDOWN_RANGES_MAX; i++)
		assume(batch.range[i].pages < 1ULL << 36 && batch.range[i].start < 1ULL << 48);
	shootdown_batch_add(&batch, start, pages);
	prove(batch.ranges <= SHOOTDOWN_RANGES_MAX);
	for (unsigned i = 0; i < batch.ranges; i++)
		covered |= page - batch.range[i].start < batch.range[i].pages * PAGE_SIZE;
	prove(page >= start + pages * PAGE_SIZE || covered || batch.pages > SHOOTDOWN_PAGES_MAX);
}
