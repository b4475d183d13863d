/* The stand-in for ring 3: a function is the program. */

#include "kernel/program/signal_queue.h"
#include "tests/kernel/program_box.h"

/* ---- a thread that begins where another one has ended ---- */

enum { NR_GETPID = 39, NR_EXIT = 60, QUEUED = 40 };

static u64 value_received;

/* A thread that sends a signal to itself, takes it, and ends. */
static void send_to_oneself(struct trap_frame *regs)
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

/* It dies of the signal at the end of its next call. */
static void unblock(struct trap_frame *regs)
{
	const struct signal_info info = {.signal = QUEUED};

	signal_mask_set(thread_current(), ~0ULL);
	EXPECT_EQ(signal_send(thread_current(), QUEUED, &info), 0);
	signal_mask_set(thread_current(), 0);
	regs->rax = NR_GETPID;
	host_user_call(regs);
}

/* Start a thread and wait for its end. Returns the record of its CPU, or NULL. */
static struct thread *run_thread(void)
{
	const struct trap_frame regs = {.rip = 0x1000};
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
	host_user_program = unblock;
	run_thread();
	EXPECT_EQ(program_box_died(), QUEUED);
	host_user_program = NULL;
	program_box_end();
}

/* ---- a CPU in ring 3 against rounds that leave it alone ---- */

enum { ENTRIES = 3 };

static u32 missed; /* entries that had not flushed for a round which is said to be done */

static void look_for_missed(void)
{
	const struct percpu *self = this_cpu();
	const u64 done = shootdown_done();

	if (self->rests != 0 || atomic_load_acquire(&self->tlb_published) < done)
		atomic_store_relaxed(&missed, 1);
}

static void quiet_call(struct trap_frame *regs)
{
	look_for_missed();
}

static void quiet_fault(struct trap_frame *regs, virt_t addr, enum user_access access)
{
	look_for_missed();
}

static void call_and_fault(struct trap_frame *regs)
{
	for (unsigned i = 0; i < ENTRIES; i++) {
		host_user_call(regs);
		host_user_fault(regs, USER_START, USER_READ);
	}
}

static void be_in_ring_3(void *unused)
{
	const struct trap_frame regs = {.rip = USER_START};

	user_enter(&regs, 0, NULL);
	look_for_missed();
}

TEST(host_user, a_cpu_that_enters_from_ring_3_during_a_round_misses_none)
{
	static const struct user_ops ops = {.call = quiet_call, .fault = quiet_fault};
	const cpu_t other = cpus_find_other();

	SKIP_ON_ONE_CPU();
	user_set_ops(&ops);
	host_user_program = call_and_fault;
	host_user_is_quiet = true;
	missed = 0;
	REQUIRE(work_start(other, be_in_ring_3, NULL) == 0);
	for (unsigned i = 0; i < ENTRIES; i++)
		shootdown_full(SHOOTDOWN_SKIP_QUIET);
	work_wait(other, 0);
	host_user_is_quiet = false;
	host_user_program = NULL;
	EXPECT_EQ(missed, 0);
}
