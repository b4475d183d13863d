/*
 * Threads change a common range of memory without any order: they map, unmap, protect, move, forget
 * and touch its pages, wait there for a futex, begin and end, and send each other signals.
 *
 *	gcc -static -O2 -pthread tests/programs/fuzz.c -o fuzz
 *	make run PROGRAM="./fuzz SEED SECONDS THREADS"
 *
 * Nobody knows what is there, so only the kernel can be wrong: it must survive, and account for
 * every frame at the end. All calls with random arguments, and a model of what memory should
 * contain, are in the hosted case program.fuzz (tests/host/fuzz_calls.h).
 *
 * Status 0: the time is over.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { THREADS_MAX = 64, COMMON_PAGES = 4096 };
#define PAGE        4096UL
#define COMMON      0x200000000000UL
#define SCRATCHES   0x300000000000UL
#define SCRATCH     32768
#define SCRATCH_GAP (1UL << 30)

struct worker {
	pthread_t thread;
	uint64_t random, steps;
	int runs;
	sigjmp_buf back;
	volatile int touching;
	char *scratch;
};

static struct worker *workers;
static __thread struct worker *me;
static struct timespec deadline;
static uint32_t *words;

static uint64_t random64(void)
{
	uint64_t x = me->random;

	x ^= x << 13;
	x ^= x >> 7;
	x ^= x << 17;
	return me->random = x;
}

static unsigned below(unsigned n)
{
	return (unsigned)(random64() >> 33) % n;
}

static int time_is_left(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec < deadline.tv_sec;
}

/* A touch may be refused. Any other fault is a mistake, and ends the program with a status. */
static void on_fault(int signal)
{
	if (!me || !me->touching)
		_exit(signal);
	siglongjmp(me->back, 1);
}

static void on_signal(int signal)
{
	(void)signal;
}

static void touch(volatile char *at, int write)
{
	if (sigsetjmp(me->back, 0) == 0) {
		me->touching = 1;
		if (write)
			*at = 1;
		else
			(void)*at;
	}
	me->touching = 0;
}

static long raw(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return syscall(number, a, b, c, d, e, f);
}

static uint64_t common(void)
{
	return COMMON + below(COMMON_PAGES) * PAGE;
}

static void step_common(void)
{
	const uint64_t at = common(), size = (1 + below(below(8) ? 8 : 1024)) * PAGE;

	switch (below(12)) {
	case 0:
		raw(SYS_mmap, at, size, below(8), MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
		break;
	case 1:
		raw(SYS_munmap, at, size, 0, 0, 0, 0);
		break;
	case 2:
		raw(SYS_mprotect, at, size, below(8), 0, 0, 0);
		break;
	case 3:
		raw(SYS_madvise, at, size, below(26), 0, 0, 0);
		break;
	case 4:
		raw(SYS_mremap, at, size, (1 + below(600)) * PAGE, below(4), common(), 0);
		break;
	case 5:
		raw(SYS_mmap, COMMON + below(8) * (2UL << 20), (2UL << 20) << below(2), below(8),
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | (below(2) ? MAP_FIXED : 0) |
			    (below(2) ? MAP_NORESERVE : 0),
		    -1, 0);
		break;
	case 6:
		raw(SYS_mincore, at, size, (uint64_t)me->scratch, 0, 0, 0);
		break;
	case 7: {
		const uint64_t where = (below(2) ? common() : (uint64_t)words) + 4 * below(8);
		const struct timespec soon = {.tv_nsec = below(200000)};

		raw(SYS_futex, where, below(14) | (below(2) ? 128 : 0), below(4),
		    (uint64_t)(below(2) ? (uint64_t)&soon : 1 + below(5)), common(), below(3));
		/* a wait without end is not chosen: `soon`, or a bad address */
		break;
	}
	default:
		for (unsigned i = 0; i < 8; i++)
			touch((char *)common() + below(PAGE), (int)below(2));
		break;
	}
}

static void *nothing(void *unused)
{
	return unused;
}

/* Areas, files and maps together; threads that come and go; signals for everybody. */
static void step_other(void)
{
	pthread_t thread;
	size_t size;
	char *p;

	switch (below(6)) {
	case 0:
		if (pthread_create(&thread, NULL, nothing, NULL) == 0)
			pthread_join(thread, NULL);
		break;
	case 1:
		raw(SYS_tgkill, (uint64_t)getpid(), 1000 + below(64), below(2) ? SIGUSR1 : 34, 0, 0,
		    0);
		break;
	case 2: {
		static const char *const names[] = {"/proc/self/maps", "/proc/self/smaps",
						    "/proc/self/status"};
		char buf[512];
		const int fd = (int)raw(SYS_open, (uint64_t)names[below(3)], 0, 0, 0, 0, 0);

		if (fd > 2) {
			raw(SYS_read, (uint64_t)fd, (uint64_t)buf, sizeof(buf), 0, 0, 0);
			raw(SYS_close, (uint64_t)fd, 0, 0, 0, 0, 0);
		}
		break;
	}
	case 3:
		size = 1 + below(1 << 22);
		p = mmap((void *)common(), size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (p != MAP_FAILED)
			munmap(p, size - below(2) * size / 2);
		break;
	case 4:
		p = malloc(1 + below(1 << 20));
		if (p)
			p[0] = 1;
		free(p);
		break;
	default:
		raw(SYS_membarrier, 8, 0, 0, 0, 0, 0);
		break;
	}
}

static void *work(void *argument)
{
	const stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};

	me = argument;
	sigaltstack(&stack, NULL);
	while (time_is_left()) {
		const unsigned which = below(16);

		if (which < 14)
			step_common();
		else
			step_other();
		me->steps++;
	}
	return NULL;
}

static void handle(int signal, void (*handler)(int))
{
	const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_NODEFER};

	sigaction(signal, &action, NULL);
}

static void *scratch(int number)
{
	return mmap((char *)SCRATCHES + (uint64_t)number * SCRATCH_GAP, SCRATCH,
		    PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

int main(int argc, char **argv)
{
	const uint64_t seed = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
	const int seconds = argc > 2 ? atoi(argv[2]) : 5, threads = argc > 3 ? atoi(argv[3]) : 4;
	uint64_t steps = 0;

	clock_gettime(CLOCK_MONOTONIC, &deadline);
	deadline.tv_sec += seconds;
	handle(SIGSEGV, on_fault);
	handle(SIGBUS, on_fault);
	handle(SIGUSR1, on_signal);
	handle(34 + 1, on_signal);
	signal(34, on_signal);
	words = scratch(THREADS_MAX);
	workers = calloc(THREADS_MAX, sizeof(*workers));
	for (int i = 0; i < threads && i < THREADS_MAX; i++) {
		workers[i].random = seed * 0x9e3779b97f4a7c15UL + (uint64_t)i * 77777 + 1;
		workers[i].scratch = scratch(i);
		if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			continue;
		workers[i].runs = 1;
	}
	work(&workers[0]);
	if (seed % 3 == 0)
		_exit(0); /* while the others are in their calls */
	for (int i = 1; i < threads && i < THREADS_MAX; i++)
		if (workers[i].runs)
			pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < threads && i < THREADS_MAX; i++)
		steps += workers[i].steps;
	printf("fuzz: seed %lu, %lu steps\n", seed, steps);
	return 0;
}
