/* Random calls of a program: see fuzz_calls.h. */
#include "tests/host/fuzz_calls.h"

#include <sys/syscall.h>

#include <arch/clock.h>

#include "kernel/core/panic.h"
#include "kernel/core/printk.h"
#include "kernel/program/calls.h"
#include "kernel/program/limits.h"
#include "kernel/program/program.h"
#include "kernel/program/signal_abi.h"
#include "mm/memmap/zone.h"

enum { MAP_ANONYMOUS_PRIVATE = 0x22, MAP_AT = 0x32, RW = 3 };
enum { NONBLOCK = 04000, SET_FLAGS = 4, ADD_SEALS = 1033 };

/* Places in FUZZ_TEXTS. */
enum {
	PATHS = 32,
	PATHS_USED = 25,
	PATH_BYTES = 32,
	TIMES_AT = 1024,
	TIMES = 4,
	ACTIONS_AT = 2048,
	ACTIONS = 4
};

/* Address of the program's code, if it had any. */
#define CODE     0x401000ULL
#define HANDLER  0x402000ULL
#define RESTORER 0x403000ULL
#define CANARY   0x5ca1ab1e0ddba11ULL

struct fuzz_worker fuzz_workers[FUZZ_WORKERS];
struct fuzz_round fuzz_round;
static u16 numbers[CALLS_MAX];
static unsigned numbers_count;
static bool print_all;

void fuzz_calls_begin(u64 seed, bool all)
{
	numbers_count = 0;
	for (unsigned i = 0; i < CALLS_MAX; i++)
		if (call_of(i))
			numbers[numbers_count++] = (u16)i;
	print_all = all;
	memset(fuzz_workers, 0, sizeof(fuzz_workers));
	for (unsigned i = 0; i < FUZZ_WORKERS; i++) {
		fuzz_workers[i].slot = i;
		fuzz_workers[i].random.state = (seed * 64 + i + 1) * 0x9e3779b97f4a7c15ULL;
	}
}

/* ---- saying what failed ---- */

static void print_call(const struct fuzz_worker *w, u64 nth, const struct fuzz_logged *log)
{
	const struct call *call = call_of(log->number);

	print("  # fuzz: thread %u call %llu: %s(%llu) %llx %llx %llx %llx %llx %llx = %lld\n",
	      w->slot, nth, call ? call->name : "?", log->number, log->arg[0], log->arg[1],
	      log->arg[2], log->arg[3], log->arg[4], log->arg[5], log->result);
}

/* Work of the other threads at this moment; they change it meanwhile. */
static __attribute__((no_sanitize("thread"))) void print_others(const struct fuzz_worker *self)
{
	for (const struct fuzz_worker *w = fuzz_workers; w < fuzz_workers + FUZZ_WORKERS; w++)
		if (w != self && w->calls > 0)
			print_call(w, w->calls - 1, &w->log[(w->calls - 1) % FUZZ_LOG]);
}

void fuzz_fail(struct fuzz_worker *w, const char *fmt, ...)
{
	char text[200];

	if (w->astray)
		return;
	FORMAT_ARGS(text, sizeof(text), fmt);
	if (atomic_exchange(&fuzz_round.failed, 1) == 0) {
		print("  # fuzz: seed %llu, thread %u: %s\n", fuzz_round.seed, w->slot, text);
		for (u64 i = w->calls > FUZZ_LOG ? w->calls - FUZZ_LOG : 0; i < w->calls; i++)
			print_call(w, i, &w->log[i % FUZZ_LOG]);
		print_others(w);
	}
	program_end(0);
}

/* ---- making calls ---- */

static u64 stack_top(const struct fuzz_worker *w)
{
	return FUZZ_PRIVATE(w->slot) + FUZZ_STACK_BYTES;
}

static bool is_on_own_stack(const struct fuzz_worker *w, u64 rsp)
{
	return rsp > FUZZ_PRIVATE(w->slot) && rsp <= stack_top(w);
}

static void hostile_call(struct fuzz_worker *w);

