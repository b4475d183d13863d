/*
 * Random calls with random arguments from several threads, and a model of some of the memory.
 *
 *	gcc -static -O2 -pthread tests/programs/fuzz.c -o fuzz
 *	make run PROGRAM="./fuzz SEED SECONDS THREADS"
 *
 * Every thread owns a range of addresses. There it maps, unmaps, protects, moves and forgets pages,
 * and knows of each page what it contains and what it allows. Now and then it looks, with a handler
 * for SIGSEGV that notes what was refused. Between these steps it makes other calls with arguments
 * that make little sense: numbers, sizes, addresses of the kernel, of nothing, and of itself. Some
 * of those hit a common range, which all threads change without any order.
 *
 * Status 0: the time is over, and the model was right. 1: a difference, which is printed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

enum { THREADS_MAX = 64, PAGES = 2048, COMMON_PAGES = 4096 };
#define PAGE      4096UL
#define BASE      0x100000000000UL
#define RANGE_GAP (1UL << 30)
#define COMMON    0x200000000000UL
#define SCRATCHES 0x300000000000UL
#define SCRATCH   32768

struct page {
	uint8_t mapped, rights;
	uint8_t value; /* first and last byte; 0: never written */
};

struct worker {
	pthread_t thread;
	uint64_t random, steps;
	char *base;
	struct page page[PAGES];
	sigjmp_buf back;
	volatile int looking;
	volatile int refused;
	char *scratch; /* with nothing near it */
};

static struct worker *workers;
static __thread struct worker *me;
static struct timespec deadline;
static uint32_t *words;

static void die(const char *form, ...)
{
	char text[256];
	va_list list;

	va_start(list, form);
	vsnprintf(text, sizeof(text), form, list);
	va_end(list);
	if (write(1, text, strlen(text)) < 0)
		_exit(2);
	_exit(1);
}

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

static void on_fault(int signal, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	if (!me || !me->looking)
		die("signal %d at %p outside of a look\n", signal, info->si_addr);
	me->refused = signal;
	me->looking = 0;
	siglongjmp(me->back, 1);
}

static void on_signal(int signal)
{
	(void)signal;
}

/* 0: done; else the signal. */
static int touch(char *at, int write, uint8_t *value)
{
	me->refused = 0;
	if (sigsetjmp(me->back, 0) == 0) {
		me->looking = 1;
		if (write)
			*(volatile uint8_t *)at = *value;
		else
			*value = *(volatile uint8_t *)at;
		me->looking = 0;
		return 0;
	}
	return me->refused;
}

/* ---- the model ---- */

static void look(unsigned page)
{
	const struct page *p = &me->page[page];
	const size_t end = below(2) ? 0 : PAGE - 1;
	char *at = me->base + page * PAGE + end;
	uint8_t value = 0;
	const int read = touch(at, 0, &value), readable = p->mapped && p->rights;

	if (read == SIGBUS)
		return; /* no memory */
	if ((read == 0) != readable)
		die("%p: read %d, mapped %u, rights %u\n", at, read, p->mapped, p->rights);
	if (!read && value != p->value)
		die("%p: %02x is there, and %02x should be\n", at, value, p->value);
}

static void fill(unsigned page)
{
	struct page *p = &me->page[page];
	char *at = me->base + page * PAGE;
	uint8_t value = (uint8_t)random64();
	const int writable = p->mapped && (p->rights & PROT_WRITE);
	const int err = touch(at, 1, &value);

	if (err == SIGBUS)
		return;
	if ((err == 0) != writable)
		die("%p: write %d, mapped %u, rights %u\n", at, err, p->mapped, p->rights);
	if (!err) {
		at[PAGE - 1] = (char)value;
		p->value = value;
	}
}

static void set(unsigned first, unsigned count, int mapped, int rights)
{
	for (unsigned i = first; i < first + count; i++)
		me->page[i] = (struct page){(uint8_t)mapped, (uint8_t)rights, 0};
}

static int all_mapped(unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++)
		if (!me->page[i].mapped)
			return 0;
	return 1;
}

static int any_mapped(unsigned first, unsigned count)
{
	for (unsigned i = first; i < first + count; i++)
		if (me->page[i].mapped)
			return 1;
	return 0;
}

static int no_memory(long result)
{
	return result == -1 && errno == ENOMEM;
}

/* Calls that run out of memory may have done a part; the pages are then unknown, so start anew. */
static void anew(unsigned first, unsigned count)
{
	for (int i = 0; i < 100; i++) {
		if (munmap(me->base + first * PAGE, count * PAGE) == 0) {
			set(first, count, 0, 0);
			return;
		}
	}
	die("munmap() at %p fails for ever, errno %d\n", me->base + first * PAGE, errno);
}

