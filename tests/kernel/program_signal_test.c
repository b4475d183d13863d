/*
 * Signals of programs: what is pending, which handler runs, and every byte of its frame. The
 * offsets are written out as numbers here, as the ABI's documents have them
 * (kernel/program/signal_abi.h).
 */
#include "kernel/program/clocks.h"
#include "kernel/program/console_file.h"
#include "kernel/program/signal.h"
#include "kernel/program/signal_queue.h"
#include "mm/memmap/zone.h"
#include "tests/kernel/brim.h"
#include "tests/kernel/program_memory.h"

FIXTURE(program_signal, program_box_begin, program_box_end);

enum { SIG_BLOCK };

#define ALT_STACK (PROGRAM_BOX_MEMORY + KIB(8))      /* 8 KiB */
#define STACK     (PROGRAM_BOX_MEMORY + KIB(48) + 8) /* a stack pointer inside of a function */
#define HANDLER   0x401000ULL
#define RESTORER  0x402000ULL
#define BIT(n)    (1ULL << ((n)-1))

static u32 load_u32(user_t from)
{
	u32 value = 0;

	EXPECT_EQ(user_read(&value, from, sizeof(value)), 0);
	return value;
}

static s64 set_action(int signal, u64 handler, u64 flags, u64 mask)
{
	const u64 action[4] = {handler, flags | SA_RESTORER, RESTORER, mask};

	EXPECT_EQ(user_write(ARGUMENTS, action, sizeof(action)), 0);
	return program_call("rt_sigaction", signal, ARGUMENTS, 0, 8);
}

static s64 set_mask(u64 how, u64 set)
{
	EXPECT_EQ(put(ARGUMENTS, set), 0);
	return program_call("rt_sigprocmask", how, ARGUMENTS, 0, 8);
}

static s64 set_alt_stack(user_t sp, u32 flags, u64 size)
{
	const u64 stack[3] = {sp, flags, size};

	EXPECT_EQ(user_write(ARGUMENTS, stack, sizeof(stack)), 0);
	return program_call("sigaltstack", ARGUMENTS, 0);
}

/* Registers that all differ, as a timer's interrupt finds them. */
static struct trap_frame some_registers(void)
{
	return (struct trap_frame){
		.r8 = 8,
		.r9 = 9,
		.r10 = 10,
		.r11 = 11,
		.r12 = 12,
		.r13 = 13,
		.r14 = 14,
		.r15 = 15,
		.rdi = 16,
		.rsi = 17,
		.rbp = 18,
		.rbx = 19,
		.rdx = 20,
		.rax = 21,
		.rcx = 22,
		.rsp = STACK,
		.rip = 0x400123,
		.rflags = 0x246 | 1 << 10, /* with DF, which a handler must not see */
		.cs = 0x33,
		.ss = 0x2b,
		.vector = 0xf0,
	};
}

static s64 raise_here(int signal)
{
	return program_call("tgkill", program_pid(), program_pid(), signal);
}

static void deliver(struct trap_frame *regs, int signal)
{
	EXPECT_EQ(raise_here(signal), 0);
	signal_deliver(regs);
}

/* As the restorer does it: the handler's return has taken 8 bytes from the stack. */
static s64 sigreturn(struct trap_frame *regs)
{
	regs->rsp += 8;
	return program_call_with(regs, "rt_sigreturn", (const u64[6]){0});
}

/* ---- the frame ---- */

/* Registers of ucontext_t, in the order of REG_R8 and so on. */
static u64 context_register(user_t context, unsigned n)
{
	return get(context + 40 + 8 * n);
}

enum { GENERAL = 15 }; /* registers beside RSP: some_registers() numbers them from 8 on */

static void expect_frame(const struct trap_frame *regs)
{
	/* from REG_RSP on: RIP, EFL, CSGSFS, ERR, TRAPNO, OLDMASK and CR2 */
	static const u64 rest[] = {STACK, 0x400123, 0x646,        0x33 | 0x2bULL << 48,
				   0,     0,        BIT(SIGTERM), 0};
	const user_t context = regs->rdx, vectors = context_register(context, 23);

	for (unsigned i = 0; i < GENERAL; i++)
		EXPECT_EQ(context_register(context, i), 8 + i);
	for (unsigned i = 0; i < ARRAY_LEN(rest); i++)
		EXPECT_EQ(context_register(context, GENERAL + i), rest[i]);
	EXPECT_EQ(get(context + 296), BIT(SIGTERM)); /* uc_sigmask */
	EXPECT_EQ(load_u32(context + 16 + 8), 0);    /* uc_stack.ss_flags */
	EXPECT_EQ(get(context + 8), 0);              /* uc_link */
	EXPECT_EQ(get(context) & ~1ULL, UC_SIGCONTEXT_SS | UC_STRICT_RESTORE_SS);
	EXPECT_EQ(vectors % 64, 0);
	EXPECT(vectors >= regs->rsp + 440);
	EXPECT(vectors + user_vectors_size() + 4 <= STACK - 128);
	EXPECT_EQ(get(context) & 1, user_vectors_size() > 512);
	if (user_vectors_size() > 512) {
		EXPECT_EQ(load_u32(vectors + 464), 0x46505853);
		EXPECT_EQ(load_u32(vectors + 468), user_vectors_size() + 4);
		EXPECT_EQ(get(vectors + 472), user_vectors_features());
		EXPECT_EQ(load_u32(vectors + 480), user_vectors_size());
		EXPECT_EQ(load_u32(vectors + user_vectors_size()), 0x46505845);
	}
}

