/*
 * Threads write to memory whose small pages become huge and small again. Needs 3 CPUs beside its
 * own. A kernel that collapses nothing passes, too; "huge" on stderr means that it did.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

enum { THREADS = 3, ROUNDS = 40, PAGES = 1024, STEP = 4096 };

static char *memory;
static int stop, wrong;

/* Each thread owns one word of every page, and is the only one that writes it. */
static unsigned long *word_of(long me, unsigned long page)
{
	return (unsigned long *)(memory + page * STEP + me * 512);
}

static void *count(void *arg)
{
	const long me = (long)arg;
	unsigned long n = 0;

	for (; !__atomic_load_n(&stop, __ATOMIC_ACQUIRE) || n % PAGES != 0; n++) {
		volatile unsigned long *word = word_of(me, n % PAGES);

		if (*word != n / PAGES)
			__atomic_store_n(&wrong, 1, __ATOMIC_RELAXED);
		*word = n / PAGES + 1;
	}
	return (void *)(n / PAGES);
}

static int check(long me, unsigned long rounds)
{
	for (unsigned long page = 0; page < PAGES; page++)
		if (*word_of(me, page) != rounds)
			return 1;
	return 0;
}

int main(void)
{
	pthread_t thread[THREADS];
	int collapsed = 0;
	void *rounds;

	memory = aligned_alloc(2 << 20, PAGES * STEP);
	if (!memory || madvise(memory, PAGES * STEP, MADV_NOHUGEPAGE) != 0)
		return 1;
	for (unsigned long i = 0; i < PAGES * STEP; i++)
		memory[i] = 0;
	for (long i = 0; i < THREADS; i++)
		if (pthread_create(&thread[i], NULL, count, (void *)i) != 0)
			return 2;
	for (int i = 0; i < ROUNDS && !wrong; i++) {
		madvise(memory, PAGES * STEP, MADV_HUGEPAGE);
		collapsed += madvise(memory, PAGES * STEP, MADV_COLLAPSE) == 0;
		/* other rights for one page split the huge one */
		mprotect(memory + (2 << 20), STEP, PROT_READ | PROT_WRITE | PROT_EXEC);
		mprotect(memory, STEP, PROT_READ | PROT_WRITE | PROT_EXEC);
		mprotect(memory, PAGES * STEP, PROT_READ | PROT_WRITE);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	for (long i = 0; i < THREADS; i++) {
		pthread_join(thread[i], &rounds);
		wrong |= check(i, (unsigned long)rounds);
	}
	puts(wrong ? "a write was lost" : "no write was lost");
	fflush(stdout);
	fputs(collapsed > 0 ? "huge\n" : "small\n", stderr);
	return wrong;
}