/* The handler of all signals: a call or two, then rt_sigreturn(). */
static void handle_signal(struct fuzz_worker *w)
{
	struct trap_frame *regs = w->regs;
	const bool own = is_on_own_stack(w, regs->rsp);
	u64 restorer;

	atomic_fetch_add(&fuzz_round.signals, 1);
	if (own && (user_read(&restorer, regs->rsp, sizeof(restorer)) < 0 || restorer != RESTORER))
		fuzz_fail(w, "the frame of signal %llu at %llx has no restorer", regs->rdi,
			  regs->rsp);
	if (w->depth++ < 2 && own) {
		const struct trap_frame before = *regs;

		regs->r12 = w->slot; /* a clone() may have been interrupted */
		regs->r15 = CANARY;
		hostile_call(w);
		*regs = before;
	}
	w->depth--;
	regs->rsp += sizeof(restorer);
	regs->rip = RESTORER;
	regs->rax = SYS_rt_sigreturn;
	host_user_call(regs);
}

/*
 * Go on where the registers point, until that is behind the call. A frame that other threads can
 * write may lead anywhere; the worker then starts anew, as after longjmp(). Returns false then.
 */
static bool settle(struct fuzz_worker *w)
{
	struct trap_frame *regs = w->regs;

	for (unsigned i = 0; regs->rip != CODE; i++) {
		if (regs->rip == HANDLER && i < 1000) {
			handle_signal(w);
		} else if (regs->rip == CODE - 2 && i < 1000) {
			regs->rip = CODE;
			host_user_call(regs);
		} else {
			regs->rip = CODE;
			regs->rsp = stack_top(w);
			regs->rax = ~0ULL;
			w->astray = true;
			return false;
		}
	}
	return true;
}

static struct fuzz_logged *note(struct fuzz_worker *w, u64 number, const u64 arg[6])
{
	struct fuzz_logged *log = &w->log[w->calls % FUZZ_LOG];

	*log = (struct fuzz_logged){.number = number, .result = -1};
	memcpy(log->arg, arg, sizeof(log->arg));
	if (print_all)
		print_call(w, w->calls, log);
	atomic_store_relaxed(&w->calls, w->calls + 1);
	return log;
}

s64 fuzz_call_with(struct fuzz_worker *w, u64 number, const u64 arg[6])
{
	struct fuzz_logged *log = note(w, number, arg);
	struct trap_frame *regs = w->regs;
	const u64 stamp = w->calls ^ CANARY;
	const u64 rsp = regs->rsp;

	regs->rax = number;
	regs->rdi = arg[0];
	regs->rsi = arg[1];
	regs->rdx = arg[2];
	regs->r10 = arg[3];
	regs->r8 = arg[4];
	regs->r9 = arg[5];
	regs->rbx = stamp;
	regs->rip = CODE;
	host_user_call(regs);
	if (settle(w) && number != SYS_rt_sigreturn && regs->rsp == rsp &&
	    (regs->rbx != stamp || regs->r15 != CANARY || regs->r12 != w->slot))
		fuzz_fail(w, "registers changed: rbx %llx r12 %llx r15 %llx", regs->rbx, regs->r12,
			  regs->r15);
	regs->r12 = w->slot;
	regs->r15 = CANARY;
	log->result = (s64)regs->rax;
	return log->result;
}

/* A page fault in ring 3. */
static void touch(struct fuzz_worker *w, u64 addr, enum user_access access)
{
	struct trap_frame *regs = w->regs;

	regs->vector = 14;
	regs->rip = CODE;
	host_user_fault(regs, addr, access);
	settle(w);
}

/* ---- arguments ---- */

static u64 common(struct fuzz_worker *w)
{
	return FUZZ_COMMON + fuzz_below(w, FUZZ_COMMON_PAGES) * PAGE_SIZE;
}

static u64 scratch(struct fuzz_worker *w)
{
	return FUZZ_PRIVATE(w->slot) + FUZZ_SCRATCH + fuzz_below(w, FUZZ_SCRATCH_BYTES);
}