/* A handler begins as the ABI says, with every register in its frame, and its return restores. */
TEST(program_signal, sigreturn_restores_what_was_interrupted)
{
	const struct trap_frame before = some_registers();
	struct trap_frame regs = before;

	EXPECT_EQ(set_action(SIGUSR1, HANDLER, SA_SIGINFO, BIT(SIGUSR2)), 0);
	EXPECT_EQ(set_mask(SIG_BLOCK, BIT(SIGTERM)), 0);
	EXPECT_EQ(raise_here(SIGUSR1), 0);
	EXPECT(signal_is_deliverable(thread_current()));
	signal_deliver(&regs);
	EXPECT_EQ(regs.rip, HANDLER);
	EXPECT_EQ(regs.rdi, SIGUSR1);
	EXPECT_EQ(regs.rsi, regs.rsp + 312);
	EXPECT_EQ(regs.rdx, regs.rsp + 8);
	EXPECT_EQ(regs.rax, 0);
	EXPECT_EQ(regs.rflags & 1 << 10, 0);
	EXPECT_EQ((regs.rsp + 8) % 16, 0);
	EXPECT_EQ(get(regs.rsp), RESTORER);
	EXPECT_EQ(thread_current()->blocked, BIT(SIGUSR1) | BIT(SIGUSR2) | BIT(SIGTERM));
	EXPECT(!signal_is_deliverable(thread_current()));
	expect_frame(&regs);

	regs.rbx = regs.r15 = regs.r8 = 0;
	EXPECT_EQ(sigreturn(&regs), before.rax);
	regs.vector = before.vector;
	regs.error = before.error;
	EXPECT_EQ(memcmp(&regs, &before, sizeof(regs)), 0);
	EXPECT_EQ(thread_current()->blocked, BIT(SIGTERM));
}

TEST(program_signal, sigreturn_obeys_a_handler_that_changed_its_frame)
{
	const u64 everything = ~0ULL;
	struct trap_frame regs = some_registers();

	EXPECT_EQ(set_action(SIGSEGV, HANDLER, SA_SIGINFO, 0), 0);
	regs.vector = 14;
	signal_raise_fault(&regs, SIGSEGV, SEGV_MAPERR, 0x1234);
	EXPECT_EQ(put(regs.rdx + 40 + 8 * 16, 0x405000), 0);   /* REG_RIP */
	EXPECT_EQ(put(regs.rdx + 40 + 8 * 17, everything), 0); /* REG_EFL */
	EXPECT_EQ(put(regs.rdx + 296, everything), 0);         /* uc_sigmask */
	EXPECT_EQ(put(regs.rdx + 40 + 8 * 18, 0), 0);          /* selectors */
	sigreturn(&regs);
	EXPECT_EQ(regs.rip, 0x405000);
	EXPECT_EQ(regs.rflags & (3 << 12 | 1 << 17), 0); /* no right to ports, no virtual mode */
	EXPECT_EQ(regs.cs, 0x33);
	EXPECT_EQ(thread_current()->blocked, ~(BIT(SIGKILL) | BIT(SIGSTOP)));
	EXPECT_EQ(program_box_died(), 0);
}

/* ---- stacks ---- */

