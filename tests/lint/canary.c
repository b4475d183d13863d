/*
 * One mistake for each tool of `make lint`: it must be reported, or the tool looks at nothing and
 * its silence means nothing. Compiled by nothing else.
 */
#include <arch/atomic.h>

#include "kernel/core/lock.h"

struct thing {
	int value;
};

void *malloc(unsigned long size);

/* gcc -fanalyzer, clang-tidy: nobody has asked whether there is one. */
int unchecked(int wanted)
{
	struct thing *thing = 0;

	if (wanted > 3)
		thing = malloc(sizeof(*thing));
	return thing->value;
}

/* cppcheck: read before it is written. */
int unwritten(void)
{
	struct thing thing;

	return thing.value;
}

/* sparse: on one path the lock stays. */
int left_locked(struct spinlock *lock, int wanted)
{
	spin_lock(lock);
	if (wanted < 0)
		return wanted;
	spin_unlock(lock);
	return 0;
}

/* sparse: registers are no memory. */
u32 read_plainly(const volatile u32 __iomem *regs)
{
	return *regs;
}

const volatile u32 *take_for_memory(const volatile u32 __iomem *regs)
{
	return regs;
}

/* The bound on frames, and on what a chain of them takes. */
__attribute__((noinline)) int large(int at)
{
	volatile int room[4096];

	room[at] = at;
	return room[at / 2];
}

/* A frame as large as somebody says. */
int endless(int size)
{
	volatile int room[size];

	room[size / 2] = size;
	return room[size / 3];
}

/* style: a condition that assigns. */
int assigned(int *at)
{
	int sum = 0, next;

	while ((next = *at++) != 0)
		sum += next;
	return sum;
}

/* style: where one CPU runs at a time, the one that is waited for gets no turn. */
void starved(u32 *word)
{
	while (atomic_load_acquire(word) == 0)
		;
}

/* style: a line that is broken otherwise than .clang-format says, and one that is too long, as this one is. */
int unformatted( int a ) { return a; }
