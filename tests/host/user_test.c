/* The stand-in for ring 3: a function is the program. */
#include <arch/user.h>

#include <arch/pgtable.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/program/signal.h"
#include "kernel/program/signal_pending.h"
#include "kernel/program/thread.h"
#include "kernel/run/test.h"
#include "mm/map/pgtable.h"
#include "mm/mm.h"
#include "tests/kernel/program_box.h"

enum { CALL_LEAVE, CALL_ADD, CALL_ASK };

static u32 attended, came_back;

static void on_call(struct user_regs *regs)
{
	EXPECT_EQ(regs->vector, USER_VECTOR_CALL);
	if (regs->rax == CALL_LEAVE)
		user_leave();
	if (regs->rax == CALL_ASK)
		user_attend(cpu_id());
	regs->rax = regs->rdi + regs->rsi;
}

static void on_fault(struct user_regs *regs, virt_t addr, enum user_access access)
{
	regs->rax = addr + access;
	regs->rip = ~0ULL;
}

static void on_exception(struct user_regs *regs)
{
	regs->rip = regs->vector;
}

static void on_attend(struct user_regs *regs)
{
	(void)regs;
	attended++;
}

static const struct user_ops ops = {
	.call = on_call, .fault = on_fault, .exception = on_exception, .attend = on_attend};

static void program(struct user_regs *regs)
{
	EXPECT_EQ(regs->rip, 0x1000);
	EXPECT_EQ(user_fs_base(), 0x2000);
	EXPECT(user_set_gs_base(0x3000) && user_gs_base() == 0x3000);
	EXPECT(!user_set_gs_base(USER_END));
	regs->rax = CALL_ADD;
	regs->rdi = 3;
	regs->rsi = 4;
	host_user_call(regs);
	EXPECT_EQ(regs->rax, 7);
	host_user_fault(regs, 0x5000, USER_WRITE);
	EXPECT_EQ(regs->rax, 0x5001);
	EXPECT_EQ(regs->rip, USER_END);
	regs->vector = 6;
	host_user_exception(regs);
	EXPECT_EQ(regs->rip, 6);
	EXPECT_EQ(attended, 1);
	regs->rax = CALL_ASK;
	host_user_call(regs);
	EXPECT_EQ(attended, 2);
	regs->rax = CALL_LEAVE;
	host_user_call(regs);
	came_back = 1;
}

TEST(host_user, a_function_stands_in_for_a_program)
{
	const struct user_regs regs = {.rip = 0x1000};

	attended = came_back = 0;
	user_set_ops(&ops);
	host_user_program = program;
	user_attend(cpu_id());
	user_enter(&regs, 0x2000, NULL);
	EXPECT_EQ(came_back, 0);
	host_user_program = NULL;
	user_enter(&regs, 0, NULL);
}

static pfn_t new_table(void *ctx)
{
	struct page **pages = ctx;

	*pages = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	return *pages ? page_pfn(*pages) : PFN_NONE;
}

/* Where the process itself lives, a program's page tables change nothing. */
TEST(host_user, entries_of_programs_are_data)
{
	const virt_t at = ALIGN_DOWN((virt_t)&attended, PAGE_SIZE) % USER_END;
	struct page *table = NULL;
	const u32 before = attended;
	pte_t *pgd = pgtable_entry(pgtable_root(), at, PT_PGD, NULL, NULL, NULL);
	pfn_t pfn;

	REQUIRE(pgd && !pte_present(pte_load(pgd)));
	pfn = new_table(&table);
	REQUIRE(pfn != PFN_NONE);
	pte_store(pgd, at, PT_PGD, pte_make_table_user(pfn));
	pte_store((pte_t *)phys_to_virt(pfn << PAGE_SHIFT) + pt_index(at, PT_PUD), at, PT_PUD,
		  pte_make_user(0, PT_PUD, USER_RIGHT_READ));
	attended = 5;
	EXPECT_EQ(attended, 5);
	attended = before;
	pte_store(pgd, at, PT_PGD, 0);
	page_free(table);
}

/* ---- a thread that begins where another one has ended ---- */

enum { NR_EXIT = 60, QUEUED = 40 };

static u64 value_received;

/* A thread that sends a signal to itself, takes it, and ends. */
static void send_to_oneself(struct user_regs *regs)
{
	struct thread *self = thread_current();
	struct signal_info info = {.signal = QUEUED, .code = SI_QUEUE, .value = 7};

	signal_mask_set(self, ~0ULL);
	EXPECT_EQ(signal_send(self, QUEUED, &info), 0);
	EXPECT(signal_pending_take(self, signal_bit(QUEUED), &info));
	value_received = info.value;
	EXPECT(!signal_pending_take(self, signal_bit(QUEUED), &info));
	regs->rax = NR_EXIT;
	host_user_call(regs);
}

/* Start a thread and wait for its end. Returns the record of its CPU, or NULL. */
static struct thread *run_thread(void)
{
	const struct user_regs regs = {.rip = 0x1000};
	const s64 id = thread_start(&(struct thread_request){.regs = &regs});
	struct thread *record = NULL;

	EXPECT(id > 0);
	for (cpu_t cpu = 0; cpu < cpu_count; cpu++) {
		if (cpu == cpu_id() || !thread_on(cpu))
			continue;
		work_wait(cpu, 0);
		record = thread_on(cpu);
	}
	return record;
}

/* A sender may have found the first one just before its end. */
TEST(host_user, a_signal_for_a_thread_that_has_ended_is_not_the_next_ones)
{
	const struct signal_info late = {.signal = QUEUED, .code = SI_QUEUE, .value = 3};
	struct thread *first, *second;

	if (cpu_count < 2)
		SKIP("needs two CPUs");
	REQUIRE(program_box_begin());
	host_user_program = send_to_oneself;
	first = run_thread();
	EXPECT_EQ(value_received, 7);
	EXPECT(first && signal_send(first, QUEUED, &late) == 0);
	value_received = 0;
	second = run_thread();
	EXPECT(first == second);
	EXPECT_EQ(value_received, 7);
	host_user_program = NULL;
	program_box_end();
}