/* A short time, as timespec or timeval. */
static u64 soon(struct fuzz_worker *w)
{
	return FUZZ_TEXTS + TIMES_AT + 16 * fuzz_below(w, TIMES);
}

/* Never an address of a window, a stack or a buffer. */
static u64 argument(struct fuzz_worker *w)
{
	static const u64 odd[] = {0,
				  1,
				  ~0ULL,
				  4095,
				  PAGE_SIZE,
				  1ULL << 31,
				  1ULL << 47,
				  USER_END,
				  USER_END - 1,
				  USER_END - PAGE_SIZE,
				  0xffff800000000000ULL,
				  0xffff888000001000ULL,
				  0xffffffff80200000ULL,
				  0xfffffffffffff000ULL,
				  1ULL << 63,
				  ~0ULL >> 1,
				  0xffffffffULL,
				  0xdeadbeef00000000ULL};
	u64 value;

	switch (fuzz_below(w, 10)) {
	case 0:
		return odd[fuzz_below(w, ARRAY_LEN(odd))];
	case 1:
		value = next_random(&w->random.state) >> fuzz_below(w, 64);
		return value >= FUZZ_PRIVATE(0) && value < FUZZ_PRIVATE_END ? common(w) : value;
	case 2:
		return common(w);
	case 3: /* straddling a border of pages, aligned or not */
		return common(w) + PAGE_SIZE - fuzz_below(w, 24);
	case 4:
		return scratch(w);
	case 5:
		return ALIGN_DOWN(scratch(w), 8);
	case 6:
		return FUZZ_TEXTS + PATH_BYTES * fuzz_below(w, PATHS);
	case 7:
		return PAGE_SIZE * fuzz_below(w, 1024);
	default:
		return fuzz_below(w, 64);
	}
}

/* ---- calls that make sense ---- */

static u64 vectors(struct fuzz_worker *w)
{
	const u64 at = ALIGN_DOWN(scratch(w), 64);
	u64 pair[8];

	for (unsigned i = 0; i < 8; i += 2) {
		pair[i] = common(w) + fuzz_below(w, PAGE_SIZE);
		pair[i + 1] = fuzz_below(w, 1ULL << fuzz_below(w, 15));
	}
	user_write(at, pair, sizeof(pair));
	return at;
}

/*
 * An argument with which the call does something: the letters of call_rows.h, and w zero or one, N
 * flags with which nothing waits.
 */
static u64 sensible(struct fuzz_worker *w, char kind)
{
	static const u64 opens[] = {0,     1,     2,       0102,      0302,
				    01102, 02102, 0200000, 020200002, 010000000};

	switch (kind) {
	case 'p':
		return FUZZ_TEXTS + PATH_BYTES * fuzz_below(w, PATHS_USED);
	case 'f':
		return fuzz_below(w, 12);
	case 'd':
		return fuzz_below(w, 4) ? (u64)-100LL : fuzz_below(w, 12);
	case 'b':
		return fuzz_below(w, 2) ? common(w) + 8 * fuzz_below(w, 512)
					: ALIGN_DOWN(scratch(w), 64);
	case 's':
		return fuzz_below(w, 1ULL << fuzz_below(w, 17));
	case 'v':
		return vectors(w);
	case 't':
		return soon(w);
	case 'o':
		return opens[fuzz_below(w, ARRAY_LEN(opens))];
	case 'm':
		return 0700;
	case 'n':
		return fuzz_below(w, 5);
	case '8':
		return 8;
	case 'w':
		return fuzz_below(w, 2);
	case 'N':
		return NONBLOCK | fuzz_below(w, 2);
	default:
		return 0;
	}
}

/* Give arguments a sense, but for one in `odd`. */
static void make_sensible(struct fuzz_worker *w, const char *kinds, u64 odd, u64 arg[6])
{
	for (unsigned n = 0; kinds[n]; n++)
		if (kinds[n] != '.' && fuzz_below(w, odd))
			arg[n] = sensible(w, kinds[n]);
}