static void pick(unsigned *first, unsigned *count)
{
	static const unsigned sizes[] = {1, 2, 7, 64, 511, 512, 513, 1024};

	*count = sizes[below(8)];
	*first = below(3) ? below(PAGES - *count + 1) : below((PAGES - *count) / 512 + 1) * 512;
}

static void step_map(unsigned first, unsigned count)
{
	static const int rights[] = {PROT_NONE,
				     PROT_READ,
				     PROT_READ | PROT_WRITE,
				     PROT_READ | PROT_WRITE,
				     PROT_READ | PROT_WRITE,
				     PROT_READ | PROT_WRITE | PROT_EXEC};
	const int prot = rights[below(6)], only_free = below(4) == 0;
	char *at = me->base + first * PAGE;
	const int was = any_mapped(first, count);
	void *p = mmap(at, count * PAGE, prot,
		       MAP_PRIVATE | MAP_ANONYMOUS | (only_free ? MAP_FIXED_NOREPLACE : MAP_FIXED) |
			       (below(4) ? 0 : MAP_POPULATE) | (below(4) ? 0 : MAP_NORESERVE),
		       -1, 0);

	if (p == at) {
		if (only_free && was)
			die("%p: mapped over something\n", at);
		set(first, count, 1, prot);
	} else if (errno == ENOMEM) {
		anew(first, count);
	} else if (!(only_free && was && errno == EEXIST)) {
		die("%p: mmap gives %p, errno %d\n", at, p, errno);
	}
}

static void step_unmap(unsigned first, unsigned count)
{
	if (munmap(me->base + first * PAGE, count * PAGE) == 0)
		set(first, count, 0, 0);
	else if (errno != ENOMEM)
		die("munmap: errno %d\n", errno);
	else
		anew(first, count);
}

static void step_protect(unsigned first, unsigned count)
{
	static const int rights[] = {PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
				     PROT_READ | PROT_EXEC};
	const int prot = rights[below(4)];
	const int err = mprotect(me->base + first * PAGE, count * PAGE, prot);

	if (err == 0) {
		if (!all_mapped(first, count))
			die("mprotect over a hole\n");
		for (unsigned i = first; i < first + count; i++)
			me->page[i].rights = (uint8_t)prot;
	} else if (!no_memory(err)) {
		die("mprotect: errno %d\n", errno);
	} else if (all_mapped(first, count)) {
		anew(first, count);
	}
}

static void step_forget(unsigned first, unsigned count)
{
	static const int advice[] = {MADV_DONTNEED, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_FREE,
				     MADV_DONTNEED};
	const int which = advice[below(5)], zero = which == MADV_DONTNEED;
	const int whole = all_mapped(first, count);
	const int err = madvise(me->base + first * PAGE, count * PAGE, which);

	if (err != 0 && errno != ENOMEM)
		die("madvise %d: errno %d\n", which, errno);
	if (err == 0 && !whole)
		die("madvise over a hole\n");
	if (which == MADV_FREE) {
		if (munmap(me->base + first * PAGE, count * PAGE) != 0)
			anew(first, count);
		set(first, count, 0, 0);
	} else if (zero && err != 0 && whole) {
		anew(first, count);
	} else if (zero) {
		for (unsigned i = first; i < first + count; i++)
			me->page[i].value = 0;
	}
}

static void step_move(unsigned first, unsigned count)
{
	const unsigned to = below(PAGES - count + 1),
		       new_count = below(3) ? count : 1 + below(count);
	void *p;

	if (to < first + count && first < to + new_count)
		return;
	for (unsigned i = first; i < first + count; i++)
		if (!me->page[i].mapped || me->page[i].rights != me->page[first].rights)
			return;
	p = mremap(me->base + first * PAGE, count * PAGE, new_count * PAGE,
		   MREMAP_MAYMOVE | MREMAP_FIXED, me->base + to * PAGE);
	if (p == me->base + to * PAGE) {
		memcpy(&me->page[to], &me->page[first], new_count * sizeof(struct page));
		set(first, count, 0, 0);
	} else if (errno == ENOMEM || errno == EFAULT) { /* EFAULT: more than one area */
		anew(to, new_count);
	} else {
		die("mremap: errno %d\n", errno);
	}
}

static void step_model(void)
{
	unsigned first, count;

	pick(&first, &count);
	switch (below(12)) {
	case 0:
	case 1:
		step_map(first, count);
		break;
	case 2:
		step_unmap(first, count);
		break;
	case 3:
		step_protect(first, count);
		break;
	case 4:
		step_forget(first, count);
		break;
	case 5:
		step_move(first, count);
		break;
	case 6:
	case 7:
	case 8:
		for (unsigned i = 0; i < 16; i++)
			fill(below(PAGES));
		break;
	default:
		for (unsigned i = 0; i < 32; i++)
			look(below(PAGES));
		break;
	}
}