TEST(program_signal, handlers_run_on_the_alternate_stack)
{
	struct trap_frame regs = some_registers();
	u64 first;

	EXPECT_EQ(set_alt_stack(ALT_STACK, 0, 1024), -ENOMEM);
	EXPECT_EQ(set_alt_stack(ALT_STACK, 4, KIB(8)), -EINVAL);
	EXPECT_EQ(set_alt_stack(ALT_STACK, 0, KIB(8)), 0);
	EXPECT_EQ(program_call("sigaltstack", ARGUMENTS, RESULTS), 0);
	EXPECT_EQ(get(RESULTS), ALT_STACK);
	EXPECT_EQ(set_action(SIGKILL, HANDLER, 0, 0), -EINVAL);
	EXPECT_EQ(set_action(65, HANDLER, 0, 0), -EINVAL);
	EXPECT_EQ(program_call("rt_sigprocmask", 0, 0, 0, 4), -EINVAL);
	EXPECT_EQ(program_call("rt_sigaction", SIGUSR1, ARGUMENTS, 0, 4), -EINVAL);
	EXPECT_EQ(set_action(SIGUSR1, HANDLER, SA_ONSTACK, 0), 0);
	EXPECT_EQ(set_action(SIGUSR2, HANDLER, SA_ONSTACK, 0), 0);
	deliver(&regs, SIGUSR1);
	first = regs.rsp;
	EXPECT(first > ALT_STACK && first < ALT_STACK + KIB(8));
	EXPECT_EQ(get(regs.rdx + 16), ALT_STACK);
	EXPECT_EQ(load_u32(regs.rdx + 24), 0);
	EXPECT_EQ(get(regs.rdx + 32), KIB(8));
	EXPECT_EQ(program_call_with(&regs, "sigaltstack", (const u64[6]){ARGUMENTS}), -EPERM);
	EXPECT_EQ(program_call_with(&regs, "sigaltstack", (const u64[6]){0, RESULTS}), 0);
	EXPECT_EQ(load_u32(RESULTS + 8), SS_ONSTACK);
	deliver(&regs, SIGUSR2); /* goes on below the first */
	EXPECT(regs.rsp < first && regs.rsp > ALT_STACK);
	sigreturn(&regs);
	EXPECT_EQ(regs.rsp, first);
	sigreturn(&regs);
	EXPECT_EQ(regs.rsp, STACK);
	EXPECT_EQ(thread_current()->alt_stack, ALT_STACK);
}

/* Where a handler cannot run, the program ends. */
TEST(program_signal, a_handler_that_cannot_begin_ends_the_program)
{
	const u64 without_restorer[4] = {HANDLER, SA_SIGINFO, 0, 0};
	struct trap_frame regs = some_registers();

	/* its frame overflows the alternate stack */
	EXPECT_EQ(set_alt_stack(ALT_STACK, 0, KIB(8)), 0);
	EXPECT_EQ(set_action(SIGSEGV, HANDLER, SA_ONSTACK, 0), 0);
	regs.rsp = ALT_STACK + 256;
	signal_raise_fault(&regs, SIGSEGV, SEGV_MAPERR, 0);
	EXPECT_EQ(program_box_died(), SIGSEGV);
	/* its frame would go round address 0 */
	for (u64 rsp = 0; rsp < 1024; rsp += 56) {
		REQUIRE(program_box_again());
		EXPECT_EQ(set_action(SIGUSR1, HANDLER, 0, 0), 0);
		regs = some_registers();
		regs.rsp = rsp;
		deliver(&regs, SIGUSR1);
		EXPECT_EQ(program_box_died(), SIGSEGV);
	}
	/* it could not return */
	REQUIRE(program_box_again());
	EXPECT_EQ(user_write(ARGUMENTS, without_restorer, sizeof(without_restorer)), 0);
	EXPECT_EQ(program_call("rt_sigaction", SIGUSR1, ARGUMENTS, 0, 8), 0);
	regs = some_registers();
	deliver(&regs, SIGUSR1);
	EXPECT_EQ(program_box_died(), SIGSEGV);
}

/* ---- faults ---- */

TEST(program_signal, a_fault_without_a_handler_ends_the_program)
{
	static const u64 handlers[] = {SIG_DFL, SIG_IGN, HANDLER};

	for (unsigned i = 0; i < ARRAY_LEN(handlers); i++) {
		struct trap_frame regs = some_registers();

		REQUIRE(program_box_again());
		set_action(SIGBUS, handlers[i], 0, 0);
		signal_raise_fault(&regs, SIGBUS, BUS_ADRERR, 0x1000);
		EXPECT_EQ(program_box_died(), handlers[i] == HANDLER ? 0 : SIGBUS);
	}
}

TEST(program_signal, exceptions_become_signals)
{
	static const struct {
		u64 vector;
		int signal, code;
		bool has_address;
	} rows[] = {
		{0, SIGFPE, FPE_INTDIV, true},   {1, SIGTRAP, TRAP_BRKPT, true},
		{3, SIGTRAP, SI_KERNEL, false},  {4, SIGSEGV, SI_KERNEL, false},
		{5, SIGSEGV, SI_KERNEL, false},  {6, SIGILL, ILL_ILLOPN, true},
		{12, SIGBUS, SI_KERNEL, false},  {13, SIGSEGV, SI_KERNEL, false},
		{17, SIGBUS, BUS_ADRALN, false},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct trap_frame regs = some_registers();

		REQUIRE(program_box_again());
		set_action(rows[i].signal, HANDLER, 0, 0);
		regs.vector = rows[i].vector;
		program_exception(&regs);
		EXPECT_EQ(regs.rip, HANDLER);
		EXPECT_EQ(load_u32(regs.rsi), rows[i].signal);
		EXPECT_EQ(load_u32(regs.rsi + 8), (u32)rows[i].code);
		EXPECT_EQ(get(regs.rsi + 16), rows[i].has_address ? 0x400123 : 0);
	}
}

