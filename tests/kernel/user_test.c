/*
 * Ring 3. Small programs in machine code (user_programs.S) run in pages that the cases map by hand.
 * The table of user_ops notes what comes. These cases exist in the kernel only, because the hosted
 * machine has no ring 3.
 */
#include <arch/pgtable.h>

#include "tests/kernel/test.h"

#ifndef ASHLAR_HOSTED

#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/irq.h>
#include <arch/user.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/trap_frame.h"
#include "arch/x86_64/interrupts/nmi.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/context.h"
#include "kernel/core/printk.h"
#include "kernel/core/shootdown.h"
#include "kernel/lib/string.h"
#include "mm/mm.h"
#include "tests/kernel/attempt.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/fixture.h"
#include "tests/kernel/user_test.h"

#define LIMIT       (10 * NS_PER_S)
#define HAMMER_TIME (700 * NS_PER_MS)

enum { DIRECTION = 1 << 10, ALIGNMENT = 1 << 18, NESTED = 1 << 14 };

extern const u8 user_programs[], user_programs_end[];
extern const u8 user_program_leave[], user_program_registers[], user_program_faults[],
	user_program_bases[], user_program_flags[], user_program_spin[], user_program_hammer[],
	user_program_enters[], user_program_vectors[], user_program_vectors_at_start[],
	user_program_rounds_up[], user_program_elsewhere[], user_program_step[],
	user_program_step_call[];

/* Instructions that ring 3 may not use; the last ones only if the CPU has UMIP. */
extern const struct refusal {
	u64 offset, vector;
	const char *name;
} user_refusals[];
extern const u32 user_refusal_count, user_refusals_without_umip;

/* ---- the pages ---- */

enum { FRAMES_MAX = 16 };

static const struct user_ops test_ops;

static struct {
	struct page *frames[FRAMES_MAX]; /* tables and pages, to be freed */
	unsigned count;
	u8 *code, *data;
	struct page *far;
} space;

static struct page *new_frame(void)
{
	struct page *page = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);

	if (page && space.count < FRAMES_MAX)
		space.frames[space.count++] = page;
	return page;
}

/* Store the entry of a 4 KiB page, and make the tables above it. */
static bool map(virt_t virt, pte_t value)
{
	pfn_t table = pgtable_root();

	for (int level = PT_PGD; level >= PT_PAGE; level--) {
		pte_t *entry = (pte_t *)phys_to_virt(table << PAGE_SHIFT) + pt_index(virt, level);

		if (level == PT_PAGE) {
			pte_store(entry, virt, level, value);
			break;
		}
		if (!pte_present(pte_load(entry))) {
			struct page *page = new_frame();

			if (!page)
				return false;
			pte_store(entry, virt, level, pte_make_table_user(page_pfn(page)));
		}
		table = pte_pfn(pte_load(entry));
	}
	return true;
}

static struct page *map_new(virt_t virt, unsigned rights)
{
	struct page *page = new_frame();

	return page && map(virt, pte_make_user(page_pfn(page), PT_PAGE, rights)) ? page : NULL;
}

/* Remove what the cases have mapped: the first entry of the root. */
static void space_close(void)
{
	pte_store((pte_t *)phys_to_virt(pgtable_root() << PAGE_SHIFT), 0, PT_PGD, 0);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	while (space.count > 0)
		page_free(space.frames[--space.count]);
}

static bool space_open(void)
{
	struct page *code, *data, *none;

	memset(&space, 0, sizeof(space));
	user_set_ops(&test_ops);
	code = map_new(USER_CODE_AT, USER_RIGHT_READ | USER_RIGHT_EXEC);
	data = map_new(USER_DATA_AT, USER_RIGHT_READ | USER_RIGHT_WRITE);
	none = map_new(USER_NONE_AT, 0);
	space.far = new_frame();
	if (!code || !data || !none || !space.far ||
	    !map_new(USER_STACK_AT, USER_RIGHT_READ | USER_RIGHT_WRITE))
		return false;
	space.code = page_address(code);
	space.data = page_address(data);
	memcpy(space.code, user_programs, (size_t)(user_programs_end - user_programs));
	return true;
}

FIXTURE(arch_user, space_open, space_close);

static u64 word(unsigned offset)
{
	return atomic_load_acquire((u64 *)(space.data + offset));
}

static void set_word(unsigned offset, u64 value)
{
	atomic_store_release((u64 *)(space.data + offset), value);
}