/* ---- nonsense ---- */

static uint64_t argument(void)
{
	static const uint64_t odd[] = {0,
				       1,
				       -1ULL,
				       4095,
				       PAGE,
				       1ULL << 31,
				       1ULL << 47,
				       (1ULL << 47) - PAGE,
				       0x7ffffffff000,
				       0xffff800000000000,
				       0xffffffff80200000,
				       0xfffffffffffff000,
				       0x8000000000000000,
				       0x7fffffffffffffff,
				       0xffffffff,
				       0xdeadbeef00000000};

	switch (below(8)) {
	case 0:
		return odd[below(16)];
	case 1:
		return random64() >> below(64);
	case 2:
		return COMMON + below(COMMON_PAGES) * PAGE;
	case 3:
		return COMMON + below(COMMON_PAGES * PAGE);
	case 4:
		return (uint64_t)me->scratch + below(SCRATCH);
	case 5:
		return PAGE * below(1024);
	case 6:
		return (uint64_t)&words[below(16)];
	default:
		return below(64);
	}
}

/*
 * Calls that would end the run, change the model's memory, or wait for ever are left out, or are
 * made with care below.
 */
static int is_left_out(long number)
{
	switch (number) {
	case SYS_exit:
	case SYS_exit_group:
	case SYS_clone:
	case 435: /* clone3 */
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_brk:
	case SYS_kill:
	case SYS_tkill:
	case SYS_tgkill:
	case SYS_rt_sigqueueinfo:
	case SYS_rt_tgsigqueueinfo:
	case SYS_rt_sigaction:
	case SYS_rt_sigprocmask:
	case SYS_rt_sigreturn:
	case SYS_rt_sigsuspend:
	case SYS_rt_sigtimedwait:
	case SYS_sigaltstack:
	case SYS_pause:
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
	case SYS_futex:
	case SYS_poll:
	case SYS_ppoll:
	case SYS_select:
	case SYS_pselect6:
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_read:
	case SYS_readv:
	case SYS_write:
	case SYS_writev:
	case SYS_pread64:
	case SYS_preadv:
	case SYS_recvfrom:
	case SYS_splice:
	case SYS_sendfile:
	case SYS_copy_file_range:
	case SYS_arch_prctl:
	case SYS_set_tid_address:
	case SYS_set_robust_list:
	case SYS_alarm:
	case SYS_setitimer:
	case SYS_close:
	case SYS_close_range:
	case SYS_dup2:
	case SYS_dup3:
	case SYS_rt_sigpending:
		return 1;
	default:
		return 0;
	}
}

static long raw(long number, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f)
{
	return syscall(number, a, b, c, d, e, f);
}

static void step_nonsense(void)
{
	const long number = below(16) ? (long)below(460) : (long)random64();

	if (is_left_out(number))
		return;
	/* results go to the stack of nonsense or to the common range, by chance also to nothing */
	raw(number, argument(), argument(), argument(), argument(), argument(), argument());
}

static uint64_t common(void)
{
	return COMMON + below(COMMON_PAGES) * PAGE;
}

/* All threads change the common range, and nobody knows what is there. */
static void step_common(void)
{
	const uint64_t at = common(), size = (1 + below(below(8) ? 8 : 1024)) * PAGE;
	uint8_t value = 1;

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
			touch((char *)common() + below(PAGE), (int)below(2), &value);
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
		p = mmap((void *)argument(), size, PROT_READ | PROT_WRITE,
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

		if (which < 7)
			step_model();
		else if (which < 10)
			step_nonsense();
		else if (which < 15)
			step_common();
		else
			step_other();
		me->steps++;
	}
	return NULL;
}

static void handle(int signal, void *handler)
{
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};

	action.sa_sigaction = handler;
	sigaction(signal, &action, NULL);
}

static void *scratch(int number)
{
	return mmap((char *)SCRATCHES + (uint64_t)number * RANGE_GAP, SCRATCH,
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
		workers[i].base = (char *)BASE + (uint64_t)i * RANGE_GAP;
		workers[i].scratch = scratch(i);
		if (i > 0 && pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
			workers[i].base = NULL;
	}
	work(&workers[0]);
	if (seed % 3 == 0)
		_exit(0); /* while the others are in their calls */
	for (int i = 1; i < threads && i < THREADS_MAX; i++)
		if (workers[i].base)
			pthread_join(workers[i].thread, NULL);
	for (int i = 0; i < threads && i < THREADS_MAX; i++)
		steps += workers[i].steps;
	printf("fuzz: seed %lu, %lu steps\n", seed, steps);
	return 0;
}
