/*
 * Things that a program should not do, one by one. Each must leave the kernel as it was.
 *
 *	gcc -static -O2 -pthread tests/programs/hostile.c -o hostile
 *	make run PROGRAM="./hostile hint"
 *
 * A case that returns has found what it expects, and the status is 0; `crash` ends by SIGSEGV.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096UL
#define MIB  (1UL << 20)
#define GIB  (1UL << 30)

#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			printf("line %d: %s, errno %d\n", __LINE__, #condition, errno);            \
			fflush(stdout);                                                            \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

enum { RW = PROT_READ | PROT_WRITE, ANON = MAP_PRIVATE | MAP_ANONYMOUS };

static char *map(void *at, size_t size, int prot, int flags)
{
	return mmap(at, size, prot, ANON | flags, -1, 0);
}

/* ---- addresses ---- */

/* A wish for a place from which the mapping would go round the end of all addresses. */
static void hint(void)
{
	for (unsigned shift = 12; shift < 47; shift++) {
		const size_t size = (1UL << shift) + PAGE;
		char *p = map((void *)-(1UL << shift), size, RW, MAP_NORESERVE);

		CHECK(p == MAP_FAILED || (uintptr_t)p + size < 1UL << 47);
	}
}

/* Addresses in the middle that are the kernel's (<arch/user.h>). */
#define HOLE     0x558000000000UL
#define HOLE_END 0x568000000000UL

static sigjmp_buf after_fault;

static void on_segv(int signal)
{
	(void)signal;
	siglongjmp(after_fault, 1);
}

enum access { READ, WRITE, CALL };

static int faults(uintptr_t at, enum access access)
{
	if (sigsetjmp(after_fault, 1))
		return 1;
	if (access == READ)
		(void)*(volatile char *)at;
	else if (access == WRITE)
		*(volatile char *)at = 1;
	else
		((void (*)(void))at)();
	return 0;
}

static void hole(void)
{
	const struct sigaction action = {.sa_handler = on_segv};
	const uintptr_t at[] = {HOLE, HOLE + GIB, HOLE_END - PAGE};
	const int fixed = MAP_FIXED | MAP_NORESERVE;
	char *around;

	sigaction(SIGSEGV, &action, NULL);
	for (unsigned i = 0; i < sizeof(at) / sizeof(at[0]); i++) {
		char *p = map((void *)at[i], PAGE, RW, 0);

		CHECK(p != MAP_FAILED && ((uintptr_t)p < HOLE || (uintptr_t)p >= HOLE_END));
		CHECK(map((void *)at[i], PAGE, RW, fixed) == MAP_FAILED && errno == ENOMEM);
		CHECK(mremap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)at[i]) ==
			      MAP_FAILED &&
		      errno == ENOMEM);
		CHECK(mprotect((void *)at[i], PAGE, RW) < 0 && errno == ENOMEM);
		for (enum access access = READ; access <= CALL; access++)
			CHECK(faults(at[i], access));
		CHECK(syscall(SYS_clock_gettime, CLOCK_REALTIME, at[i]) < 0 && errno == EFAULT);
	}
	CHECK(map((void *)(HOLE - PAGE), HOLE_END - HOLE + 2 * PAGE, RW, fixed) == MAP_FAILED);
	around = map((void *)(HOLE - PAGE), PAGE, RW, fixed);
	CHECK(around == (char *)HOLE - PAGE &&
	      map((void *)HOLE_END, PAGE, RW, fixed) != MAP_FAILED);
	*around = *(char *)HOLE_END = 1;
	CHECK(munmap(around, HOLE_END - HOLE + 2 * PAGE) == 0);
	CHECK(faults((uintptr_t)around, READ) && faults(HOLE_END, READ));
}

/* ---- huge pages ---- */

static void protect_part(void)
{
	char *p = map(NULL, 4 * MIB, RW, MAP_HUGETLB);

	CHECK(p != MAP_FAILED);
	memset(p, 1, 4 * MIB);
	CHECK(mprotect(p + PAGE, PAGE, PROT_READ) == -1 && errno == EINVAL);
	CHECK(mprotect(p, MIB, PROT_READ) == -1 && errno == EINVAL);
	p[MIB] = 2;
	CHECK(mprotect(p, 2 * MIB, PROT_READ) == 0);
	CHECK(munmap(p, 4 * MIB) == 0);
}