/* ---- arguments that would end the run ---- */

static bool mostly(struct fuzz_worker *w)
{
	return fuzz_below(w, 64) != 0;
}

/* Would a range reach into memory that the model or the fuzzer knows? */
static bool hits_private(u64 start, u64 size)
{
	const u64 end = start + ALIGN_UP(size, PAGE_SIZE);

	return (start < FUZZ_PRIVATE_END && end > FUZZ_PRIVATE(0)) ||
	       (start < FUZZ_TEXTS + PAGE_SIZE && end > FUZZ_TEXTS);
}

/* The range of a call on memory stays outside of what somebody knows. */
static void tame_range(struct fuzz_worker *w, u64 *start, u64 *size)
{
	if (fuzz_below(w, 2)) {
		*start = common(w);
		*size = (1 + fuzz_below(w, fuzz_below(w, 8) ? 8 : 1024)) * PAGE_SIZE;
	}
	if (hits_private(*start, *size)) {
		*start = common(w);
		*size %= MIB(4);
	}
}

/* Signals that the handler takes; the others end the program. */
static u64 harmless_signal(struct fuzz_worker *w)
{
	return fuzz_below(w, 4) ? 10 + 2 * fuzz_below(w, 2) : 34 + fuzz_below(w, 8);
}

static void tame_memory(struct fuzz_worker *w, unsigned number, u64 arg[6])
{
	switch (number) {
	case SYS_mmap:
		if (arg[1] > GIB(64))
			arg[1] %= GIB(64);
		if (fuzz_below(w, 2))
			arg[3] = MAP_ANONYMOUS_PRIVATE | (fuzz_below(w, 4) ? 0 : 0x40000) |
				 (fuzz_below(w, 2) ? 0x10 : 0) | (fuzz_below(w, 4) ? 0 : 0xc000);
		else if (fuzz_below(w, 2))
			arg[4] = fuzz_below(w, 24);
		if (hits_private(arg[0], arg[1]))
			arg[0] = common(w);
		if (fuzz_below(w, 2))
			arg[1] = (1 + fuzz_below(w, 1024)) * PAGE_SIZE;
		return;
	case SYS_mremap:
		tame_range(w, &arg[0], &arg[1]);
		arg[2] %= MIB(8);
		if (fuzz_below(w, 2))
			arg[3] = fuzz_below(w, 8);
		if (fuzz_below(w, 8) == 0)
			arg[1] = 0;
		else if (arg[3] & 4)
			arg[2] = arg[1];
		if (hits_private(arg[4], arg[2]))
			arg[4] = common(w);
		return;
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_madvise:
	case SYS_mincore:
	case SYS_msync:
	case SYS_mlock:
	case SYS_mlock2:
	case SYS_mbind:
		tame_range(w, &arg[0], &arg[1]);
		if (number == SYS_madvise && fuzz_below(w, 2))
			arg[2] = fuzz_below(w, 8) ? fuzz_below(w, 26) : 102 + fuzz_below(w, 2);
		return;
	default:
		return;
	}
}

/* Calls that wait, with a time that ends soon, or without waiting. */
static const struct {
	u16 number;
	char kinds[7];
} waits[] = {
	{SYS_nanosleep, "t"},       {SYS_clock_nanosleep, ".0t"},
	{SYS_poll, ".nw"},          {SYS_ppoll, ".nt"},
	{SYS_select, "....t"},      {SYS_pselect6, "....t"},
	{SYS_epoll_wait, "...w"},   {SYS_epoll_pwait, "...w"},
	{SYS_epoll_pwait2, "...t"}, {SYS_rt_sigtimedwait, "..t"},
	{SYS_pipe2, ".N"},          {SYS_eventfd2, ".N"},
};

/*
 * Waits end soon, mostly. The watcher ends the round when all threads wait for ever. False: the
 * call would wait for ever.
 */
