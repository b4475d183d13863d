/* The stand-in for ring 3: a function is the program. */

#include "kernel/core/percpu.h"
#include "kernel/program/signal.h"
#include "kernel/program/signal_queue.h"
#include "kernel/run/test.h"
#include "tests/kernel/program_box.h"

/* ---- a thread that begins where another one has ended ---- */

enum { NR_EXIT = 60, QUEUED = 40 };

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
	host_user_program = NULL;
	program_box_end();
}