static void promises(void)
{
	for (int i = 0; i < 40; i++) {
		char *p = map(NULL, 4 * MIB, RW, MAP_HUGETLB | MAP_NORESERVE);

		CHECK(p != MAP_FAILED);
		p[0] = p[2 * MIB] = 1;
		CHECK(madvise(p, 4 * MIB, MADV_DONTNEED) == 0);
		CHECK(p[0] == 0);
		CHECK(munmap(p, 4 * MIB) == 0);
	}
	for (int i = 0; i < 40; i++) {
		char *p = map(NULL, 8 * MIB, RW, MAP_HUGETLB);

		CHECK(p != MAP_FAILED);
		CHECK(map(p + 4 * MIB, 4 * MIB, RW, MAP_HUGETLB | MAP_NORESERVE | MAP_FIXED) ==
		      p + 4 * MIB);
		p[4 * MIB] = p[6 * MIB] = 1;
		CHECK(munmap(p, 8 * MIB) == 0);
	}
	CHECK(map(NULL, 32 * MIB, RW, MAP_HUGETLB) != MAP_FAILED);
}

/* ---- ends ---- */

static void *crash_later(void *unused)
{
	usleep(100000);
	*(volatile int *)8 = 1;
	return unused;
}

static void crash(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, crash_later, NULL) == 0);
	pthread_exit(NULL);
}

static void *relay(void *left)
{
	pthread_t thread;

	pthread_detach(pthread_self());
	if (left == NULL)
		_exit(0);
	for (volatile int i = 0; i < 200000; i++)
		;
	while (pthread_create(&thread, NULL, relay, (char *)left - 1) != 0)
		sched_yield();
	return NULL;
}

static void last_ones(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, relay, (void *)200) == 0);
	pthread_exit(NULL);
}

static void *exit_3(void *unused)
{
	usleep(100000);
	exit(3);
	return unused;
}

static void status(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, exit_3, NULL) == 0);
	pthread_exit(NULL);
}

/* ---- no memory ---- */

static void on_bus(int signal)
{
	(void)signal;
	printf("memory is used up\n");
	fflush(stdout);
	_exit(0);
}

/* Use up all memory, down to single pages. */
static char *use_up(size_t size)
{
	char *p = map(NULL, size, RW, MAP_NORESERVE);

	CHECK(p != MAP_FAILED);
	madvise(p, size, MADV_POPULATE_WRITE);
	return p;
}

/* Areas that need nodes of the kernel's tree, when there are none to be had. */
static void areas_in_need(void)
{
	char *p;

	signal(SIGBUS, on_bus);
	printf("go\n");
	use_up(64 * GIB);
	for (int i = 0; i < 2000; i++) {
		p = map(NULL, PAGE, i % 2 ? PROT_READ : PROT_NONE, 0);
		if (p == MAP_FAILED)
			break;
	}
	_exit(0);
}

/* A part of a huge page cannot be unmapped without a frame; what is refused must stay. */
static void part_in_need(void)
{
	char *p = map(NULL, 8 * MIB, RW, 0), *q;

	signal(SIGBUS, on_bus);
	p = (char *)(((uintptr_t)p + 2 * MIB - 1) & -(2 * MIB));
	memset(p, 0x55, 4 * MIB);
	printf("go\n");
	use_up(64 * GIB);
	for (size_t at = PAGE; at < 4 * MIB; at += 2 * MIB) {
		if (munmap(p + at, PAGE) == 0)
			q = map(p + at, PAGE, RW, MAP_FIXED_NOREPLACE);
		else
			q = p + at;
		CHECK(q == p + at);
		if (map(p + at, PAGE, RW, MAP_FIXED_NOREPLACE) != MAP_FAILED)
			CHECK(p[at] == 0);
		CHECK(p[at] == 0x55 || p[at] == 0);
		if (mprotect(p + at + PAGE, PAGE, PROT_READ) == 0) {
			CHECK(mprotect(p + at + PAGE, PAGE, RW) == 0);
		}
		p[at + PAGE] = 1;
	}
	_exit(0);
}