/* ---- what comes from ring 3 ---- */

enum { NOTES = 8 };

struct note {
	struct trap_frame regs;
	virt_t addr;
	enum user_access access;
};

struct notes {
	struct note note[NOTES];
	unsigned count;
};

/* Of the CPU that began the case. A program on another CPU is only counted. */
static struct notes calls, faults, exceptions;
static cpu_t noting;
static u64 ring0_flags; /* all that were set in one of the functions */
static u32 wrong, attended;
static bool resolve_far;

/* Called in each function of the table: the CPU is in the kernel and has flushed what it must. */
static void look(void)
{
	const struct percpu *self = this_cpu();
	const u64 done = shootdown_done();
	u64 flags;

	__asm__ volatile("pushfq; pop %0" : "=r"(flags));
	ring0_flags |= flags;
	if (!irq_enabled() || self->context != 0 || !self->arch.user_stack || self->rests != 0 ||
	    atomic_load_acquire(&self->tlb_published) < done)
		atomic_fetch_add(&wrong, 1);
}

static void note(struct notes *notes, const struct trap_frame *regs, virt_t addr,
		 enum user_access access)
{
	look();
	if (cpu_id() == noting && notes->count < NOTES)
		notes->note[notes->count++] =
			(struct note){.regs = *regs, .addr = addr, .access = access};
}

static void on_call(struct trap_frame *regs)
{
	note(&calls, regs, 0, 0);
	switch (regs->rax) {
	case CALL_SLOW_ANSWER:
		regs->rcx = 0x7171717171717171;
		regs->r11 = 0x7272727272727272;
		regs->rax = ANSWER;
		break;
	case CALL_ANSWER:
	case CALL_LOOK:
		regs->rax = ANSWER;
		break;
	case CALL_ODD_RIP:
		regs->rip = (u64)user_leave;
		regs->rcx = (u64)user_leave;
		break;
	default:
		user_leave();
	}
}

/* The first touch of the far page brings it. Other faults go on at R15, or end the program. */
static void on_fault(struct trap_frame *regs, virt_t addr, enum user_access access)
{
	note(&faults, regs, addr, access);
	if (ALIGN_DOWN(addr, PAGE_SIZE) == USER_FAR_AT && resolve_far) {
		map(USER_FAR_AT, pte_make_user(page_pfn(space.far), PT_PAGE,
					       USER_RIGHT_READ | USER_RIGHT_WRITE));
		return;
	}
	if (!regs->r15)
		user_leave();
	regs->rip = regs->r15;
}

static void on_exception(struct trap_frame *regs)
{
	note(&exceptions, regs, 0, 0);
	if (!regs->r15)
		user_leave();
	regs->rip = regs->r15;
}

static bool leave_attending;

static void on_attend(struct trap_frame *regs)
{
	look();
	atomic_fetch_add(&attended, 1);
	if (atomic_load_acquire(&leave_attending))
		user_leave();
}

static const struct user_ops test_ops = {
	.call = on_call, .fault = on_fault, .exception = on_exception, .attend = on_attend};

static struct trap_frame start_at(const u8 *program)
{
	return (struct trap_frame){.rip = USER_CODE_AT + (u64)(program - user_programs),
				   .rsp = USER_STACK_AT + PAGE_SIZE};
}

/* Run a program on this CPU, and note what comes from it. */
static void run(const struct trap_frame *regs)
{
	memset(&calls, 0, sizeof(calls));
	memset(&faults, 0, sizeof(faults));
	memset(&exceptions, 0, sizeof(exceptions));
	ring0_flags = 0;
	wrong = attended = 0;
	noting = cpu_id();
	user_enter(regs, 0, NULL);
	EXPECT(!this_cpu()->arch.user_stack);
	EXPECT_EQ(wrong, 0);
	EXPECT(irq_enabled() && this_cpu()->context == 0);
}

/* Answer the calls of the case with another function. */
static void set_call(void (*call)(struct trap_frame *regs))
{
	static struct user_ops ops;

	ops = test_ops;
	ops.call = call;
	user_set_ops(&ops);
}

static void run_program(const u8 *program)
{
	const struct trap_frame regs = start_at(program);

	run(&regs);
}

/* ---- calls ---- */