/* ---- no memory ---- */

/* A page of the memory that nothing has touched, and the registers of a touch of it in vain. */
#define UNTOUCHED (PROGRAM_BOX_MEMORY + KIB(60))

static struct trap_frame touch_in_vain(u64 rsp)
{
	struct trap_frame regs = some_registers();

	regs.rsp = rsp;
	EXPECT_EQ(space_touch(&program_space, UNTOUCHED, USER_WRITE), TOUCH_NO_MEMORY);
	signal_raise_fault(&regs, SIGBUS, BUS_ADRERR, UNTOUCHED);
	return regs;
}

/*
 * A handler runs on a stack whose pages are there, and its return loads what it left in its frame:
 * it changes a bit of MXCSR, and the handler after it finds that bit, and changes it back.
 */
static void survive(u64 flags, u64 rsp)
{
	u32 mxcsr[2];

	for (unsigned i = 0; i < ARRAY_LEN(mxcsr); i++) {
		struct trap_frame regs = touch_in_vain(rsp);
		user_t at;

		REQUIRE(regs.rip == HANDLER);
		EXPECT_EQ(load_u32(regs.rsi), SIGBUS);
		EXPECT_EQ(get(regs.rsi + 16), UNTOUCHED);
		EXPECT_EQ(regs.rsp - ALT_STACK < KIB(8), flags == SA_ONSTACK);
		at = context_register(regs.rdx, 23) + 24;
		mxcsr[i] = load_u32(at);
		EXPECT_EQ(put(at, get(at) ^ 0x8000), 0);
		sigreturn(&regs);
		EXPECT_EQ(regs.rip, 0x400123);
		EXPECT_EQ(regs.rsp, rsp);
	}
	EXPECT_EQ(mxcsr[1], mxcsr[0] ^ 0x8000);
}

TEST(program_signal, handlers_run_and_return_without_memory)
{
	struct trap_frame regs = some_registers();

	EXPECT_EQ(set_alt_stack(ALT_STACK, 0, KIB(8)), 0);
	for (u64 at = ALT_STACK; at < ALT_STACK + KIB(8); at += PAGE_SIZE)
		EXPECT_EQ(put(at, 1), 0);
	for (u64 at = STACK - KIB(8); at <= STACK; at += PAGE_SIZE)
		EXPECT_EQ(put(at, 1), 0);
	EXPECT_EQ(set_action(SIGFPE, HANDLER, 0, 0), 0);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	EXPECT_EQ(set_action(SIGBUS, HANDLER, SA_ONSTACK, 0), 0);
	survive(SA_ONSTACK, UNTOUCHED + 8);
	EXPECT_EQ(set_action(SIGBUS, HANDLER, 0, 0), 0);
	survive(0, STACK);
	/* an exception whose code is looked for among the vector registers */
	regs.vector = 16;
	program_exception(&regs);
	EXPECT_EQ(regs.rip, HANDLER);
	EXPECT_EQ(program_box_died(), 0);
	/* a stack that would need a page */
	regs = touch_in_vain(UNTOUCHED + KIB(4));
	EXPECT_EQ(program_box_died(), SIGSEGV);
	brim_end();
}

/* The report of a death shows callers as far as their frames are there. */
TEST(program_signal, a_report_takes_no_memory)
{
	struct trap_frame regs = some_registers();
	struct pages_count before, after;

	regs.rsp = regs.rbp = UNTOUCHED;
	pages_count(&program_space, &before);
	said_begin();
	signal_raise_fault(&regs, SIGSEGV, SEGV_MAPERR, NOWHERE);
	said_end();
	EXPECT(said_says("*111000 is behind the end of ?100000, 110000)*"));
	pages_count(&program_space, &after);
	EXPECT_EQ(program_box_died(), SIGSEGV);
	EXPECT_EQ(after.leaves[PT_PAGE], before.leaves[PT_PAGE]);
}

