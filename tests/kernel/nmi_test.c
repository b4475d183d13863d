/*
 * NMIs come at any moment: before a halt, between the two writes of a message, and in a row
 * although the handler of the first one has met a fault. Frames and registers of the test's own
 * show the effect, and so do real NMIs that a CPU sends to itself.
 */
#ifndef ASHLAR_HOSTED

#include <arch/peek.h>

#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/interrupts/nmi.h"
#include "arch/x86_64/interrupts/nmi_tick.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/context.h"
#include "mm/memmap/page.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/test.h"

enum { RTC_PIN = 8, NAP = 50 };
#define LIMIT (5 * NS_PER_S)

/*
 * STI holds interrupts back until after the HLT, but an NMI in between lets them in. The NMI must
 * therefore not return to the HLT.
 */
TEST(arch_nmi, one_that_comes_before_a_halt_ends_it)
{
	struct trap_frame frame = {.vector = TRAP_NMI, .rip = (u64)halt_insn};
	const irq_flags_t flags = irq_save();

	this_cpu()->arch.sampled = 1; /* another CPU asked and gave up, so there is nothing to do */
	EXPECT(!trap_dispatch(&frame));
	EXPECT_EQ(frame.rip, (u64)halt_insn + 1);
	this_cpu()->arch.sampled = 1;
	EXPECT(!trap_dispatch(&frame));
	EXPECT_EQ(frame.rip, (u64)halt_insn + 1);
	irq_restore(flags);
}

TEST(arch_nmi, a_message_of_its_own_leaves_the_interrupted_one_whole)
{
	enum { ICR = 0x300 / 4, ICR_HIGH = 0x310 / 4, COMMAND = ICR_NMI | ICR_ASSERT };
	static volatile u32 regs[KIB(4) / sizeof(u32)];

	regs[ICR_HIGH] = 5 << 24; /* the first write of a message to CPU 5 */
	EXPECT(xapic_send((volatile void __iomem *)regs, 7, COMMAND, true));
	EXPECT_EQ(regs[ICR], COMMAND);
	EXPECT_EQ(regs[ICR_HIGH], 5 << 24);
	EXPECT(xapic_send((volatile void __iomem *)regs, 7, COMMAND, false));
	EXPECT_EQ(regs[ICR_HIGH], 7 << 24);
}

static u32 calls, depth, deepest;
static bool peeked;

static bool send_to_self(void)
{
	return apic_send(this_cpu()->arch.apic_id, ICR_NMI | ICR_ASSERT);
}

static void await_calls(u32 count)
{
	const u64 start = clock_ns();

	while (atomic_load_relaxed(&calls) < count && clock_ns() - start < LIMIT)
		cpu_relax();
}

/* The first NMI faults and then sends the next one, which must wait until the first is over. */
static void fault_and_send(struct trap_frame *frame)
{
	u64 value;

	depth++;
	deepest = MAX(deepest, depth);
	if (calls++ == 0) {
		peeked = peek_u64((void *)8, &value);
		send_to_self();
		clock_delay_ns(NS_PER_MS);
	}
	depth--;
}

TEST(arch_nmi, a_fault_inside_does_not_let_the_next_one_in)
{
	if (apic_mode() == APIC_NONE)
		SKIP("needs a local APIC");
	calls = depth = deepest = 0;
	peeked = true;
	trap_set_handler(TRAP_NMI, fault_and_send);
	EXPECT(send_to_self());
	await_calls(2);
	nmi_init();
	EXPECT(calls >= 2);
	EXPECT_EQ(deepest, 1);
	EXPECT(!peeked);
}

/*
 * Between a page fault and the moment when its handler reads CR2, only an NMI or a machine check
 * can come. Their handlers may fault, too, but must leave the address of the first fault in CR2.
 */
enum { FAULTED_AT = 0x123450 };

static void fault_elsewhere(struct trap_frame *frame)
{
	u64 value;

	peeked = peek_u64((void *)8, &value);
	atomic_store_release(&calls, 1);
}

TEST(arch_nmi, the_address_of_an_interrupted_page_fault_is_kept)
{
	const irq_flags_t flags = irq_save();
	const u64 start = clock_ns();
	u64 value;

	calls = 0;
	trap_set_handler(TRAP_NMI, fault_elsewhere);
	EXPECT(!peek_u64((void *)(u64)FAULTED_AT, &value));
	while (apic_mode() != APIC_NONE && send_to_self() && !atomic_load_acquire(&calls) &&
	       clock_ns() - start < LIMIT)
		cpu_relax();
	value = read_cr2();
	nmi_init();
	irq_restore(flags);
	if (apic_mode() == APIC_NONE)
		SKIP("needs a local APIC");
	EXPECT_EQ(calls, 1);
	EXPECT(!peeked);
	EXPECT_EQ(value, FAULTED_AT);
}