TEST(arch_user, a_program_enters_and_leaves_ring_3)
{
	for (unsigned i = 0; i < 1000; i++)
		run_program(user_program_leave);
	EXPECT_EQ(calls.count, 1);
	EXPECT_EQ(calls.note[0].regs.vector, USER_VECTOR_CALL);
	EXPECT_EQ(calls.note[0].regs.rax, CALL_LEAVE);
	EXPECT_EQ(calls.note[0].regs.rsp, USER_STACK_AT + PAGE_SIZE);
	EXPECT_EQ(calls.note[0].regs.cs & 3, 3);
	EXPECT_EQ(calls.note[0].regs.ss & 3, 3);
}

/* Registers that a program keeps in a call, as a list of their names. */
#define FOR_KEPT_REGISTERS(X)                                                                      \
	X(rbx, 1)                                                                                  \
	X(rdx, 3)                                                                                  \
	X(rsi, 4)                                                                                  \
	X(rdi, 5)                                                                                  \
	X(rbp, 6)                                                                                  \
	X(r8, 7)                                                                                   \
	X(r9, 8)                                                                                   \
	X(r10, 9)                                                                                  \
	X(r12, 11)                                                                                 \
	X(r13, 12)                                                                                 \
	X(r14, 13)                                                                                 \
	X(r15, 14)

static void expect_kept(const struct trap_frame *at)
{
#define EXPECT_KEPT(name, n) EXPECT_EQ(at->name, 0x0101010101010101ULL * n);
	FOR_KEPT_REGISTERS(EXPECT_KEPT)
#undef EXPECT_KEPT
	EXPECT_EQ(at->rsp, USER_STACK_AT + PAGE_SIZE);
}

/* SYSCALL itself puts RIP and RFLAGS into RCX and R11. */
TEST(arch_user, a_call_returns_its_result_and_keeps_all_registers)
{
	const struct trap_frame *first = &calls.note[0].regs;

	run_program(user_program_registers);
	EXPECT_EQ(calls.count, 2);
	EXPECT_EQ(first->error, CALL_ANSWER);
	expect_kept(first);
	expect_kept(&calls.note[1].regs);
	EXPECT_EQ(first->rcx, first->rip);
	EXPECT_EQ(first->r11, first->rflags);
	EXPECT(first->rflags & RFLAGS_INTERRUPTS);
	EXPECT(first->rflags & 1); /* carry */
	EXPECT_EQ(word(DATA_RAX), ANSWER);
	EXPECT_EQ(word(DATA_RCX), first->rip);
	EXPECT_EQ(word(DATA_R11), first->rflags);
	EXPECT_EQ(word(DATA_FLAGS), first->rflags);
}

static void call_otherwise(struct trap_frame *regs)
{
	if (regs->rax == CALL_ANSWER)
		regs->rax = CALL_SLOW_ANSWER;
	on_call(regs);
}

TEST(arch_user, a_call_may_change_rcx_and_r11)
{
	set_call(call_otherwise);
	run_program(user_program_registers);
	EXPECT_EQ(calls.count, 2);
	expect_kept(&calls.note[0].regs);
	expect_kept(&calls.note[1].regs);
	EXPECT_EQ(word(DATA_RAX), ANSWER);
	EXPECT_EQ(word(DATA_RCX), 0x7171717171717171);
	EXPECT_EQ(word(DATA_R11), 0x7272727272727272);
	EXPECT_EQ(word(DATA_FLAGS), calls.note[0].regs.rflags);
}

TEST(arch_user, registers_of_a_program_are_made_safe)
{
	struct trap_frame regs = {.rip = ~0ULL, .cs = 8, .ss = 0x10, .rflags = ~0ULL, .rsp = ~0ULL};

	user_regs_make_safe(&regs);
	EXPECT_EQ(regs.rip, USER_END);
	EXPECT_EQ(regs.cs, 0x33);
	EXPECT_EQ(regs.ss, 0x2b);
	EXPECT_EQ(regs.rsp, ~0ULL);
	EXPECT_EQ(regs.rflags, 0x254fd7); /* no IOPL, no VM, VIF or VIP */
	regs.rflags = 0;
	regs.rip = 0x1234;
	user_regs_make_safe(&regs);
	EXPECT_EQ(regs.rflags, 0x202);
	EXPECT_EQ(regs.rip, 0x1234);
}

TEST(arch_user, nothing_returns_to_an_address_of_the_kernel)
{
	run_program(user_program_elsewhere);
	EXPECT_EQ(calls.count, 1);
	EXPECT_EQ(faults.count, 1);
	EXPECT_EQ(faults.note[0].addr, USER_END);
	EXPECT_EQ(faults.note[0].access, USER_EXEC);
}