/* Who has the memory that a touch did not get, and what was wrong with an address. */
TEST(program_signal, a_death_by_memory_says_why)
{
	struct trap_frame regs = some_registers();
	s64 fd;

	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	said_begin();
	touch_in_vain(STACK);
	said_end();
	brim_end();
	EXPECT(said_says("*there was no memory for the touch of 10f000*"));
	EXPECT(said_says("*MiB RAM * are free; the program has mapped 0, its files have 0*"));

	REQUIRE(program_box_again());
	EXPECT_EQ(user_write(ARGUMENTS, "x", 2), 0);
	fd = program_call("memfd_create", ARGUMENTS, 0);
	EXPECT_EQ(program_call("mmap", GIB(1), KIB(4), 1, 0x12, fd, 0), GIB(1));
	regs.rip = GIB(1) + 24;
	said_begin();
	signal_raise_fault(&regs, SIGBUS, BUS_ADRERR, GIB(1));
	said_end();
	EXPECT(said_says("*the file ends before it*") && !said_says("*no memory*"));
	EXPECT(said_says("*at 40000018 /memfd:x (deleted)+0x18*"));

	REQUIRE(program_box_again());
	said_begin();
	signal_raise_fault(&regs, SIGSEGV, SEGV_MAPERR, 0xffff888000001000);
	said_end();
	EXPECT(said_says("*ffff888000001000 is an address of the kernel*"));

	REQUIRE(program_box_again());
	regs.vector = 13;
	said_begin();
	program_exception(&regs);
	said_end();
	EXPECT(said_says("*general protection fault*"));
}

/* ---- interrupted calls ---- */

TEST(program_signal, sigsuspend_runs_handlers_and_then_restores_the_mask)
{
	struct trap_frame regs = some_registers();

	regs.vector = USER_VECTOR_CALL;
	regs.rax = 0;
	EXPECT_EQ(set_action(SIGUSR1, HANDLER, 0, 0), 0);
	EXPECT_EQ(set_mask(SIG_BLOCK, BIT(SIGUSR1) | BIT(SIGTERM)), 0);
	deliver(&regs, SIGUSR1);
	EXPECT_EQ(regs.rip, 0x400123);
	EXPECT_EQ(put(ARGUMENTS, BIT(SIGUSR2)), 0);
	program_call_with(&regs, "rt_sigsuspend", (const u64[6]){ARGUMENTS, 8});
	EXPECT_EQ(regs.rip, HANDLER);
	EXPECT_EQ(thread_current()->blocked, BIT(SIGUSR1) | BIT(SIGUSR2));
	EXPECT_EQ(get(regs.rdx + 296), BIT(SIGUSR1) | BIT(SIGTERM));
	EXPECT_EQ(sigreturn(&regs), -EINTR);
	EXPECT_EQ(regs.rip, 0x400123);
	EXPECT_EQ(thread_current()->blocked, BIT(SIGUSR1) | BIT(SIGTERM));
}

/* A signal that would stop a program stops nothing here. No handler runs, so no call ends by it. */
static u64 time_of(const char *call, const u64 arg[6], s64 *result)
{
	const u64 before = clock_ns();

	*result = program_call_with(NULL, call, arg);
	return clock_ns() - before;
}

TEST(program_signal, a_signal_without_a_handler_ends_no_wait)
{
	enum { WAIT_MS = 20 };
	const u64 time[2] = {0, WAIT_MS * NS_PER_MS}, none = 0;
	const u64 calls[][6] = {{ARGUMENTS, 0},
				{0, 0, ARGUMENTS, 0},
				{0, 0, ARGUMENTS, RESULTS, 8},
				{0, 0, 0, 0, ARGUMENTS},
				{RESULTS, 0, 0, ARGUMENTS}};
	const char *const names[] = {"nanosleep", "ppoll", "ppoll", "pselect6", "futex"};
	const s64 want[] = {0, 0, 0, 0, -ETIMEDOUT};
	s64 result;

	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		EXPECT_EQ(set_mask(SIG_BLOCK, BIT(SIGCHLD)), 0);
		EXPECT_EQ(raise_here(SIGTSTP), 0);
		EXPECT_EQ(raise_here(SIGCHLD), 0); /* blocked, but not by the mask of ppoll() */
		EXPECT_EQ(user_write(ARGUMENTS, time, sizeof(time)), 0);
		EXPECT_EQ(user_write(RESULTS, &none, sizeof(none)), 0);
		EXPECT(time_of(names[i], calls[i], &result) >= WAIT_MS * NS_PER_MS);
		EXPECT_EQ(result, want[i]);
		EXPECT_EQ(thread_current()->pending, calls[i][4] == 8 ? 0 : BIT(SIGCHLD));
		EXPECT_EQ(thread_current()->blocked, BIT(SIGCHLD));
	}
}