/* Store at an address. Returns what a vector register, which had `value` before, has then. */
static size_t store(char *at, size_t value)
{
	size_t after;

	__asm__ volatile("movq %1, %%xmm15\n"
			 "movb $1, (%2)\n"
			 "movq %%xmm15, %0"
			 : "=&r"(after)
			 : "r"(value), "r"(at)
			 : "xmm15", "memory");
	return after;
}

static char *spare;

/* Give memory back, and have the store made again. Without any left, jump out. */
static void give_back(int signal)
{
	char *last = spare;

	(void)signal;
	__asm__ volatile("pcmpeqd %%xmm15, %%xmm15" ::: "xmm15");
	spare = NULL;
	if (!last || munmap(last, 4 * MIB) != 0)
		siglongjmp(after_fault, 1);
}

/* Handlers of SIGBUS run when no page is left, and the program goes on. */
static void full(void)
{
	const stack_t stack = {.ss_sp = map(NULL, MIB, RW, MAP_POPULATE), .ss_size = MIB};
	const struct sigaction action = {.sa_handler = give_back, .sa_flags = SA_ONSTACK};
	char *p = map(NULL, 64 * GIB, RW, MAP_NORESERVE);

	spare = map(NULL, 4 * MIB, RW, MAP_POPULATE);
	CHECK(p != MAP_FAILED && spare != MAP_FAILED && sigaltstack(&stack, NULL) == 0);
	sigaction(SIGBUS, &action, NULL);
	if (!sigsetjmp(after_fault, 1))
		for (size_t at = 0; at < 64 * GIB; at += PAGE)
			CHECK(store(p + at, at) == at);
	CHECK(!spare);
	CHECK(munmap(p, 64 * GIB) == 0);
	memset(map(NULL, 8 * MIB, RW, 0), 1, 8 * MIB);
}

/* ---- reservations ---- */

static void sparse_move(void)
{
	const size_t size = 8192 * GIB;
	char *p = map(NULL, size, RW, MAP_NORESERVE), *q, *to;

	CHECK(p != MAP_FAILED);
	p[size / 2] = 1;
	to = map(NULL, size, PROT_NONE, MAP_NORESERVE);
	CHECK(to != MAP_FAILED);
	q = mremap(p, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	CHECK(q == to && q[size / 2] == 1);
}

static void *look(void *vector)
{
	const size_t size = 1024 * GIB;
	char *p = map(NULL, size, RW, MAP_NORESERVE);

	CHECK(p != MAP_FAILED);
	mincore(p, vector ? size : PAGE, vector);
	munmap(p, size);
	return NULL;
}

/* The end does not wait for a call that looks at a terabyte. */
static void long_look(void)
{
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, look, map(NULL, 256 * MIB, RW, 0)) == 0);
	usleep(300000);
	_exit(0);
}

/* ---- races ---- */

static char *shared;
static atomic_int turn;

static struct timespec deadline;

static int time_is_left(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < deadline.tv_sec;
}

static void *swap(void *argument)
{
	char *from = argument ? shared : shared + 64 * MIB,
	     *to = argument ? shared + 64 * MIB : shared;

	while (time_is_left())
		mremap(from, 16 * PAGE, 16 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to);
	return NULL;
}

static void *cover(void *unused)
{
	while (time_is_left()) {
		map(shared, 65 * MIB, RW, MAP_FIXED);
		madvise(shared, PAGE, MADV_POPULATE_WRITE);
		madvise(shared + 64 * MIB, PAGE, MADV_POPULATE_WRITE);
		sched_yield();
	}
	return unused;
}

static void moves(void)
{
	pthread_t thread[3];

	shared = map(NULL, 128 * MIB, RW, 0);
	pthread_create(&thread[0], NULL, swap, "");
	pthread_create(&thread[1], NULL, swap, NULL);
	pthread_create(&thread[2], NULL, cover, NULL);
	cover(NULL);
	_exit(0);
}

/* Two threads cut one huge page at its two ends at the same time. */
static void *cutter(void *argument)
{
	const size_t at = argument ? 0 : 2 * MIB - PAGE;

	for (int last = 0; time_is_left();) {
		const int now = atomic_load(&turn) & 0xffff;

		if (now == last)
			continue;
		last = now;
		mprotect(shared + at, PAGE, PROT_READ);
		munmap(shared + at, PAGE);
		atomic_fetch_add(&turn, 1 << 16);
	}
	return NULL;
}