/* ---- faults and exceptions ---- */

static void expect_fault(unsigned n, virt_t addr, enum user_access access)
{
	EXPECT_EQ(faults.note[n].addr, addr);
	EXPECT_EQ(faults.note[n].access, access);
}

TEST(arch_user, faults_are_resolved_or_refused)
{
	static u64 variable = 5;
	struct trap_frame regs = start_at(user_program_faults);

	resolve_far = true;
	regs.r13 = (u64)&variable;
	regs.r12 = (u64)tests_run;
	run(&regs);
	EXPECT_EQ(faults.count, 8);
	expect_fault(0, USER_FAR_AT + 8, USER_WRITE);
	expect_fault(1, USER_NONE_AT, USER_READ);
	expect_fault(2, USER_NONE_AT + 16, USER_EXEC);
	expect_fault(3, (u64)&variable, USER_WRITE);
	expect_fault(4, (u64)tests_run, USER_READ);
	expect_fault(5, (u64)tests_run, USER_EXEC);
	EXPECT_EQ(faults.note[6].access, USER_WRITE);
	expect_fault(7, USER_DATA_AT, USER_EXEC);
	EXPECT_EQ(variable, 5);
	EXPECT_EQ(*(u64 *)((u8 *)page_address(space.far) + 8), 0x1122334455667788);
	EXPECT_EQ(calls.note[0].regs.r14, 0x1122334455667788);
}

TEST(arch_user, forbidden_instructions_raise_their_exceptions)
{
	const u32 count = cpu_features.umip ? user_refusal_count : user_refusals_without_umip;

	for (u32 i = 0; i < count; i++) {
		const struct refusal *refusal = &user_refusals[i];
		const struct trap_frame regs = start_at(user_programs + refusal->offset);

		run(&regs);
		if (calls.count == 0 && exceptions.count + faults.count == 1 &&
		    (refusal->vector == ANY_VECTOR ||
		     (exceptions.count == 1 && refusal->vector == exceptions.note[0].regs.vector)))
			continue;
		test_fail(__FILE__, __LINE__,
			  "%s: %u exceptions, vector %llu, %u calls, %u faults (at %llx)",
			  refusal->name, exceptions.count, exceptions.note[0].regs.vector,
			  calls.count, faults.count, faults.note[0].addr);
	}
}

TEST(arch_user, single_steps_end_in_ring_3)
{
	run_program(user_program_step);
	EXPECT_EQ(exceptions.count, 1);
	EXPECT_EQ(exceptions.note[0].regs.vector, TRAP_DEBUG);
	run_program(user_program_step_call);
	EXPECT_EQ(calls.count, 1);
	EXPECT_EQ(exceptions.count, 1);
	EXPECT_EQ(exceptions.note[0].regs.vector, TRAP_DEBUG);
	EXPECT_EQ(exceptions.note[0].regs.cs & 3, 3);
	EXPECT(!(ring0_flags & RFLAGS_TRAP));
}

/* ---- segments and flags ---- */

static void bases_call(struct trap_frame *regs)
{
	EXPECT_EQ(user_fs_base(), 0);
	on_call(regs);
}

TEST(arch_user, bases_of_fs_and_gs_are_the_programs)
{
	const struct trap_frame regs = start_at(user_program_bases);

	set_call(bases_call);
	set_word(DATA_BASE + 8, 0x1111);
	set_word(16, 0x2222);
	for (unsigned i = 0; i < 2; i++) { /* the second one meets what the first one left */
		memset(&calls, 0, sizeof(calls));
		faults.count = 0;
		noting = cpu_id();
		/* GS begins at 0, where nothing is */
		user_enter(&regs, USER_DATA_AT + DATA_BASE, NULL);
		EXPECT_EQ(word(DATA_RAX), 0x1111);
		EXPECT_EQ(faults.count, 1);
		EXPECT_EQ(faults.note[0].addr, 16);
	}
	EXPECT(!user_set_fs_base(USER_END) && !user_set_gs_base(USER_END));
	EXPECT(!user_set_fs_base((u64)this_cpu()) && !user_set_gs_base((u64)this_cpu()));
	EXPECT(user_set_fs_base(USER_END - 1) && user_fs_base() == USER_END - 1);
	EXPECT(user_set_gs_base(USER_END - 1) && user_gs_base() == USER_END - 1);
	EXPECT(user_set_fs_base(0) && user_set_gs_base(0));
	EXPECT_EQ(this_cpu()->id, cpu_id());
}