static bool tame_wait(struct fuzz_worker *w, unsigned number, u64 arg[6])
{
	for (size_t i = 0; i < ARRAY_LEN(waits); i++)
		if (waits[i].number == number)
			make_sensible(w, waits[i].kinds, 1ULL << 32, arg);
	if (number == SYS_futex) {
		arg[1] = fuzz_below(w, 14) | fuzz_below(w, 2) * 128;
		arg[0] = ALIGN_DOWN(fuzz_below(w, 2) ? scratch(w) : common(w), 64);
		arg[4] = ALIGN_DOWN(common(w), 64);
		if ((arg[1] & 127) == 0 || (arg[1] & 127) == 9)
			arg[3] = soon(w);
		if (fuzz_below(w, 2))
			arg[2] = fuzz_below(w, 2);
	} else if (number == SYS_fcntl) {
		arg[1] = fuzz_below(w, 8) ? fuzz_below(w, 12) : ADD_SEALS;
		if (arg[1] == SET_FLAGS)
			arg[2] |= NONBLOCK;
		else if (arg[1] == ADD_SEALS)
			arg[2] = 1ULL << fuzz_below(w, 6);
	}
	return number != SYS_pause && number != SYS_rt_sigsuspend && number != SYS_pipe &&
	       number != SYS_eventfd;
}

static void tame_signal(struct fuzz_worker *w, unsigned number, u64 arg[6])
{
	const unsigned at = number == SYS_tgkill || number == SYS_rt_tgsigqueueinfo ? 2 : 1;

	switch (number) {
	/* another of our actions, or none, or for a signal that nobody sends */
	case SYS_rt_sigaction:
		if (fuzz_below(w, 4)) {
			arg[1] = fuzz_below(w, 2) *
				 (FUZZ_TEXTS + ACTIONS_AT +
				  sizeof(struct signal_action) * fuzz_below(w, ACTIONS));
			arg[0] = harmless_signal(w);
		} else {
			arg[0] = 50 + fuzz_below(w, 20);
		}
		arg[3] = 8;
		return;
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
		arg[at] = harmless_signal(w);
		arg[0] =
			number == SYS_tkill ? THREAD_FIRST_ID + fuzz_below(w, 32) : THREAD_FIRST_ID;
		if (at == 2)
			arg[1] = THREAD_FIRST_ID + fuzz_below(w, 32);
		return;
	default:
		return;
	}
}

/* Change arguments with which a call would end the run or say nothing. False: leave it out. */
static bool tame(struct fuzz_worker *w, unsigned number, u64 arg[6])
{
	const struct call *call = call_of(number);
	const char *kinds = call ? call->arguments : "";

	if (number == SYS_exit || number == SYS_exit_group)
		return false;
	if ((number == SYS_clone || number == SYS_clone3) && fuzz_below(w, 8))
		return false;
	if (number == SYS_rt_sigreturn &&
	    w->depth > 0) /* it ends the program where SIGSEGV is blocked */
		return false;
	if (kinds[0] == 'f' && fuzz_below(w, 8))
		arg[0] = fuzz_below(w, 24);
	if (fuzz_below(w, 4))
		make_sensible(w, kinds, 16, arg);
	switch (number) {
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
		arg[2] = fuzz_below(w, 1ULL << fuzz_below(w, 20));
		break;
	case SYS_getrandom:
		arg[1] %= KIB(64);
		break;
	case SYS_fallocate:
		arg[1] = fuzz_below(w, 4);
		arg[3] %= MIB(1);
		break;
	case SYS_setrlimit: /* of memory: no later call would do anything */
		arg[0] = RLIMIT_NOFILE;
		break;
	case SYS_prlimit64:
		arg[1] = RLIMIT_NOFILE;
		break;
	case SYS_epoll_ctl:
		arg[1] = 1 + fuzz_below(w, 3);
		break;
	default:
		break;
	}
	tame_memory(w, number, arg);
	tame_signal(w, number, arg);
	if (mostly(w) && !tame_wait(w, number, arg))
		return false;
	/* the workers' own files stay theirs */
	for (unsigned i = 0; i < 6; i++)
		if ((u32)arg[i] >= FUZZ_DESCRIPTOR && (u32)arg[i] < FUZZ_DESCRIPTOR + FUZZ_WORKERS)
			arg[i] = 7;
	return true;
}