static void cuts(void)
{
	pthread_t thread[2];

	shared = map(NULL, 8 * MIB, RW, 0);
	shared = (char *)(((uintptr_t)shared + 2 * MIB - 1) & -(2 * MIB));
	pthread_create(&thread[0], NULL, cutter, "");
	pthread_create(&thread[1], NULL, cutter, NULL);
	for (int i = 1; time_is_left(); i++) {
		CHECK(map(shared, 2 * MIB, RW, MAP_FIXED) == shared);
		memset(shared, 0x77, 2 * MIB);
		atomic_store(&turn, i & 0x7fff);
		while (atomic_load(&turn) >> 16 != 2 && time_is_left())
			;
		if (!time_is_left())
			break;
		CHECK(map(shared, PAGE, RW, MAP_FIXED_NOREPLACE) == shared);
		CHECK(shared[0] == 0);
		CHECK(map(shared + 2 * MIB - PAGE, PAGE, RW, MAP_FIXED_NOREPLACE) != MAP_FAILED);
		CHECK(shared[2 * MIB - PAGE] == 0);
		CHECK(shared[PAGE] == 0x77 && shared[2 * MIB - PAGE - 1] == 0x77);
	}
	_exit(0);
}

/* For handlers, too. */
static unsigned any(void)
{
	static _Thread_local unsigned number;

	number = number * 1103515245 + 12345 + (unsigned)(uintptr_t)&number;
	return number >> 16;
}

/* Signals from everybody to everybody, handlers inside of handlers, and an end in between. */
static void nest(int signal)
{
	static _Thread_local int depth;

	if (depth < 3) {
		depth++;
		syscall(SYS_tgkill, getpid(), 1000 + any() % 16,
			signal == SIGUSR1 ? SIGUSR2 : SIGUSR1);
		depth--;
	}
}

static void *signals_thread(void *unused)
{
	const stack_t stack = {.ss_sp = map(NULL, MIB, RW, 0), .ss_size = MIB};
	const struct timespec soon = {.tv_nsec = 300000};
	const union sigval value = {.sival_int = 7};
	sigset_t set;

	sigaltstack(&stack, NULL);
	while (time_is_left()) {
		syscall(SYS_tgkill, getpid(), 1000 + any() % 16, any() % 2 ? SIGUSR1 : SIGUSR2);
		sigqueue(getpid(), SIGRTMIN + 3, value);
		nanosleep(&soon, NULL);
		syscall(SYS_futex, &turn, 0, atomic_load(&turn), &soon, NULL, 0);
		syscall(SYS_futex, &turn, 4, 1, 1, &deadline, atomic_load(&turn));
		sigemptyset(&set);
		sigaddset(&set, SIGRTMIN + 3);
		pthread_sigmask(any() % 2 ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
		sigtimedwait(&set, NULL, &soon);
	}
	return unused;
}

static void signals(void)
{
	const struct itimerval often = {{0, 500}, {0, 500}};
	struct sigaction action = {.sa_flags = SA_ONSTACK | SA_RESTART};
	pthread_t thread;

	action.sa_handler = nest;
	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	sigaction(SIGALRM, &action, NULL);
	sigaction(SIGRTMIN + 3, &action, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
	for (int i = 0; i < 7; i++)
		pthread_create(&thread, NULL, signals_thread, NULL);
	while (time_is_left()) {
		if (pthread_create(&thread, NULL, look, NULL) == 0)
			pthread_join(thread, NULL);
		nest(SIGUSR1);
	}
	_exit(0);
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"hint", hint},
	{"hole", hole},
	{"protect_part", protect_part},
	{"promises", promises},
	{"crash", crash},
	{"last_ones", last_ones},
	{"status", status},
	{"areas_in_need", areas_in_need},
	{"part_in_need", part_in_need},
	{"full", full},
	{"sparse_move", sparse_move},
	{"long_look", long_look},
	{"moves", moves},
	{"cuts", cuts},
	{"signals", signals},
};

int main(int argc, char **argv)
{
	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += argc > 2 ? atoi(argv[2]) : 5;
	for (size_t i = 0; argc > 1 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		if (strcmp(argv[1], cases[i].name) == 0) {
			cases[i].run();
			printf("%s: done\n", argv[1]);
			return 0;
		}
	}
	printf("which case?\n");
	return 2;
}
