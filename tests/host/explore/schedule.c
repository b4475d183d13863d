/*
 * CPUs as stacks of one thread: see explore.h.
 *
 *   explore_point()  interrupt pending?  take it, or let it wait
 *                    which CPU is next?  another: take back stores, change stacks, ...
 *                                        ... come back, lay stores over
 *
 * A CPU that relaxes waits until another CPU has stored something, because until then it would read
 * what it has read before. If all CPUs wait or are halted, time passes: the clock is a count of
 * points, and jumps by 1 us, later by 2 us, 4 us and so on up to a second, but not beyond the next
 * timer. Then the CPUs that wait look again. If all are halted, no timer is set and no interrupt is
 * on its way, that is a deadlock. A case that takes an hour by this clock, or many times as many
 * points as by default, is a livelock.
 */
#define _GNU_SOURCE
#include <time.h>

#include "kernel/core/verdict.h"
#include "tests/host/child.h"
#include "tests/host/explore/explore.h"
#include "tests/kernel/test.h"

enum { STACK_BYTES = 1 << 20, FIRST_STACK_BYTES = 8 << 20, ALONE_MAX = 5000, FIRST_WORDS = 8 };
enum { FRAMES_SHOWN = 8, JUMPS_DOUBLED = 20, JUMPS_ALIKE = 1024 };
enum { NS_PER_POINT = 1000, NS_PER_LOOK = 10 };

#define CASE_NS_MAX (3600 * NS_PER_S)

static struct explored {
	virt_t *sp; /* of a CPU that does not run: the registers that a call keeps lie there */
	host_cpu_fn *fn;
	virt_t stack, stack_end;
	struct percpu *percpu;
	bool runs; /* has begun, and was not stopped for good */
	bool asleep;
	u32 points;        /* since the first choice */
	u32 hold;          /* points until its interrupt is taken; 0: not chosen yet */
	u32 alone;         /* points while it ran on and others could have */
	const void *place; /* of its latest point */
	const virt_t *frame;
	enum host_point kind;
	const void *object;
} cpus[EXPLORE_CPUS_MAX];

cpu_t explore_here;
static u64 waiting; /* CPUs (bits) that relax or halt, while no other CPU has stored since */
static u64 case_began;
u64 explore_now = 1;
static unsigned jumps;
static bool alone; /* the machine ends: no other CPU runs */
/* The search begins with the first choice, or later, when two CPUs have work of the case. */
static enum { BEFORE_CASE, BEFORE_CHOICES, BEFORE_WORK, SEARCHED } moment;
bool exploring;
struct explore_request explore_request;
struct explore_result *explore_result;

/* ---- what is found ---- */

/* Return addresses from the CPU's latest point outwards. Frames are linked by rbp. */
static size_t walk(const struct explored *cpu, virt_t *out, size_t max)
{
	const virt_t *frame = cpu->frame;
	size_t n = 0;

	while (n < max && (virt_t)frame >= cpu->stack && (virt_t)frame + 16 <= cpu->stack_end) {
		const virt_t *next = (const virt_t *)frame[0];

		out[n++] = frame[1];
		if (next <= frame)
			break;
		frame = next;
	}
	return n;
}

static void say_places(void)
{
	virt_t frame[FRAMES_SHOWN];

	for (cpu_t i = 0; i < EXPLORE_CPUS_MAX; i++) {
		const size_t n = walk(&cpus[i], frame, FRAMES_SHOWN);

		if (!cpus[i].runs)
			continue;
		child_say("explore: CPU %u %-6s at its point %u:", i,
			  i == explore_here  ? "runs"
			  : cpus[i].asleep   ? "halted"
			  : waiting >> i & 1 ? "waits"
					     : "ready",
			  cpus[i].points);
		for (size_t f = 0; f < n; f++)
			child_say(" %s%s", f ? "< " : "",
				  schedule_function((const void *)frame[f]));
		child_say("\n");
	}
}

static void found_once(const char *text)
{
	if (!explore_result->finding[0])
		format(explore_result->finding, FINDING_MAX, "%s", text);
}

void explore_found(const char *fmt, ...)
{
	char text[FINDING_MAX];

	exploring = false;
	alone = true;
	FORMAT_ARGS(text, sizeof(text), fmt);
	found_once(text);
	child_say("explore: %s\n", text);
	say_places();
	_exit(2);
}

void explore_outcome(unsigned outcome)
{
	explore_result->outcomes |= 1ULL << outcome;
}