TEST(program_signal, a_look_without_waiting_runs_handlers_but_not_that_of_epoll)
{
	const u64 zero[2] = {0}, fd = (u64)program_call("epoll_create1", 0);
	const u64 calls[][6] = {{0, 0, ARGUMENTS, RESULTS, 8},
				{0, 0, 0, 0, ARGUMENTS, RESULTS + 8},
				{fd, ARGUMENTS, 1, 0, RESULTS, 8}};
	const char *const names[] = {"ppoll", "pselect6", "epoll_pwait"};

	EXPECT_EQ(set_action(SIGUSR1, HANDLER, 0, 0), 0);
	EXPECT_EQ(set_mask(SIG_BLOCK, BIT(SIGUSR1)), 0);
	EXPECT_EQ(user_write(ARGUMENTS, zero, sizeof(zero)), 0);
	EXPECT_EQ(user_write(RESULTS, (u64[3]){0, RESULTS, 8}, 3 * sizeof(u64)), 0);
	for (unsigned i = 0; i < ARRAY_LEN(names); i++) {
		struct trap_frame regs = some_registers();

		regs.vector = USER_VECTOR_CALL;
		EXPECT_EQ(raise_here(SIGUSR1), 0);
		program_call_with(&regs, names[i], calls[i]);
		EXPECT_EQ(regs.rip == HANDLER, i < 2);
		EXPECT_EQ(i < 2 ? sigreturn(&regs) : (s64)regs.rax, i < 2 ? -EINTR : 0);
		EXPECT_EQ(thread_current()->blocked, BIT(SIGUSR1));
	}
	EXPECT_EQ(thread_current()->pending, BIT(SIGUSR1));
	EXPECT_EQ(program_call("close", fd), 0);
}

TEST(program_signal, the_mask_of_a_call_ends_with_the_call)
{
	const u64 zero[2] = {0}, during = BIT(SIGUSR2);

	EXPECT_EQ(user_write(ARGUMENTS, zero, sizeof(zero)), 0);
	EXPECT_EQ(user_write(RESULTS, &during, sizeof(during)), 0);
	EXPECT_EQ(program_call("ppoll", 0, 0, ARGUMENTS, RESULTS, 8), 0);
	EXPECT_EQ(set_mask(SIG_BLOCK, BIT(SIGUSR1)), 0);
	EXPECT(program_call("getpid") > 0);
	EXPECT_EQ(thread_current()->blocked, BIT(SIGUSR1));
}

TEST(program_signal, a_call_that_goes_on_has_its_first_time_and_the_next_call_its_own)
{
	const u64 until = clock_until(NS_PER_S);

	clock_delay_ns(NS_PER_MS);
	EXPECT_EQ(clock_until(NS_PER_S), until);
	EXPECT(program_call("getpid") > 0);
	EXPECT(clock_until(NS_PER_S) >= until + NS_PER_MS);
}

/* A call that waits on another CPU, and its result once `done` is set. */
struct sleeping {
	const char *call;
	u64 arg[6];
	s64 result;
	u32 done;
};

static void sleep_there(void *arg)
{
	struct sleeping *s = arg;
	struct trap_frame regs = {.vector = USER_VECTOR_CALL, .rsp = PROGRAM_BOX_MEMORY + KIB(40)};

	program_call_with(&regs, s->call, s->arg);
	s->result = regs.rip == HANDLER ? sigreturn(&regs) : (s64)regs.rax;
	atomic_store_release(&s->done, 1);
}

/*
 * Send signals that run no handler, until the call ends or `most` are sent. After each signal comes
 * a wake for no reason, as a late one from an earlier wait does. Returns how many were sent.
 */
static unsigned send_until_done(const struct sleeping *s, struct thread *to, unsigned most)
{
	const struct signal_info stop = {.signal = SIGTSTP, .code = SI_USER},
				 child = {.signal = SIGCHLD, .code = SI_USER};
	unsigned sent = 0;

	for (; sent < most && !atomic_load_acquire(&s->done); sent++) {
		EXPECT_EQ(signal_send(to, SIGTSTP, &stop), 0);
		EXPECT_EQ(signal_send(NULL, SIGCHLD, &child), 0); /* this thread blocks it */
		thread_wake(to);
		clock_delay_ns(2 * NS_PER_MS);
	}
	return sent;
}

static void expect_waits(const char *call, const u64 arg[6], bool ends)
{
	enum { SOME = 10, MANY = 20000 };
	const struct signal_info info = {.signal = SIGUSR1, .code = SI_USER};
	struct sleeping s = {.call = call};
	const cpu_t cpu = cpus_find_other();
	struct thread *thread = thread_record(cpu);

	REQUIRE(thread);
	memcpy(s.arg, arg, sizeof(s.arg));
	thread->id = THREAD_FIRST_ID + 1;
	REQUIRE(work_start(cpu, sleep_there, &s) == 0);
	if (ends) {
		EXPECT(send_until_done(&s, thread, MANY) < MANY);
	} else {
		EXPECT_EQ(send_until_done(&s, thread, SOME), SOME);
		EXPECT_EQ(signal_send(thread, SIGUSR1, &info), 0);
		thread_wake(thread);
	}
	work_wait(cpu, 0);
	EXPECT_EQ(s.result, ends ? 0 : -EINTR);
	thread->id = 0;
}