TEST(arch_nmi, a_machine_check_keeps_the_address_of_a_page_fault)
{
	struct trap_frame frame = {.vector = TRAP_MACHINE_CHECK};
	const irq_flags_t flags = irq_save();
	u64 value;

	calls = 0;
	trap_set_handler(TRAP_MACHINE_CHECK, fault_elsewhere);
	EXPECT(!peek_u64((void *)(u64)FAULTED_AT, &value));
	trap_dispatch(&frame);
	value = read_cr2();
	trap_set_handler(TRAP_MACHINE_CHECK, NULL);
	irq_restore(flags);
	EXPECT_EQ(calls, 1);
	EXPECT_EQ(value, FAULTED_AT);
}

static void count_calls(struct trap_frame *frame)
{
	calls++;
}

TEST(arch_nmi, a_cpu_that_does_not_say_where_it_is_is_asked_in_vain)
{
	virt_t where[4];
	cpu_t other;

	SKIP_ON_ONE_CPU();
	other = cpus_find_other();
	EXPECT(cpu_where(other, where, ARRAY_LEN(where), 10 * NS_PER_S) > 0);
	calls = 0;
	trap_set_handler(TRAP_NMI, count_calls);
	EXPECT_EQ(cpu_where(other, where, ARRAY_LEN(where), NS_PER_MS), 0);
	await_calls(1); /* so that none is on its way when the kernel's handler is back */
	nmi_init();
	EXPECT(cpu_where(other, where, ARRAY_LEN(where), 10 * NS_PER_S) > 0);
}

static u32 word;
static bool may;

/* A fault inside the handler does not change the context. */
static void look_at_context(struct trap_frame *frame)
{
	u64 value;

	peeked = peek_u64((void *)8, &value);
	word = this_cpu()->context;
	may = context_may(CONTEXT_LOCKED);
	atomic_store_release(&calls, 1);
}

TEST(arch_nmi, what_runs_in_one_or_in_a_machine_check_is_no_ordinary_code)
{
	struct trap_frame frame = {.vector = TRAP_NMI};
	const irq_flags_t flags = irq_save();

	for (unsigned n = 0; n < 2; n++) {
		word = 0;
		may = true;
		trap_set_handler((unsigned)frame.vector, look_at_context);
		trap_dispatch(&frame);
		EXPECT_EQ(word, CONTEXT_NMI);
		EXPECT(!may);
		EXPECT_EQ(this_cpu()->context, 0);
		trap_set_handler((unsigned)frame.vector, NULL);
		frame.vector = TRAP_MACHINE_CHECK;
	}
	nmi_init();
	irq_restore(flags);
}

/*
 * The watchdog's tick is the only NMI that comes unasked, and no other device has its pin. The CPU
 * naps, because each PAUSE gives QEMU a turn around all CPUs: 18 s of processor time with 32.
 */
TEST(arch_nmi, the_watchdog_ticks_once_a_second_and_nothing_else_does)
{
	const u64 start = clock_ns();
	u64 ticked;
	u32 before;

	if (!nmi_tick_is_on)
		SKIP("needs an RTC that ticks");
	calls = 0;
	before = atomic_load_acquire(&nmi_ticks);
	while (atomic_load_acquire(&nmi_ticks) == before && clock_ns() - start < LIMIT)
		cpu_nap(NAP);
	EXPECT(atomic_load_acquire(&nmi_ticks) != before);
	trap_set_handler(TRAP_NMI, count_calls);
	ticked = clock_ns();
	while (clock_ns() - ticked < NS_PER_S * 3 / 4)
		cpu_nap(NAP);
	nmi_init();
	EXPECT(calls <= 1);
}

static bool says(u8 status, u8 stuck, const char *begin)
{
	const char *words = nmi_board_says(status, stuck);

	return words && strncmp(words, begin, strlen(begin)) == 0;
}

TEST(arch_nmi, the_board_is_believed_but_for_bits_that_stick)
{
	EXPECT(!nmi_board_says(0xff, 0)); /* there is no such port */
	EXPECT(!nmi_board_says(0x3f, 0));
	EXPECT(says(0x90, 0, "the board reports a memory parity error"));
	EXPECT(says(0x40, 0x80, "an expansion card"));
	EXPECT(!nmi_board_says(0xc0, 0xc0));
	EXPECT(says(0xc0, 0x80, "an expansion card"));
}

#endif