/* ---- the CPUs that can run ---- */

static bool is_ready(cpu_t id)
{
	const struct explored *cpu = &cpus[id];
	const struct host_cpu *host = &host_cpus[id];

	if (!cpu->runs)
		return false;
	if (cpu->asleep)
		return host->pending;
	return !(waiting >> id & 1) || (host->pending && host->irq_on);
}

static u64 ready_set(void)
{
	u64 set = 0;

	timers_fire();
	for (cpu_t i = 0; i < host_config.cpus; i++)
		set |= (u64)is_ready(i) << i;
	return set;
}

static bool several(u64 set)
{
	return (set & (set - 1)) != 0;
}

/* The CPUs of the set that have work of the case, and do not only answer messages. */
static u64 with_work(u64 set)
{
	u64 found = 0;

	for (u64 left = set; left; left &= left - 1)
		if (atomic_load_relaxed(&cpu_data((cpu_t)__builtin_ctzll(left))->work.claimed))
			found |= left & -left;
	return found;
}

/*
 * The CPU that runs by default: this CPU as long as it can, then the next by number. A CPU that
 * never waits, though others could run, gives way after ALONE_MAX points, since it may work in a
 * loop until they have done something.
 */
static cpu_t usual_of(u64 ready)
{
	const bool leaves = waiting >> explore_here & 1 || cpus[explore_here].alone > ALONE_MAX;

	for (cpu_t i = leaves; i <= host_config.cpus; i++)
		if (ready >> (explore_here + i) % host_config.cpus & 1)
			return (explore_here + i) % host_config.cpus;
	return explore_here;
}

/* No CPU can run. Let kept stores become final, or time pass, or end the machine. */
static void pass_time(void)
{
	const u64 timer = timers_earliest();
	bool any = false;

	for (cpu_t i = 0; i < EXPLORE_CPUS_MAX; i++) {
		if (i != explore_here && buffer_count[i] > 0) {
			buffer_drain(i);
			explore_stored(i);
			return;
		}
	}
	explore_now += (u64)NS_PER_POINT << MIN(jumps / JUMPS_ALIKE, JUMPS_DOUBLED);
	jumps++;
	waiting = 0;
	for (cpu_t i = 0; i < EXPLORE_CPUS_MAX; i++)
		any |= cpus[i].runs && !cpus[i].asleep;
	if (timer && (!any || explore_now > timer))
		explore_now = timer;
	else if (!any)
		explore_found("deadlock: every CPU is halted, and no interrupt is on its way");
}

/* ---- changing stacks ---- */

/* swapcontext() would ask the host for its mask of signals each time. */
void switch_stacks(virt_t **from, virt_t *to);
__asm__("switch_stacks:\n\t"
	"push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n\t"
	"mov %rsp, (%rdi); mov %rsi, %rsp\n\t"
	"pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp; ret");

static void run(cpu_t to, u32 keep)
{
	const cpu_t from = explore_here;

	if (exploring)
		stale_show(false);
	buffer_take_back(from, keep, cpus[from].frame);
	cpus[from].percpu = host_this_cpu;
	explore_here = to;
	host_me = &host_cpus[to];
	host_this_cpu = cpus[to].percpu;
	switch_stacks(&cpus[from].sp, cpus[to].sp);
	buffer_lay_over(from);
	if (exploring)
		stale_show(true);
}

/* The runner takes the place of the machine. What follows is run by each of its children. */
static void search(bool last)
{
	alone = true;
	host_me = NULL; /* the runner is no CPU */
	moment = explore_search(last) ? SEARCHED : BEFORE_WORK;
	host_me = &host_cpus[explore_here];
	alone = false;
	if (moment != SEARCHED)
		return;
	case_began = explore_now;
	choose_begin();
	exploring = true;
}

/* Run the CPU that is chosen. Returns when this CPU goes on; true if another has run. */
static bool choose_and_run(void)
{
	const cpu_t self = explore_here;
	u32 keep = 0;
	cpu_t to;
	u64 ready;

	while (!(ready = ready_set()))
		pass_time();
	to = usual_of(ready);
	if (moment == BEFORE_CHOICES && several(ready))
		search(several(with_work(ready)));
	if (moment == BEFORE_WORK && several(with_work(ready)))
		search(true);
	if (exploring) {
		if (several(ready)) {
			explore_result->decisions++;
			explore_result->chosen_from |= with_work(ready);
		}
		to = choose_cpu(ready, to, buffer_count[self], &keep);
		choose_passed(false);
	}
	cpus[self].alone = to == self && several(ready) ? cpus[self].alone + 1 : 0;
	if (to != self)
		run(to, keep);
	waiting &= ~(1ULL << self);
	return to != self;
}