TEST(program_signal, a_wait_goes_on_after_signals_without_handlers_until_its_time)
{
	const u64 time[2] = {0, 40 * NS_PER_MS};

	SKIP_ON_ONE_CPU();
	EXPECT_EQ(set_action(SIGUSR1, HANDLER, 0, 0), 0);
	EXPECT_EQ(set_mask(SIG_BLOCK, BIT(SIGCHLD) | BIT(SIGUSR1)), 0);
	EXPECT_EQ(user_write(ARGUMENTS, time, sizeof(time)), 0);
	EXPECT_EQ(put(RESULTS, 0), 0);
	expect_waits("nanosleep", (u64[6]){ARGUMENTS, 0}, true);
	expect_waits("ppoll", (u64[6]){0, 0, ARGUMENTS, RESULTS, 8}, true);
	expect_waits("pselect6", (u64[6]){0, 0, 0, 0, ARGUMENTS}, true);
	expect_waits("pause", (u64[6]){0}, false);
	expect_waits("rt_sigsuspend", (u64[6]){RESULTS, 8}, false);
	expect_waits("futex", (u64[6]){RESULTS}, false);
}

/* It finds the number of the call in rax, and rip at SYSCALL; a wait with a time limit ends. */
TEST(program_signal, after_a_handler_with_sa_restart_a_call_is_made_again)
{
	const u64 event = (u64)program_call("eventfd2", 0, 0), zero_and_second[3] = {0, 1, 0};
	const u64 calls[][6] = {{event, ARGUMENTS, 8}, {RESULTS}, {RESULTS, 0, 0, RESULTS + 8}};

	EXPECT_EQ(user_write(RESULTS, zero_and_second, sizeof(zero_and_second)), 0);
	for (unsigned i = 0; i < 2 * ARRAY_LEN(calls); i++) {
		const bool again = i % 2 && i / 2 < 2;
		struct trap_frame regs = some_registers();

		regs.vector = USER_VECTOR_CALL;
		EXPECT_EQ(set_action(SIGUSR1, HANDLER, i % 2 ? SA_RESTART : 0, 0), 0);
		EXPECT_EQ(raise_here(SIGUSR1), 0);
		program_call_with(&regs, i < 2 ? "read" : "futex", calls[i / 2]);
		EXPECT_EQ(regs.rip, HANDLER);
		EXPECT_EQ(sigreturn(&regs), !again ? -EINTR : i < 2 ? 0 : 202);
		EXPECT_EQ(regs.rip, again ? 0x400121 : 0x400123);
	}
	EXPECT_EQ(program_call("close", event), 0);
}

TEST(program_signal, an_interrupted_sleep_says_what_is_left_unless_it_has_a_point_in_time)
{
	enum { MONOTONIC = 1, BEFORE = 77 };
	const u64 time[2] = {9, 0};

	for (u64 absolute = 0; absolute < 2; absolute++) {
		struct trap_frame regs = some_registers();

		regs.vector = USER_VECTOR_CALL;
		EXPECT_EQ(set_action(SIGUSR1, HANDLER, SA_RESTART, 0), 0);
		EXPECT_EQ(user_write(ARGUMENTS, time, sizeof(time)), 0);
		EXPECT_EQ(put(RESULTS, BEFORE), 0);
		EXPECT_EQ(raise_here(SIGUSR1), 0);
		program_call_with(&regs, "clock_nanosleep",
				  (u64[6]){MONOTONIC, absolute, ARGUMENTS, RESULTS});
		EXPECT_EQ(sigreturn(&regs), -EINTR);
		EXPECT(absolute ? get(RESULTS) == BEFORE : get(RESULTS) <= time[0]);
	}
}

/* ---- pending signals ---- */

static s64 queue(int signal, u64 value)
{
	const u64 info[16] = {(u64)signal, (u32)SI_QUEUE, program_pid(), value};

	EXPECT_EQ(user_write(ARGUMENTS, info, sizeof(info)), 0);
	return program_call("rt_sigqueueinfo", program_pid(), signal, ARGUMENTS);
}

static s64 take(u64 set, u64 seconds)
{
	const u64 time[2] = {seconds, 0};

	EXPECT_EQ(put(ARGUMENTS, set), 0);
	EXPECT_EQ(user_write(ARGUMENTS + 64, time, sizeof(time)), 0);
	return program_call("rt_sigtimedwait", ARGUMENTS, RESULTS, ARGUMENTS + 64, 8);
}