/* ---- steps ---- */

/* A call on the file of which nobody knows what it did is made again. */
static s64 window_call(struct program_window *window, unsigned number, const u64 arg[6])
{
	struct fuzz_worker *w = container_of(window, struct fuzz_worker, window);
	s64 result;

	do {
		if (number == SYS_pread64 || number == SYS_pwrite64)
			w->astray = false;
		result = fuzz_call_with(w, number, arg);
	} while (w->astray && (number == SYS_pread64 || number == SYS_pwrite64));
	return result;
}

static void window_fail(struct program_window *window, const char *text)
{
	fuzz_fail(container_of(window, struct fuzz_worker, window), "%s", text);
}

static bool window_begin(struct fuzz_worker *w)
{
	w->window.start = FUZZ_PRIVATE(w->slot) + FUZZ_WINDOW;
	w->window.buffer = FUZZ_PRIVATE(w->slot) + FUZZ_BUFFER;
	w->window.file = FUZZ_DESCRIPTOR + w->slot;
	w->window.may_fail = true;
	w->window.random = &w->random;
	w->window.call = window_call;
	w->window.fail = window_fail;
	return program_window_begin(&w->window);
}

/* A step in which the thread went astray has done nobody knows what. */
static void window_step(struct fuzz_worker *w)
{
	w->astray = false;
	program_window_step(&w->window);
	while (w->astray) {
		w->astray = false;
		program_window_clear(&w->window);
	}
}

static void reset_signals(struct fuzz_worker *w)
{
	const u64 zeros[4] = {0}, at = FUZZ_PRIVATE(w->slot) + FUZZ_BUFFER;

	user_write(at, zeros, sizeof(zeros));
	fuzz_call(w, SYS_setitimer, 0, at, 0);
	fuzz_call(w, SYS_rt_sigprocmask, 2, at, 0, 8);
}

static void hostile_call(struct fuzz_worker *w)
{
	const bool known = fuzz_below(w, 32) != 0;
	const u64 number = known ? numbers[fuzz_below(w, numbers_count)]
				 : next_random(&w->random.state) >> fuzz_below(w, 64);
	const u64 rsp = w->regs->rsp;
	u64 arg[6];

	if (fuzz_below(w, 4) == 0) {
		const u64 word = argument(w);

		user_write(ALIGN_DOWN(scratch(w), 8), &word, sizeof(word));
	}
	for (unsigned i = 0; i < 6; i++)
		arg[i] = argument(w);
	if (!known && call_of(number))
		return;
	if (!tame(w, (unsigned)number, arg))
		return;
	if (number == SYS_rt_sigreturn)
		w->regs->rsp = scratch(w);
	fuzz_call_with(w, number, arg);
	w->regs->rsp = rsp;
	if (w->depth == 0 && (number == SYS_rt_sigprocmask || number == SYS_rt_sigreturn ||
			      number == SYS_rt_sigsuspend))
		reset_signals(w);
}

static void touch_common(struct fuzz_worker *w)
{
	for (unsigned i = 0; i < 4; i++)
		touch(w, common(w) + fuzz_below(w, PAGE_SIZE), (enum user_access)fuzz_below(w, 3));
}

/* A new thread on a free slot, with everything that it needs mapped. */
static void start_thread(struct fuzz_worker *w)
{
	enum { THREAD = 0x10900, CLEAR = 0x200000 };
	struct fuzz_worker *child = NULL;
	const struct trap_frame before = *w->regs;
	bool known;
	s64 id;

	for (unsigned i = 1; i < FUZZ_WORKERS && !child; i++)
		if (atomic_cas(&fuzz_workers[i].used, 0, 1))
			child = &fuzz_workers[i];
	if (!child)
		return;
	w->regs->r12 = child->slot;
	w->regs->r15 = ~CANARY;
	w->regs->rax = SYS_clone;
	w->regs->rdi = THREAD | CLEAR;
	w->regs->rsi = FUZZ_PRIVATE(child->slot) + FUZZ_STACK_BYTES;
	w->regs->rdx = 0;
	w->regs->r10 = common(w);
	w->regs->rip = CODE;
	host_user_call(w->regs);
	known = settle(w);
	id = (s64)w->regs->rax;
	*w->regs = before;
	if (!known) /* nobody knows whether it has started: the slot stays used in this round */
		return;
	if (id < 0)
		atomic_store_release(&child->used, 0);
	else
		atomic_fetch_add(&fuzz_round.threads, 1);
}