/* The other CPU, or a timer, asks until the program has been attended to. */
static void attend_soon(void *unused)
{
	user_attend(cpu_id());
}

/* The timer ends the loop that follows the second call. */
static void call_attends_after_two(struct trap_frame *regs)
{
	on_call(regs);
	if (calls.count == 2)
		EXPECT_EQ(timer_once(NS_PER_MS, attend_soon, NULL), 0);
}

TEST(arch_user, flags_of_a_program_are_not_the_kernels)
{
	set_call(call_attends_after_two);
	resolve_far = true;
	atomic_store_release(&leave_attending, true);
	run_program(user_program_flags);
	EXPECT_EQ(attended, 1);
	EXPECT_EQ(calls.count, 2);
	EXPECT_EQ(calls.note[0].regs.rflags & (ALIGNMENT | DIRECTION | NESTED),
		  ALIGNMENT | DIRECTION | NESTED);
	EXPECT_EQ(calls.note[1].regs.rflags, calls.note[0].regs.rflags);
	EXPECT_EQ(ring0_flags & (ALIGNMENT | DIRECTION | NESTED), 0);
}

/* ---- attend ---- */

TEST(arch_user, a_request_before_the_program_begins_is_kept)
{
	atomic_store_release(&leave_attending, true);
	user_attend(cpu_id());
	run_program(user_program_spin);
	EXPECT_EQ(attended, 1);
	EXPECT_EQ(word(DATA_COUNT), 0);
}

/* ---- programs on another CPU ---- */

static void run_remote(void *arg)
{
	const struct trap_frame *regs = arg;

	user_enter(regs, 0, NULL);
}

/* Wait until the program's count passes `count`; false if it does not. */
static bool wait_for_count(u64 count)
{
	const u64 start = clock_ns();

	while (word(DATA_COUNT) <= count && clock_ns() - start < LIMIT)
		cpu_relax();
	return word(DATA_COUNT) > count;
}

static void end_remote(cpu_t cpu)
{
	atomic_store_release(&leave_attending, true);
	user_attend(cpu);
	work_wait(cpu, LIMIT);
}

static bool start_remote(cpu_t cpu, struct trap_frame *remote, const u8 *program)
{
	*remote = start_at(program);
	noting = CPU_NONE;
	wrong = attended = 0;
	atomic_store_release(&leave_attending, false);
	return work_start(cpu, run_remote, remote) == 0;
}

/* Each request must be seen although the program makes calls and faults all the time. */
TEST(arch_user, no_request_is_lost)
{
	static struct trap_frame remote;
	const cpu_t other = cpus_find_other();
	u64 start;

	SKIP_ON_ONE_CPU();
	set_word(16, GS_MAGIC);
	EXPECT(start_remote(other, &remote, user_program_spin));
	EXPECT(wait_for_count(0));
	start = clock_ns();
	for (u32 i = 0; i < 20000 && clock_ns() - start < HAMMER_TIME; i++) {
		const u64 asked = clock_ns();

		user_attend(other);
		while (atomic_load_acquire(&attended) == i && clock_ns() - asked < LIMIT)
			cpu_relax();
		if (atomic_load_acquire(&attended) == i) {
			test_fail(__FILE__, __LINE__, "request %u was lost", i);
			break;
		}
	}
	end_remote(other);
	EXPECT_EQ(wrong, 0);
}

/* ---- ring 3 is quiet ---- */

static u64 flushes_of(cpu_t cpu)
{
	return atomic_load_acquire(&cpu_data(cpu)->flushes_full);
}

static void wait_quiet(cpu_t cpu)
{
	CPUS_WAIT_FOR(atomic_load_acquire(&cpu_data(cpu)->quiet), cpu, "a CPU in ring 3");
}

/* By a call, a fault, an exception, and an interrupt. */
static void enter_by(cpu_t cpu, u64 entry)
{
	if (entry == DATA_STOPS)
		user_attend(cpu);
	else
		set_word(DATA_STOP, entry);
	CPUS_WAIT_FOR(shootdown_reusable() == shootdown_done(), cpu, "a program to enter");
	CPUS_WAIT_FOR(word(DATA_STOP) == 0, cpu, "a program to go on");
	wait_quiet(cpu);
}

