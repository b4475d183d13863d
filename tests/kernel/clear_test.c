/*
 * Clearing. Every instruction clears exactly the range that it was given. Huge pages are cleared in
 * the order that mm/clear/clear.h promises, each page once. A CPU that clears still answers the
 * CPUs that wait for it.
 *
 * The tests observe the order with instructions of their own, which record each range that they are
 * given and touch no memory.
 */
#include "mm/clear/clear.h"

#include "arch/x86_64/clear/clear.h"
#include "arch/x86_64/cpu/cpu.h"
#include "tests/kernel/mm_test.h"
#include "tests/kernel/pattern.h"

#define PATTERN 0xa5a5a5a5a5a5a5a5ULL

enum { BLOCK_WORDS = (1 << BLOCK_SHIFT) / 8, EVENTS_MAX = 1024, GIGA_SLICES = 32 };

/* ---- the instructions ---- */

TEST(arch_clear, every_variant_clears_exactly_what_it_was_given)
{
	static const size_t lengths[] = {0, 64, 128, 192, 1024, 4096, 4096 + 64, 8192, 16384};
	static const size_t starts[] = {64, 128, 192, 1024 + 64, 4096 - 64, 4096};
	static char area[4096 + 16384 + 4096] __attribute__((aligned(4096)));

	for (const struct clear_insn *insn = clear_insns; insn->name; insn++) {
		for (size_t i = 0;
		     i < ARRAY_LEN(lengths) * ARRAY_LEN(starts) && clear_insn_supported(insn);
		     i++) {
			const size_t start = starts[i % ARRAY_LEN(starts)],
				     length = lengths[i / ARRAY_LEN(starts)];

			pattern_fill(area, sizeof(area), 0, i);
			insn->clear(area + start, length);
			EXPECT_PATTERN(area, start, 0, i);
			EXPECT_ZERO(area + start, length);
			EXPECT_PATTERN(area + start + length, sizeof(area) - start - length,
				       start + length, i);
		}
		if (!row_passed("%s", insn->name))
			return;
	}
}

