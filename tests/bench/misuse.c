/*
 * Calls of mm.h from contexts in which they are not allowed (kernel/core/context.h). Each must end
 * the machine, in any build, and name the error. Hosted, tests/kernel/context_test.c makes most of
 * them; tests/qemu/test_context.py has runs of a kernel.
 */
#include "tests/bench/misuse.h"

#include "mm/hugetlb/pool.h"
#include "tests/bench/measure.h"
#include "tests/kernel/cpus.h"

static struct page *page;
static volatile u8 *untouched;

static void alloc(void *arg)
{
	page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
}

/* The caller of such a request may hold a lock, but may not be in an interrupt. */
static void alloc_without_flush(void *arg)
{
	page_alloc(0, USE_UNMOVABLE, PAGE_NOFLUSH, NODE_NONE);
}

static void give(void *arg)
{
	page_free(page);
}

static void put(void *arg)
{
	page_put(page);
}

static void touch(void *arg)
{
	*untouched = 1;
}

static void flush(void *arg)
{
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
}

static void grow(void *arg)
{
	pool_grow(&pool_2m, hvo_mode_selected(), 1);
}

static void map_registers(void *arg)
{
	(void)arg;
	mmio_map(0xfec00000, PAGE_SIZE);
}

static void flush_one(void *arg)
{
	struct shootdown_batch batch = {0};

	(void)arg;
	shootdown_batch_add(&batch, (virt_t)&page, 1);
	shootdown_batch_flush(&batch, SHOOTDOWN_SKIP_IDLE);
}

static void call(void *arg)
{
	call_cpus(&cpus_online, alloc, arg);
}

static void with_lock(irq_fn *fn)
{
	struct spinlock lock = SPINLOCK_INIT(LOCK_POOL);

	spin_lock(&lock);
	fn(NULL);
	spin_unlock(&lock);
}

static void in_interrupt(irq_fn *fn)
{
	const u64 start = clock_ns();

	if (timer_once(NS_PER_MS, fn, NULL) == 0)
		while (clock_ns() - start < NS_PER_S)
			cpu_relax();
}

static void in_call(irq_fn *fn)
{
	call_cpu(cpus_find_other(), fn, NULL);
}

static const struct {
	const char *name;
	void (*from)(irq_fn *fn);
	irq_fn *fn;
} misuses[] = {
	{"alloc-in-interrupt", in_interrupt, alloc},
	{"alloc-noflush-in-interrupt", in_interrupt, alloc_without_flush},
	{"free-in-interrupt", in_interrupt, give},
	{"put-in-interrupt", in_interrupt, put},
	{"touch-in-interrupt", in_interrupt, touch},
	{"alloc-in-call", in_call, alloc},
	{"alloc-noflush-in-call", in_call, alloc_without_flush},
	{"free-in-call", in_call, give},
	{"put-in-call", in_call, put},
	{"map-in-call", in_call, map_registers},
	{"alloc-with-lock", with_lock, alloc},
	{"free-with-lock", with_lock, give},
	{"touch-with-lock", with_lock, touch},
	{"round-with-lock", with_lock, flush},
	{"ranged-round-with-lock", with_lock, flush_one},
	{"call-with-lock", with_lock, call},
	{"grow-with-lock", with_lock, grow},
};

void payload_misuse(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(misuses); i++) {
		if (strcmp(name, misuses[i].name) != 0)
			continue;
		page = page_alloc(0, USE_UNMOVABLE, 0, NODE_NONE);
		untouched = huge_map(MIB(2), PAGE_SIZE, 0);
		misuses[i].from(misuses[i].fn);
	}
}