static void step(struct fuzz_worker *w)
{
	const u64 which = fuzz_below(w, 16);

	if (which < 8)
		hostile_call(w);
	else if (which < 14)
		window_step(w);
	else if (which < 15 || mostly(w))
		touch_common(w);
	else
		start_thread(w);
	if (++w->since_upkeep >= 16) {
		w->since_upkeep = 0;
		reset_signals(w);
	}
}

/* ---- threads ---- */

static bool map(struct fuzz_worker *w, u64 at, u64 size)
{
	return fuzz_call(w, SYS_mmap, at, size, RW, MAP_AT, ~0ULL, 0) == (s64)at;
}

/* By all workers; the first thread's own calls do not count. */
static u64 calls_made(void)
{
	u64 calls = 0;

	for (unsigned i = 1; i < FUZZ_WORKERS; i++)
		calls += atomic_load_relaxed(&fuzz_workers[i].calls);
	return calls;
}

/* The thread ends; from here on another one may have its slot. */
static __noreturn void leave(struct fuzz_worker *w)
{
	struct trap_frame *regs = w->regs;

	regs->rax = SYS_exit;
	regs->rdi = 0;
	atomic_store_release(&w->used, 0);
	host_user_call(regs);
	panic("exit() returned");
}

static void work(struct fuzz_worker *w)
{
	const u64 base = FUZZ_PRIVATE(w->slot);

	w->depth = w->since_upkeep = 0;
	if (map(w, base, FUZZ_STACK_BYTES) && map(w, base + FUZZ_SCRATCH, FUZZ_SCRATCH_BYTES) &&
	    map(w, base + FUZZ_BUFFER, PAGE_SIZE) && window_begin(w)) {
		reset_signals(w);
		while (calls_made() < fuzz_round.calls && fuzz_below(w, 3000) != 0)
			step(w);
		program_window_end(&w->window);
	}
	leave(w);
}

/* ---- the first thread: begins, watches, ends ---- */

static void write_texts(struct fuzz_worker *w)
{
	static const char *const paths[] = {"/tmp/a",
					    "/tmp/b",
					    "/tmp/d",
					    "/tmp/d/e",
					    "/tmp/d/../b",
					    "/tmp/link",
					    "//tmp//a",
					    "a/",
					    ".",
					    "..",
					    "/",
					    "",
					    "/dev/zero",
					    "/dev/null",
					    "/dev/full",
					    "/dev/urandom",
					    "/proc/self/maps",
					    "/proc/self/smaps",
					    "/proc/self/exe",
					    "/proc/meminfo",
					    "/tmp",
					    "/tmp/d/e/f",
					    "/tmp/d/e/f/g",
					    "x",
					    "/proc/self/status"};
	static const u64 times[TIMES][2] = {{0, 0}, {0, 1}, {0, 20}, {0, 50000}};
	static const struct signal_action actions[ACTIONS] = {
		{HANDLER, SA_SIGINFO | SA_RESTORER, RESTORER, 0},
		{HANDLER, SA_SIGINFO | SA_RESTORER | SA_RESTART, RESTORER, 0},
		{HANDLER, SA_SIGINFO | SA_RESTORER | SA_NODEFER, RESTORER, ~0ULL},
		{HANDLER, SA_SIGINFO | SA_RESTORER | SA_RESTART | SA_ONSTACK, RESTORER, 0}};

	_Static_assert(ARRAY_LEN(paths) == PATHS_USED, "the paths");
	for (unsigned i = 0; i < ARRAY_LEN(paths); i++)
		user_write(FUZZ_TEXTS + i * PATH_BYTES, paths[i], strlen(paths[i]) + 1);
	user_write(FUZZ_TEXTS + TIMES_AT, times, sizeof(times));
	user_write(FUZZ_TEXTS + ACTIONS_AT, actions, sizeof(actions));
	for (u64 i = 1; i < 42; i++)
		fuzz_call(w, SYS_rt_sigaction, i,
			  FUZZ_TEXTS + ACTIONS_AT + sizeof(actions[0]) * (i % 2), 0, 8);
}

