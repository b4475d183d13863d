/* A program for tests of calls: see program_box.h. */
#include "tests/kernel/program_box.h"

#include "kernel/program/heap.h"

bool program_box_begin(void)
{
	struct area memory = {.start = PROGRAM_BOX_MEMORY,
			      .end = PROGRAM_BOX_MEMORY + PROGRAM_BOX_BYTES,
			      .rights = USER_RIGHT_READ | USER_RIGHT_WRITE};

	return program_begin(&(struct program_request){.image = NULL}) == 0 &&
	       mapping_make(&program_space, &memory, MAPPING_FIXED) >= 0;
}

void program_box_end(void)
{
	program_finish();
}

bool program_box_again(void)
{
	program_box_end();
	return program_box_begin();
}

struct thread *program_box_second(void)
{
	struct thread *second = cpu_count > 1 ? thread_record(1) : NULL;

	if (second)
		second->id = THREAD_FIRST_ID + 1;
	return second;
}

int program_box_died(void)
{
	int status;

	return program_ended(&status) && status > 128 ? status - 128 : 0;
}

/* The number of a call; CALLS_MAX, which is none, if there is no such call. */
static unsigned number_of(const char *name)
{
	for (unsigned number = 0; number < CALLS_MAX; number++) {
		const struct call *row = call_of(number);

		if (row && strcmp(row->name, name) == 0)
			return number;
	}
	test_fail(__FILE__, __LINE__, "no call %s", name);
	return CALLS_MAX;
}

s64 program_call_with(struct trap_frame *regs, const char *name, const u64 arg[6])
{
	struct trap_frame zero = {.rsp = PROGRAM_BOX_MEMORY + PROGRAM_BOX_BYTES / 2};

	if (!regs)
		regs = &zero;
	regs->rax = regs->error = number_of(name);
	regs->rdi = arg[0];
	regs->rsi = arg[1];
	regs->rdx = arg[2];
	regs->r10 = arg[3];
	regs->r8 = arg[4];
	regs->r9 = arg[5];
	calls_serve(regs);
	return (s64)regs->rax;
}

void program_box_heap(u64 start)
{
	heap_begin(start);
}

static void call_elsewhere(void *arg)
{
	struct program_call *c = arg;

	atomic_store_release(&c->begun, 1);
	c->result = program_call_with(NULL, c->call, c->arg);
	atomic_store_release(&c->done, 1);
}

void program_call_start(struct program_call *c)
{
	c->cpu = cpus_find_other();
	REQUIRE(c->cpu != CPU_NONE && thread_record(c->cpu));
	REQUIRE(work_start(c->cpu, call_elsewhere, c) == 0);
	while (!atomic_load_acquire(&c->begun))
		cpu_relax();
	clock_delay_ns(5 * NS_PER_MS);
}