/* Signals from 32 on queue with their values, until the queue is full. */
TEST(program_signal, signals_queue_with_their_values)
{
	unsigned taken = 0, queued = 0;

	EXPECT_EQ(set_mask(SIG_BLOCK, BIT(34) | BIT(35) | BIT(SIGUSR1)), 0);
	for (u64 i = 0; i < 5; i++)
		EXPECT_EQ(queue(34, 100 + i), 0);
	EXPECT_EQ(queue(35, 7), 0);
	EXPECT_EQ(queue(SIGUSR1, 1), 0);
	EXPECT_EQ(queue(SIGUSR1, 2), 0); /* is lost: one is pending */
	for (u64 i = 0; i < 5; i++) {
		EXPECT_EQ(take(BIT(34) | BIT(35), 10), 34);
		EXPECT_EQ(load_u32(RESULTS + 8), (u32)SI_QUEUE);
		EXPECT_EQ(get(RESULTS + 24), 100 + i);
	}
	EXPECT_EQ(take(BIT(34) | BIT(35), 10), 35);
	EXPECT_EQ(take(BIT(34) | BIT(35), 0), -EAGAIN);
	EXPECT_EQ(program_call("rt_sigpending", RESULTS, 9), -EINVAL);
	EXPECT_EQ(program_call("rt_sigpending", RESULTS, 8), 0);
	EXPECT_EQ(get(RESULTS), BIT(SIGUSR1));
	EXPECT_EQ(program_call("rt_sigtimedwait", RESULTS, 0, 0, 4), -EINVAL);
	EXPECT_EQ(program_call("rt_sigtimedwait", RESULTS, 0, NOWHERE, 8), -EFAULT);
	EXPECT_EQ(take(BIT(SIGUSR1), 0), SIGUSR1);
	EXPECT_EQ(get(RESULTS + 24), 1);
	EXPECT_EQ(take(BIT(SIGUSR1), 0), -EAGAIN);
	EXPECT_EQ(thread_current()->blocked, BIT(34) | BIT(35) | BIT(SIGUSR1));

	while (queued < 10000 && queue(34, queued) == 0)
		queued++;
	EXPECT(queued > 100 && queued < 10000);
	EXPECT_EQ(raise_here(SIGUSR1), 0); /* carries nothing that could be lost */
	EXPECT_EQ(take(BIT(SIGUSR1), 0), SIGUSR1);
	while (take(BIT(34), 0) == 34)
		taken++;
	EXPECT_EQ(taken, queued);
	EXPECT_EQ(queue(34, 1), 0);
}

/*
 * Threads come and go on a CPU while another CPU sends to the one that it last saw there: no thread
 * gets what was for another.
 */
enum { THREADS_IN_TURN = 500 };

struct followed {
	u32 id, stop;
};

static void follow(void *arg)
{
	struct followed *followed = arg;

	while (!atomic_load_acquire(&followed->stop)) {
		const u32 id = atomic_load_acquire(&followed->id);
		const struct signal_info info = {.signal = 40, .code = SI_QUEUE, .value = id};

		signal_send_to(id, 40, &info);
		cpu_relax(); /* the turn of a CPU that QEMU runs alone ends here, not inside */
	}
}

TEST(program_signal, a_thread_gets_no_signal_of_the_last_thread_there)
{
	struct followed followed = {.id = 0};
	const cpu_t other = cpus_find_other();
	struct thread *second;
	struct signal_info info;
	u64 taken = 0;

	SKIP_ON_ONE_CPU();
	second = program_box_second();
	REQUIRE(work_start(other, follow, &followed) == 0);
	for (u32 id = 2000; id < 2000 + THREADS_IN_TURN; id++) {
		/* the last one ends, and the next begins */
		signal_thread_ended(second);
		atomic_store_release(&second->id, 0);
		while (!thread_is_over(second))
			cpu_relax();
		EXPECT_EQ(second->pending, 0);
		atomic_store_release(&second->id, id);
		atomic_store_release(&followed.id, id);
		for (unsigned i = 0; i < 20; i++) {
			if (signal_pending_take(second, BIT(40), &info)) {
				EXPECT_EQ(info.value, id);
				taken++;
			}
			cpu_relax();
		}
	}
	atomic_store_release(&followed.stop, 1);
	work_wait(other, 0);
	cpus_note_met(taken, "signals that were taken");
}

/* A program may ignore SIGINT. A user who is in earnest types Ctrl-C twice. */
TEST(program_signal, ctrl_c_interrupts_and_twice_it_kills)
{
	EXPECT(!program_was_interrupted());
	console_file_key(3);
	EXPECT(program_was_interrupted());
	EXPECT_EQ(signal_pending_shared(), signal_bit(SIGINT));
	program_interrupt();
	EXPECT_EQ(signal_pending_shared(), signal_bit(SIGINT) | signal_bit(SIGKILL));
}