TEST(arch_user, rounds_for_struct_pages_leave_ring_3_alone_and_each_entry_flushes_first)
{
	static struct trap_frame remote;
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	test_option("tlb.quiet", "on");
	test_option("tlb.skip_idle", "on");
	EXPECT(start_remote(other, &remote, user_program_enters));
	EXPECT(wait_for_count(0));
	for (u64 entry = DATA_STOP_CALL; entry <= DATA_STOPS; entry++) {
		const u64 tag = shootdown_tag(), flushes = flushes_of(other);

		shootdown_full(SHOOTDOWN_SKIP_BOTH);
		shootdown_wait(tag);
		EXPECT_EQ(flushes_of(other), flushes);
		EXPECT(shootdown_reusable() < tag);
		enter_by(other, entry);
	}
	end_remote(other);
	EXPECT_EQ(attended, 2);
	EXPECT_EQ(wrong, 0);
}

TEST(arch_user, rounds_for_programs_interrupt_ring_3)
{
	static struct trap_frame remote;
	const cpu_t other = cpus_find_other();
	u64 flushes;

	SKIP_ON_ONE_CPU();
	EXPECT(start_remote(other, &remote, user_program_spin));
	EXPECT(wait_for_count(0));
	wait_quiet(other);
	flushes = flushes_of(other);
	shootdown_full(SHOOTDOWN_SKIP_IDLE);
	EXPECT_EQ(flushes_of(other), flushes + 1);
	EXPECT_EQ(shootdown_reusable(), shootdown_done());
	wait_quiet(other);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	EXPECT_EQ(flushes_of(other), flushes + 2);
	wait_quiet(other);
	test_option("tlb.quiet", "off");
	shootdown_full(SHOOTDOWN_SKIP_BOTH);
	EXPECT_EQ(flushes_of(other), flushes + 3);
	end_remote(other);
}

/* ---- NMIs ---- */

static u32 nmis, nmis_in_entry, nmis_in_ring3, checks;

static void count_check(struct trap_frame *frame)
{
	atomic_fetch_add(&checks, 1);
	if (trap_from_ring3(frame) || this_cpu()->self != this_cpu())
		atomic_fetch_add(&wrong, 1);
}

/*
 * In some NMIs a machine check comes; the instruction uses the same gate. The watchdog's NMIs come
 * to this CPU as well, at the same time as those that are sent.
 */
static void count_nmi(struct trap_frame *frame)
{
	if (atomic_fetch_add(&nmis, 1) % 4 == 0)
		__asm__ volatile("int %0" ::"i"(TRAP_MACHINE_CHECK) : "memory");
	if (trap_from_ring3(frame))
		nmis_in_ring3++;
	else if (trap_is_entry(frame->rip))
		nmis_in_entry++;
	if (this_cpu()->self != this_cpu())
		atomic_fetch_add(&wrong, 1);
}

/* The program's GS base, set in its first call. */
static void call_with_base(struct trap_frame *regs)
{
	if (user_gs_base() == 0)
		user_set_gs_base(USER_DATA_AT + DATA_BASE);
	if (regs->rax == CALL_LEAVE)
		atomic_fetch_add(&wrong, 1); /* a register or the base has changed */
	on_call(regs);
}

/*
 * A program calls, faults and reads through GS, while NMIs and IPIs come at any moment. The NMIs
 * hit every instruction of the entry code sooner or later; how many did is printed.
 */
TEST(arch_user, nmis_find_the_kernels_base_everywhere)
{
	static struct trap_frame remote;
	const cpu_t other = cpus_find_other();
	u64 start;

	SKIP_ON_ONE_CPU();
	set_call(call_with_base);
	set_word(DATA_BASE + 16, GS_MAGIC);
	nmis = nmis_in_entry = nmis_in_ring3 = checks = 0;
	EXPECT(start_remote(other, &remote, user_program_hammer));
	EXPECT(wait_for_count(0));
	trap_set_handler(TRAP_MACHINE_CHECK, count_check);
	trap_set_handler(TRAP_NMI, count_nmi);
	start = clock_ns();
	for (u32 i = 0; clock_ns() - start < HAMMER_TIME; i++) {
		apic_send(cpu_data(other)->arch.apic_id, ICR_NMI | ICR_ASSERT);
		if (i % 16 == 0)
			user_attend(other);
		for (u32 spins = i % 61; spins > 0; spins--)
			cpu_relax();
	}
	EXPECT(wait_for_count(word(DATA_COUNT)));
	nmi_init();
	end_remote(other);
	trap_set_handler(TRAP_MACHINE_CHECK, NULL);
	EXPECT_EQ(checks, (nmis + 3) / 4);
	pr_info("%u NMIs, %u of them in ring 3 and %u in its entry code; %llu rounds", nmis,
		nmis_in_ring3, nmis_in_entry, word(DATA_COUNT));
	EXPECT_EQ(wrong, 0);
}

