/*
 * Which clearing instruction is fastest on this machine, for each class of sizes: measured at boot
 * with clear_calibrate=on (clear.h).
 *
 * Variants take turns, so that a slow moment meets all of them, and the fastest of ROUNDS counts,
 * because disturbances only ever add time. Small pages are measured as the allocator hands them
 * out: a few, again and again, from the cache. Huge pages are measured cold: each turn clears the
 * whole of a buffer that is larger than a CPU's own caches.
 */
#include "mm/clear_calibrate.h"

#include <arch/clock.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/clear/clear.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"

enum { ROUNDS = 5, BLOCKS = 8, SMALL_PAGES = 64, INSNS_MAX = 8 };

static bool calibrate;
OPTION_BOOL(clear_calibrate, calibrate,
	    "measure at boot which instruction clears fastest, for each size");

/* One class's measurement: pieces of `extent` bytes in each of `count` buffers. */
struct series {
	char *buffer[BLOCKS];
	unsigned count;
	u64 bytes, extent;
};

/*
 * Leave small pages as their last user does, in the cache. A variant that bypasses the cache has to
 * get them out of it again.
 */
static void use_series(const struct series *s)
{
	for (unsigned i = 0; i < s->count; i++)
		for (u64 at = 0; at < s->bytes; at += 64)
			*(volatile u64 *)(s->buffer[i] + at) = at;
}

static u64 clear_series(const struct series *s, const struct clear_insn *insn)
{
	u64 start;

	if (s->extent < CLEAR_LARGE_FROM)
		use_series(s);
	start = clock_ns();
	for (unsigned i = 0; i < s->count; i++)
		for (u64 at = 0; at < s->bytes; at += s->extent)
			clear_with(insn, s->buffer[i] + at, s->extent);
	return clock_ns() - start;
}

static void calibrate_class(enum clear_class class, const struct series *s)
{
	static const char *const names[] = {"small", "large", "giant"};
	u64 best[INSNS_MAX];
	unsigned fastest = 0, cpuid = 0;

	for (unsigned i = 0; i < ARRAY_LEN(best); i++)
		best[i] = ~0ULL;
	/* the first round makes the host back the memory */
	for (unsigned round = 0; round <= ROUNDS; round++) {
		for (unsigned i = 0; clear_insns[i].name; i++) {
			if (!clear_insns[i].supported())
				continue;
			if (round <= 1)
				best[i] = ~0ULL;
			best[i] = MIN(best[i], MAX(clear_series(s, &clear_insns[i]), 1));
		}
	}
	for (unsigned i = 0; clear_insns[i].name; i++) {
		if (&clear_insns[i] == clear_insn_by_cpuid(class))
			cpuid = i;
		if (clear_insns[i].supported() && best[i] < best[fastest])
			fastest = i;
	}
	print("  clear    %s: %s is fastest, CPUID's %s takes %llu%% of its time%s\n", names[class],
	      clear_insns[fastest].name, clear_insns[cpuid].name, best[cpuid] * 100 / best[fastest],
	      clear_insn_choose(class, &clear_insns[fastest]) ? ""
							      : "; clear.insn= overrides this");
}

/* Measure one extent of 32 MiB, part of a 1 GiB page, if there is one. */
static void calibrate_giant(void)
{
	struct page *page = page_alloc(GIGA_ORDER, USE_MOVABLE, 0, cpu_data(0)->node);

	if (!page)
		return;
	calibrate_class(CLEAR_GIANT, &(struct series){.buffer = {page_address(page)},
						      .count = 1,
						      .bytes = CLEAR_EXTENT,
						      .extent = CLEAR_EXTENT});
	page_free(page);
}

void clear_calibrate(void)
{
	const u64 block = 1ULL << BLOCK_SHIFT;
	struct series s = {.bytes = block, .extent = block};
	struct page *page[BLOCKS];

	if (!calibrate)
		return;
	for (; s.count < BLOCKS; s.count++) {
		page[s.count] = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, cpu_data(0)->node);
		if (!page[s.count])
			break;
		s.buffer[s.count] = page_address(page[s.count]);
	}
	if (s.count == 0)
		return;
	calibrate_class(CLEAR_LARGE, &s);
	calibrate_class(CLEAR_SMALL, &(struct series){.buffer = {s.buffer[0]},
						      .count = 1,
						      .bytes = SMALL_PAGES * PAGE_SIZE,
						      .extent = PAGE_SIZE});
	while (s.count > 0)
		page_free(page[--s.count]);
	calibrate_giant();
}