static bool begin(struct fuzz_worker *w)
{
	const u64 all = ~0ULL, at = FUZZ_PRIVATE(0);
	s64 file;

	if (!map(w, at, FUZZ_STACK_BYTES) || !map(w, FUZZ_TEXTS, PAGE_SIZE))
		return false;
	write_texts(w);
	fuzz_call(w, SYS_mprotect, FUZZ_TEXTS, PAGE_SIZE, 1);
	user_write(at, &all, sizeof(all));
	fuzz_call(w, SYS_rt_sigprocmask, 2, at, 0, 8);
	/* nothing of this reaches the console */
	file = fuzz_call(w, SYS_memfd_create, FUZZ_TEXTS, 0);
	for (u64 i = 0; i < 3; i++)
		if (file < 0 || fuzz_call(w, SYS_dup2, (u64)file, i) < 0)
			return false;
	return true;
}

static bool any_worker(void)
{
	for (unsigned i = 1; i < FUZZ_WORKERS; i++)
		if (atomic_load_acquire(&fuzz_workers[i].used))
			return true;
	return false;
}

/*
 * Start threads until the calls are made, and then wait for the last thread's end. True if that
 * came; false if the threads wait for ever, or the program has ended.
 */
static bool watch(struct fuzz_worker *w)
{
	enum { FAIL_AFTER = 500 };
#ifdef HOST_SANITIZED
	enum { STALL_MS = 200 };
#else
	enum { STALL_MS = 20 };
#endif
	u64 made = 0, since = clock_ns();
	int status;

	while (!program_ended(&status)) {
		const u64 now = calls_made();
		const bool over = now >= fuzz_round.calls;

		if (fuzz_round.fail_nth && now >= FAIL_AFTER) {
			fail_arm(&mm_kernel.fail, FAIL_ALLOC, fuzz_round.fail_nth, FAIL_AGAIN);
			fuzz_round.fail_nth = 0;
		}

		if (over && (fuzz_round.seed % 3 == 0 || !any_worker()))
			return !any_worker();
		if (now != made) {
			made = now;
			since = clock_ns();
		} else if (clock_ns() - since > STALL_MS * NS_PER_MS) {
			fuzz_round.stalls++;
			return false;
		}
		if (!over)
			start_thread(w);
		fuzz_call(w, SYS_nanosleep, FUZZ_TEXTS + TIMES_AT + 16 * 3, 0);
	}
	return false;
}

/* A round ends with the last thread, or while threads are in their calls. */
static void lead(struct fuzz_worker *w)
{
	if (!begin(w) || !watch(w))
		fuzz_call(w, SYS_exit_group, 0);
	leave(w);
}

void fuzz_program(struct trap_frame *regs)
{
	struct fuzz_worker *w = &fuzz_workers[regs->r12 % FUZZ_WORKERS];
	const bool expected = regs->r15 == ~CANARY;

	if (!expected) { /* a clone() that had random arguments */
		regs->rax = SYS_exit;
		host_user_call(regs);
		return;
	}
	w->regs = regs;
	regs->r15 = CANARY;
	regs->rsp = stack_top(w);
	if (w->slot == 0)
		lead(w);
	else
		work(w);
}

struct trap_frame fuzz_first_regs(void)
{
	return (struct trap_frame){.rip = CODE, .r12 = 0, .r15 = ~CANARY};
}
