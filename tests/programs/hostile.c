/*
 * Things that a program should not do, one by one. Each must leave the kernel as it was. What
 * needs no ring 3 is in tests/kernel/program_*_test.c.
 *
 *	gcc -static -O2 -pthread tests/programs/hostile.c -o hostile
 *	make run PROGRAM="./hostile full"
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

static sigjmp_buf after_fault;

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
	{"crash", crash},         {"status", status}, {"full", full}, {"sparse_move", sparse_move},
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