/* Apply the rule to CPUs other than this one. */
TEST(arch_clear, the_rule_knows_each_kind_of_cpu)
{
	static const struct {
		struct cpu_features cpu;
		const char *insn[CLEAR_CLASSES];
	} kinds[] = {
		/* Zen 3 and later */
		{{.vendor = "AuthenticAMD", .erms = true, .clzero = true},
		 {"erms", "clzero", "clzero"}},
		{{.vendor = "AuthenticAMD", .clzero = true},
		 {"rep", "clzero", "clzero"}}, /* Zen 1 and 2 */
		{{.vendor = "HygonGenuine", .clzero = true}, {"rep", "clzero", "clzero"}},
		{{.vendor = "AuthenticAMD", .erms = true},
		 {"erms", "nt", "erms"}}, /* a guest from which CLZERO is hidden */
		{{.vendor = "AuthenticAMD"}, {"rep", "nt", "nt"}},
		{{.vendor = "GenuineIntel", .erms = true}, {"erms", "nt", "nt"}},
		{{.vendor = "GenuineIntel", .slow_strings = true}, {"orig", "nt", "nt"}},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		for (unsigned class = 0; class < CLEAR_CLASSES; class ++)
			EXPECT(strcmp(clear_insn_rule(&kinds[i].cpu, class)->name,
				      kinds[i].insn[class]) == 0);
	for (unsigned class = 0; class < CLEAR_CLASSES; class ++)
		EXPECT(clear_insn_by_cpuid(class) == clear_insn_rule(&cpu_features, class));
}

/* The choice of start-up, unless clear.insn= was given. */
TEST(arch_clear, what_the_cpu_selects_is_used)
{
	char value[16] = "";

	EXPECT(option_show(option_find("clear.insn"), value, sizeof(value)));
	for (unsigned class = 0; class < CLEAR_CLASSES && strcmp(value, "auto") == 0; class ++)
		EXPECT(clear_insn_selected(class) == clear_insn_by_cpuid(class));
}

/* ---- the order ---- */

static struct {
	u32 used;
	struct {
		virt_t addr;
		u64 bytes;
		enum clear_class class;
	} event[EVENTS_MAX];
} seen;

static void note(const void *addr, size_t bytes, enum clear_class class)
{
	const u32 place = atomic_fetch_add(&seen.used, 1);

	if (place < EVENTS_MAX) {
		seen.event[place].addr = (virt_t)addr;
		seen.event[place].bytes = bytes;
		seen.event[place].class = class;
	}
}

static void note_small(void *addr, size_t bytes)
{
	note(addr, bytes, CLEAR_SMALL);
}

static void note_large(void *addr, size_t bytes)
{
	note(addr, bytes, CLEAR_LARGE);
}

static void note_giant(void *addr, size_t bytes)
{
	note(addr, bytes, CLEAR_GIANT);
}

static const struct clear_insn small = {.name = "small", .clear = note_small};
static const struct clear_insn large = {.name = "large", .clear = note_large};
static const struct clear_insn giant = {.name = "giant", .clear = note_giant};

static const struct clear_mode *mode_named(const char *name)
{
	const struct clear_mode *mode = clear_modes;

	while (strcmp(mode->name, name) != 0)
		mode++;
	return mode;
}

/* "Clear" a page that does not exist. */
static void watch_clear(const char *mode, u64 bytes, u64 hint, unsigned threads)
{
	const struct clear_how how = {
		.mode = mode_named(mode), .insn = {&small, &large, &giant}, .threads = threads};

	seen.used = 0;
	clear_huge(&how, (void *)bytes, bytes, hint, NODE_NONE);
}

/*
 * Is event `i` this range of the page, in 4 KiB pages? `bytes` is both the page's address and its
 * size.
 */
static bool event_is(u32 i, u64 bytes, u64 first, u64 end, enum clear_class class)
{
	return i < seen.used && seen.event[i].addr == bytes + first * PAGE_SIZE &&
	       seen.event[i].bytes == (end - first) * PAGE_SIZE && seen.event[i].class == class;
}

TEST(mm_clear, left_then_right_then_the_neighbourhood_of_the_fault)
{
	static const u64 faults[] = {0, 1, 2, 3, 4, 200, 507, 508, 509, 510, 511};

	for (size_t i = 0; i < ARRAY_LEN(faults); i++) {
		const u64 first = faults[i] - MIN(faults[i], 2),
			  end = MIN(faults[i] + 3, BLOCK_FRAMES);
		u32 at = 0;

		watch_clear("multi", MIB(2), faults[i] * PAGE_SIZE + 8 * i, 4);
		if (first > 0)
			EXPECT(event_is(at++, MIB(2), 0, first, CLEAR_LARGE));
		if (end < BLOCK_FRAMES)
			EXPECT(event_is(at++, MIB(2), end, BLOCK_FRAMES, CLEAR_LARGE));
		EXPECT(event_is(at++, MIB(2), first, end, CLEAR_SMALL));
		EXPECT_EQ(seen.used, at);
	}
}

/*
 * "Clear" a page that does not exist as the switches say, with one CPU, in extents. The pieces must
 * follow each other and be `extent` bytes long.
 */
static void expect_extents(u64 bytes, u64 extent)
{
	struct clear_how how = clear_how_selected();

	how.mode = mode_named("multi");
	how.insn[CLEAR_SMALL] = &small;
	how.insn[CLEAR_LARGE] = &large;
	how.insn[CLEAR_GIANT] = &giant;
	how.threads = 1;
	seen.used = 0;
	clear_huge(&how, (void *)bytes, bytes, CLEAR_NO_HINT, NODE_NONE);
	EXPECT_EQ(seen.used, bytes / extent);
	for (u32 e = 0; e < MIN(seen.used, bytes / extent); e++)
		EXPECT(event_is(e, bytes, e * (extent / PAGE_SIZE), (e + 1) * (extent / PAGE_SIZE),
				clear_class_of(bytes)));
}

TEST(mm_clear, no_instruction_gets_more_than_clear_extent)
{
	static const struct {
		const char *value;
		u64 extent;
	} extents[] = {{"4K", KIB(4)},     {"64K", KIB(64)}, {"2M", MIB(2)},   {"32M", MIB(32)},
		       {"256M", MIB(256)}, {"1G", GIB(1)},   {"whole", GIB(1)}};

	REQUIRE(option_find("clear.extent"));
	test_option("clear.extent", "32M"); /* the old value returns when the case ends */
	for (size_t i = 0; i < ARRAY_LEN(extents); i++) {
		REQUIRE(option_set(option_find("clear.extent"), extents[i].value) == 0);
		expect_extents(MIB(2), MIN(extents[i].extent, MIB(2)));
		/* smaller extents would need more events than can be noted */
		if (extents[i].extent >= MIB(2))
			expect_extents(GIB(1), extents[i].extent);
	}
	REQUIRE(option_set(option_find("clear.extent"), "whole") == 0);
	/* this mode always works in steps of 4 KiB, each page once and that of the fault last */
	watch_clear("page", MIB(2), 300 * PAGE_SIZE, 1);
	EXPECT_EQ(seen.used, BLOCK_FRAMES);
	EXPECT(event_is(BLOCK_FRAMES - 1, MIB(2), 300, 301, CLEAR_SMALL));
	/* CPUs share whole slices, also if their number does not divide that of the slices */
	watch_clear("multi", GIB(1), CLEAR_NO_HINT, 3);
	EXPECT_EQ(seen.used, GIGA_SLICES);
}

/* ---- every byte ---- */

enum { LINE = 64 };

/* Real memory of an arena, in one piece, behind metadata memory and another block. */
static char *room_of(const struct arena *a)
{
	return phys_to_virt(block_pfn(arena_block(a) + 2) << PAGE_SHIFT);
}

/*
 * Fill the page and one line before and behind it with a pattern, then clear the page. The page
 * must be zero, and the lines must be unchanged.
 */
static void expect_cleared(const struct clear_how *how, char *page, u64 bytes, u64 hint, u64 use)
{
	char *const from = page - LINE;

	pattern_fill(from, bytes + 2 * LINE, (virt_t)from, use);
	clear_huge(how, page, bytes, hint, NODE_NONE);
	EXPECT_ZERO(page, bytes);
	EXPECT_PATTERN(from, LINE, (virt_t)from, use);
	EXPECT_PATTERN(page + bytes, LINE, (virt_t)page + bytes, use);
	if (test_failed())
		print("  # clear=%s clear.insn=%s, %llu bytes, wanted first %llx, extents of "
		      "%llx\n",
		      how->mode->name, how->insn[0]->name, bytes, hint, how->extent);
}

/*
 * Clear with hints at the first and the last byte of the page, in its middle, beside the borders of
 * the neighbourhoods, and without a hint.
 */
static void expect_all_hints(struct clear_how *how, char *page, u64 bytes)
{
	const u64 hints[] = {
		CLEAR_NO_HINT, 0,         2 * PAGE_SIZE,         3 * PAGE_SIZE - 1,
		bytes / 2 - 1, bytes / 2, bytes - 3 * PAGE_SIZE, bytes - 2 * PAGE_SIZE - 1,
		bytes - 1};

	for (size_t i = 0; i < ARRAY_LEN(hints) && !test_failed(); i++)
		expect_cleared(how, page, bytes, hints[i], i);
}

/* Let `how` use this instruction for all sizes. Returns true if this CPU supports it. */
static bool use_insn(struct clear_how *how, const struct clear_insn *insn)
{
	for (unsigned class = 0; class < CLEAR_CLASSES; class ++)
		how->insn[class] = insn;
	return clear_insn_supported(insn);
}

TEST_ARENA(mm_clear, all_bytes_whatever_the_instruction_the_mode_and_the_hint, arena_borrow(MIB(8)))
{
	struct clear_how how = {.threads = 1};
	char *const room = room_of(a);

	for (const struct clear_insn *insn = clear_insns; insn->name; insn++) {
		for (how.mode = clear_modes; use_insn(&how, insn) && how.mode->name; how.mode++) {
			expect_all_hints(&how, room, KIB(64));
			expect_all_hints(&how, room, MIB(2));
		}
	}
}

/*
 * Clear with extents that do not divide the cleared length, and clear sizes beyond 32 MiB, which
 * CPUs share, in whole extents and with a remainder.
 */
TEST_ARENA(mm_clear, all_bytes_whatever_the_extents_and_the_cpus_that_share_them,
	   arena_borrow(MIB(128)))
{
	static const u64 extents[] = {KIB(64), MIB(1), 0, CLEAR_WHOLE};
	struct clear_how how = clear_how_selected();
	char *const room = room_of(a);

	for (how.mode = clear_modes; how.mode->name; how.mode++) {
		for (size_t i = 0; i < ARRAY_LEN(extents); i++) {
			how.extent = extents[i];
			how.threads = 1;
			expect_cleared(&how, room, MIB(2), 5 * PAGE_SIZE, 10 + i);
			how.threads = cpumask_weight(&cpus_online);
			expect_cleared(&how, room, i == 0 ? MIB(66) : MIB(34), CLEAR_NO_HINT,
				       20 + i);
		}
	}
	how = clear_how_selected();
	expect_cleared(&how, room, MIB(96), CLEAR_NO_HINT, 30);
}

/* Clear any number of pages up to 80. From 64 pages on another instruction is used. */
TEST_ARENA(mm_clear, all_bytes_of_any_number_of_pages, arena_borrow(MIB(8)))
{
	char *const room = room_of(a);

	for (u64 pages = 0; pages <= 80 && !test_failed(); pages++) {
		char *const start = room + pages % 3 * PAGE_SIZE, *const from = start - LINE;
		const u64 bytes = pages * PAGE_SIZE;

		pattern_fill(from, bytes + 2 * LINE, (virt_t)from, pages);
		clear_pages(start, pages);
		EXPECT_ZERO(start, bytes);
		EXPECT_PATTERN(from, LINE, (virt_t)from, pages);
		EXPECT_PATTERN(start + bytes, LINE, (virt_t)start + bytes, pages);
	}
}

/* ---- answering while a CPU clears ---- */

static struct {
	u32 extents, began, answered, answered_before_the_second;
} answering;

static void answer(void *arg)
{
	atomic_store_release(&answering.answered, 1);
}

/* The first extent lasts until this CPU is called, or at most until the deadline. */
static void slow_extent(void *addr, size_t bytes)
{
	const u64 end = clock_ns() + 4 * wait_deadline_cpus();

	if (answering.extents++ > 0) {
		answering.answered_before_the_second |= atomic_load_acquire(&answering.answered);
		return;
	}
	atomic_store_release(&answering.began, 1);
	while (!atomic_load_acquire(&this_cpu()->call_words) && clock_ns() < end)
		cpu_relax();
}

static void clear_with_interrupts_off(void *arg)
{
	static const struct clear_insn slow = {.name = "slow", .clear = slow_extent};
	const struct clear_how how = {.mode = arg, .insn = {&slow, &slow, &slow}, .threads = 1};
	const irq_flags_t flags = irq_save();

	clear_huge(&how, (void *)GIB(1), GIB(1), CLEAR_NO_HINT, NODE_NONE);
	irq_restore(flags);
}

TEST(mm_clear, a_cpu_that_clears_with_interrupts_off_answers_between_extents)
{
	const cpu_t cpu = cpus_find_other();

	SKIP_ON_ONE_CPU();
	__builtin_memset(&answering, 0, sizeof(answering));
	REQUIRE(work_start(cpu, clear_with_interrupts_off, (void *)(virt_t)mode_named("multi")) ==
		0);
	CPUS_WAIT_FOR(atomic_load_acquire(&answering.began), cpu, "a CPU to begin to clear");
	call_cpus(&cpus_online, answer, NULL);
	work_wait(cpu, 0);
	EXPECT_EQ(answering.extents, GIGA_SLICES);
	EXPECT(answering.answered_before_the_second);
}

/* ---- interrupts while a CPU clears ---- */

enum { SAMPLES = 64 }; /* words of the extent that the handler reads */

static struct {
	u64 *page;
	/* met: an interrupt found the extent half cleared; stop: the test wants no more extents */
	u32 met, stop;
} middle;

static u64 *sample(unsigned i)
{
	return middle.page + (size_t)i * BLOCK_WORDS / SAMPLES;
}

static void write_samples(void)
{
	for (unsigned i = 0; i < SAMPLES; i++)
		*(volatile u64 *)sample(i) = PATTERN;
}

static void look_at_extent(void *arg)
{
	unsigned zeros = 0;

	for (unsigned i = 0; i < SAMPLES; i++)
		zeros += *(volatile u64 *)sample(i) == 0;
	if (zeros > 0 && zeros < SAMPLES)
		atomic_store_relaxed(&middle.met, 1);
}

static void clear_extents_until_told(void *arg)
{
	const struct clear_how how = clear_how_selected();

	while (!atomic_load_acquire(&middle.stop)) {
		/* an interrupt must not see half-written samples */
		const irq_flags_t flags = irq_save();

		write_samples();
		irq_restore(flags);
		clear_huge(&how, middle.page, MIB(2), CLEAR_NO_HINT, NODE_NONE);
		cpu_relax();
	}
}

/*
 * clear.h promises that an extent can be interrupted, even with clear.extent=whole: with interrupts
 * on, its length then delays no other CPU.
 */
TEST(mm_clear, an_interrupt_is_taken_in_the_middle_of_an_extent)
{
	const u64 end = clock_ns() + 4 * wait_deadline_cpus();
	const cpu_t cpu = cpus_find_other();
	struct page *page = page_alloc(BLOCK_ORDER, USE_MOVABLE, 0, NODE_NONE);

	if (cpu == CPU_NONE || !page) {
		if (page)
			page_free(page);
		SKIP("needs two CPUs and 2 MiB in one piece");
	}
#ifdef ASHLAR_HOSTED
	page_free(page);
	SKIP("a hosted CPU takes no interrupt within an instruction");
#endif
	__builtin_memset(&middle, 0, sizeof(middle));
	middle.page = page_address(page);
	write_samples(); /* the CPU may be interrupted before it begins */
	REQUIRE(work_start(cpu, clear_extents_until_told, NULL) == 0);
	while (!atomic_load_relaxed(&middle.met) && clock_ns() < end)
		call_cpu(cpu, look_at_extent, NULL);
	atomic_store_release(&middle.stop, 1);
	work_wait(cpu, 0);
	EXPECT(middle.met);
	page_free(page);
}
