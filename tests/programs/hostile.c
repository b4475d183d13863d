/*
 * Things that a program should not do, one by one. Each must leave the kernel as it was. What
 * needs no ring 3 is in tests/kernel/program_*_test.c.
 *
 *	gcc -static -O2 -pthread tests/programs/hostile.c -o hostile
 *	make run PROGRAM="./hostile hole"
 *
 * A case that returns has found what it expects, and the status is 0; `crash` ends by SIGSEGV.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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

/* Addresses in the middle that are the kernel's (<arch/user.h>). */
#define HOLE     0x558000000000UL
#define HOLE_END 0x568000000000UL

static sigjmp_buf after_fault;

static void on_segv(int signal)
{
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
	mincore(p, size, vector);
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

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{"hole", hole},
	{"crash", crash},
	{"status", status},
	{"full", full},
	{"sparse_move", sparse_move},
	{"long_look", long_look},
};

int main(int argc, char **argv)
{
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