/* ---- vector registers ---- */

static u8 vectors[8192] __attribute__((aligned(64)));

TEST(arch_user, vector_registers_survive_calls_and_interrupts)
{
	static struct trap_frame remote;
	const cpu_t other = cpus_find_other();
	u8 pattern[32];

	SKIP_ON_ONE_CPU();
	for (unsigned i = 0; i < sizeof(pattern); i++)
		pattern[i] = (u8)(i * 7 + 1);
	memcpy(space.data + DATA_VECTOR, pattern, sizeof(pattern));
	EXPECT(start_remote(other, &remote, user_program_vectors));
	for (unsigned i = 0; i < 20; i++) {
		user_attend(other);
		EXPECT(wait_for_count(word(DATA_COUNT)));
	}
	set_word(DATA_STOP, 1);
	work_wait(other, LIMIT);
	EXPECT(memcmp(space.data + DATA_VECTOR + 32, pattern, sizeof(pattern)) == 0);
	EXPECT_EQ(word(DATA_RAX), 0x400921fb54442d18); /* pi */
	EXPECT_EQ(wrong, 0);
}

TEST(arch_user, vector_registers_begin_as_after_a_reset)
{
	memset(space.data + DATA_VECTOR, 0x77, 64);
	__asm__ volatile("pcmpeqd %xmm0, %xmm0"); /* as a linked program may leave it */
	run_program(user_program_vectors_at_start);
	for (unsigned i = 0; i < 32; i++)
		EXPECT_EQ(space.data[DATA_VECTOR + i], 0);
	EXPECT_EQ((u32)word(DATA_RAX), 0x1f80);
	EXPECT_EQ((u16)word(DATA_RCX), 0x37f);
}

TEST(arch_user, nothing_of_a_program_is_left_on_its_cpu)
{
	enum { MXCSR_AT = 24, MXCSR_ROUNDS_UP = 0x5f80 };
	struct trap_frame regs;
	u32 mxcsr;

	set_word(DATA_RAX, MXCSR_ROUNDS_UP);
	regs = start_at(user_program_rounds_up);
	user_enter(&regs, USER_DATA_AT, NULL);
	user_vectors_save(vectors);
	memcpy(&mxcsr, vectors + MXCSR_AT, sizeof(mxcsr));
	EXPECT_EQ(mxcsr, 0x1f80);
	EXPECT_EQ(user_fs_base(), (u64)this_cpu()->arch.tls);
}

/* State that XRSTOR and FXRSTOR refuse is refused before anything is loaded. */
TEST(arch_user, impossible_vector_registers_are_refused)
{
	enum { MXCSR = 24, COMPONENTS = 512 };
	static u8 before[8192] __attribute__((aligned(64)));
	const bool header = user_vectors_size() > COMPONENTS;

	REQUIRE(user_vectors_size() <= sizeof(vectors));
	user_vectors_save(before);
	EXPECT(user_vectors_load(before));
	for (unsigned bit = 16; bit < 32; bit++) {
		memcpy(vectors, before, sizeof(vectors));
		vectors[MXCSR + bit / 8] |= (u8)(1 << bit % 8);
		/* AMD has bit 17; all others are reserved */
		EXPECT(bit == 17 || !user_vectors_load(vectors));
	}
	for (unsigned byte = 0; byte < 64 && header; byte++) {
		memcpy(vectors, before, sizeof(vectors));
		vectors[COMPONENTS + byte] |= 0x80;
		if (byte != 0) /* bit 7 may be a part of AVX-512 */
			EXPECT(!user_vectors_load(vectors));
	}
	user_vectors_save(vectors);
	EXPECT(memcmp(vectors, before, user_vectors_size()) == 0);
	memset(vectors, 0xff, sizeof(vectors));
	EXPECT(!user_vectors_load(vectors));
}

/* ---- every way out ---- */

#endif