static void count_point(struct explored *me)
{
	u64 *hash = &explore_result->hash;

	explore_now += NS_PER_POINT;
	if (moment > BEFORE_CASE && moment < SEARCHED &&
	    explore_now - case_began > explore_request.points_max * NS_PER_POINT)
		_exit(VERDICT_FAIL); /* so late a choice is not waited for */
	if (!exploring)
		return;
	me->points++;
	*hash = (*hash ^ (virt_t)me->place ^ (u64)explore_here << 56 ^ (u64)me->kind << 48) *
		0x9e3779b97f4a7c15ULL;
	*hash ^= *hash >> 29;
	if (++explore_result->points > explore_request.points_max ||
	    explore_now - case_began > CASE_NS_MAX)
		explore_found("livelock: no end after %llu points and %llu s of the machine's time",
			      explore_result->points, (explore_now - case_began) / NS_PER_S);
}

/* Take an interrupt that has come, unless it waits. True if its handler has run. */
static bool take_interrupt(struct explored *me)
{
	if (!host_me->pending)
		me->hold = 0;
	if (!host_me->irq_on || !host_me->pending)
		return false;
	if (me->hold == 0)
		me->hold = 1 + (exploring ? choose_hold() : 0);
	if (--me->hold > 0)
		return false;
	buffer_drain(explore_here); /* Intel SDM vol. 3A, 12.10 "Store Buffer": by any interrupt */
	host_deliver();
	return true;
}

void explore_point(enum host_point kind, const void *object, const virt_t *frame)
{
	struct explored *me = &cpus[explore_here];

	if (alone || !me->runs || host_simulates())
		return;
	do { /* again after a handler, which had points of its own */
		me->kind = kind;
		me->object = object;
		me->frame = frame;
		me->place = (const void *)frame[1];
		count_point(me);
	} while (take_interrupt(me));
	/*
	 * A CPU that comes back with stores that were kept is at a point again: it may stop before
	 * it does anything, so that more of them are final when it goes on.
	 */
	while (choose_and_run() && exploring && buffer_count[explore_here] > 0)
		count_point(me);
}

void explore_stored(cpu_t cpu)
{
	waiting &= 1ULL << cpu;
	jumps = 0;
}

bool explore_own_stack(const void *addr)
{
	return (virt_t)addr - cpus[explore_here].stack <
	       cpus[explore_here].stack_end - cpus[explore_here].stack;
}

u32 explore_points(cpu_t cpu)
{
	return cpus[cpu].points;
}

bool explore_race(cpu_t a, cpu_t b)
{
	return cpus[a].object && cpus[a].object == cpus[b].object &&
	       (cpus[a].kind != HOST_LOAD || cpus[b].kind != HOST_LOAD);
}

struct choice explore_choice(void)
{
	return (struct choice){.cpu = (u16)explore_here,
			       .point = cpus[explore_here].points,
			       .place = cpus[explore_here].place};
}

/* ---- what cpu.c asks for ---- */

/* A point in a function of the simulated machine is named after that function's caller. */
#define CALLER (*(const virt_t *const *)__builtin_frame_address(0))

__attribute__((noinline)) void host_point(enum host_point kind, const void *object)
{
	if (kind == HOST_IPI) /* the real one fences first: arch/x86_64/traps/apic.c */
		buffer_drain(explore_here);
	explore_point(kind, object, CALLER);
	if (kind == HOST_FLUSH) { /* Intel SDM vol. 3A, 9.3: INVLPG and MOV to CR3 serialise */
		buffer_drain(explore_here);
		stale_drop((virt_t)object, object ? PAGE_SIZE : UINT64_MAX);
	}
}

__attribute__((noinline)) void host_interrupts_on(void)
{
	explore_point(HOST_IRQ, &host_me->pending, CALLER);
}

__attribute__((noinline)) void host_cpu_yield(void)
{
	explore_now += NS_PER_POINT;
	if (alone)
		return;
	waiting |= 1ULL << explore_here;
	choose_relaxed(explore_here);
	explore_point(HOST_RELAX, NULL, CALLER);
}

__attribute__((noinline)) void host_cpu_sleep(void)
{
	struct explored *me = &cpus[explore_here];

	explore_point(HOST_HALT, NULL, CALLER); /* not halted yet */
	buffer_drain(explore_here);
	me->asleep = true;
	while (!host_me->pending) {
		waiting |= 1ULL << explore_here;
		explore_point(HOST_HALT, NULL, CALLER);
	}
	me->asleep = false;
	me->hold = 0;
}

void host_cpu_notify(struct host_cpu *target)
{
	(void)target; /* is_ready() looks at `pending` */
}

static void first_steps(void)
{
	cpus[explore_here].fn(explore_here);
}

void host_cpu_begin(cpu_t id, host_cpu_fn *fn)
{
	struct explored *cpu = &cpus[id];
	void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (stack == MAP_FAILED || mprotect(stack, PAGE_SIZE, PROT_NONE) < 0)
		host_die("no stack for CPU %u", id);
	cpu->sp = (virt_t *)((u8 *)stack + STACK_BYTES) - FIRST_WORDS;
	cpu->sp[FIRST_WORDS - 2] = (virt_t)first_steps; /* with the stack as a call leaves it */
	cpu->fn = fn;
	cpu->stack = (virt_t)stack;
	cpu->stack_end = cpu->stack + STACK_BYTES;
	cpu->percpu = cpu_data(id);
	cpu->runs = true;
}

/* This thread is CPU 0 already. */
void host_signals_init(void)
{
	cpus[0].stack_end = (virt_t)__builtin_frame_address(0) + PAGE_SIZE;
	cpus[0].stack = cpus[0].stack_end - FIRST_STACK_BYTES;
	cpus[0].runs = true;
}

void cpu_halt_forever(void)
{
	host_me->stopped = 1;
	cpus[explore_here].runs = false;
	if (alone)
		_exit(2);
	choose_and_run();
	__builtin_unreachable();
}

/* A panic: its CPU goes on alone, to print. */
void cpus_stop_others(void)
{
	if (alone)
		return;
	exploring = false;
	alone = true;
	found_once("panic");
	say_places();
}

size_t cpu_where(cpu_t cpu, virt_t *out, size_t max, u64 limit_ns)
{
	if (cpu == explore_here || cpu >= EXPLORE_CPUS_MAX || !cpus[cpu].runs)
		return 0;
	return walk(&cpus[cpu], out, max);
}

/* ---- time ---- */

void host_clock_start(void)
{
	explore_now = 1;
}

/* The runner, which simulates nothing, has the host's clock. */
u64 clock_ns(void)
{
	struct timespec ts;

	if (host_me)
		return explore_now += NS_PER_LOOK;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (u64)ts.tv_sec * NS_PER_S + (u64)ts.tv_nsec;
}

u64 clock_cpu_ns(void)
{
	return clock_ns();
}

/* ---- the case ---- */

/* The linker sends the calls of tests/kernel/test.c here (--wrap). */
void __wrap_test_before_case(const struct test_case *tc);
void __real_test_before_case(const struct test_case *tc);
bool __wrap_test_after_case(void);
bool __real_test_after_case(void);

/* Let the other CPUs finish starting, so that the case finds them halted. */
static void settle(void)
{
	for (cpu_t i = 0; i < EXPLORE_CPUS_MAX; i++)
		while (i != explore_here && cpus[i].runs && !cpus[i].asleep)
			host_cpu_yield();
}

static unsigned cases_open; /* more than one if a case runs a table of cases of its own */

void __wrap_test_before_case(const struct test_case *tc)
{
	static bool begun;

	__real_test_before_case(tc);
	cases_open++;
	if (begun)
		return;
	begun = true;
	settle();
	case_began = explore_now;
	moment = BEFORE_CHOICES;
}

/* A schedule ends here, unless it is replayed: looking for the next case would take long. */
bool __wrap_test_after_case(void)
{
	bool whole;

	if (--cases_open == 0 && !exploring && moment != SEARCHED)
		search(true);
	if (exploring) {
		choose_passed(true);
		exploring = false;
		stale_show(false);
		for (cpu_t i = 0; i < EXPLORE_CPUS_MAX; i++)
			buffer_drain(i);
	}
	whole = __real_test_after_case();
	if (cases_open == 0 && explore_request.strategy != REPLAY)
		_exit(whole && !test_failed() ? VERDICT_PASS : VERDICT_FAIL);
	return whole;
}
