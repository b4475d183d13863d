/*
 * Program that runs in the Linux that is measured, for the table of quiet CPUs: the loop of
 * bench=quiet, on each CPU but the first, while the first resizes a pool of 2 MiB pages.
 *
 *   quiet CPUS PAGES    prints /proc/interrupts before the pool grows, after that and after it has
 *                       shrunk, and then figures of a record; or nothing and exits with 1
 *
 * The processes run for a second before they look, in which nohz_full= stops their ticks.
 */
#include <linux/signal.h>

#include "nolib.h"
#include "tests/bench/quiet_gaps.h"

enum { CPUS_MAX = 64, TEXT_MAX = 1 << 16, NS_PER_NAP = 10000000 };
enum { SHARED = MAP_SHARED | MAP_ANONYMOUS, READ_EXEC = PROT_READ | PROT_EXEC };

extern const u8 user_programs[], user_programs_end[], user_program_gaps[];

static char interrupts[3][TEXT_MAX];

static void read_interrupts(char *text)
{
	const u64 file = (u64)call(SYS_open, (u64) "/proc/interrupts", O_RDONLY, 0, 0, 0, 0);
	long at = 0, got;

	while ((got = call(SYS_read, file, (u64)text + at, TEXT_MAX - 1 - at, 0, 0, 0)) > 0)
		at += got;
	call(SYS_close, file, 0, 0, 0, 0, 0);
}

static bool run_on(u64 process, u64 cpu)
{
	const u64 mask = 1ULL << cpu;

	return call(SYS_sched_setaffinity, process, sizeof(mask), (u64)&mask, 0, 0, 0) >= 0;
}

static void watch_clock(struct program *program, u64 khz)
{
	const u64 begin = tsc() + khz * 1000;
	u64 ticks[GAP_CLASSES];

	for (unsigned class = 0; class < GAP_CLASSES; class ++)
		ticks[class] = gap_ns[class] * khz / NS_PER_MS;
	while (tsc() < begin)
		;
	__asm__ volatile("mov (%1), %%r8; mov 8(%1), %%r9; mov 16(%1), %%r10\n"
			 "mov 24(%1), %%r11; jmp *%0"
			 :
			 : "a"(user_program_gaps), "S"(ticks), "D"(program)
			 : "memory");
}

static int run(long argc, char **argv)
{
	const u64 cpus = argc == 3 ? number_of(argv[1]) : 0, nap[2] = {0, NS_PER_NAP};
	const u64 code = (u64)user_programs & ~4095ULL, khz = tsc_khz();
	struct program *p = (struct program *)map_memory(CPUS_MAX * sizeof(*p), SHARED);
	u64 done, ns;
	long children[CPUS_MAX];

	if (!p || cpus < 2 || cpus > CPUS_MAX || !run_on(0, 0) ||
	    call(SYS_mprotect, code, (u64)user_programs_end - code, READ_EXEC, 0, 0, 0) < 0)
		return 1;
	for (u64 i = 1; i < cpus; i++) {
		children[i] = call(SYS_fork, 0, 0, 0, 0, 0, 0);
		if (children[i] == 0)
			watch_clock(&p[i], khz);
		if (children[i] < 0 || !run_on((u64)children[i], i)) {
			for (; i > 0; i--)
				if (children[i] > 0)
					call(SYS_kill, (u64)children[i], SIGKILL, 0, 0, 0, 0);
			return 1;
		}
	}
	for (u64 i = 1; i < cpus; i++)
		while (!__atomic_load_n(&p[i].running, __ATOMIC_ACQUIRE))
			call(SYS_nanosleep, (u64)nap, 0, 0, 0, 0, 0);
	read_interrupts(interrupts[0]);
	ns = now_ns();
	done = set_pool(POOL_2M, number_of(argv[2]));
	read_interrupts(interrupts[1]);
	set_pool(POOL_2M, 0);
	ns = now_ns() - ns;
	read_interrupts(interrupts[2]);
	for (u64 i = 1; i < cpus; i++) { /* p[0] gets the sums */
		call(SYS_kill, (u64)children[i], SIGKILL, 0, 0, 0, 0);
		call(SYS_wait4, (u64)children[i], 0, 0, 0, 0, 0);
		p[0].longest = p[i].longest > p[0].longest ? p[i].longest : p[0].longest;
		for (unsigned class = 0; class < GAP_CLASSES; class ++)
			p[0].gaps[class] += p[i].gaps[class];
	}
	for (unsigned i = 0; i < 3; i++)
		print_word(interrupts[i]);
	print_word("done="), print_number(done, ' ');
	print_word("ns="), print_number(ns, ' ');
	print_word("longest_ns="), print_number(p[0].longest * NS_PER_MS / khz, ' ');
	print_word("gaps_1us="), print_number(p[0].gaps[0], ' ');
	print_word("gaps_10us="), print_number(p[0].gaps[1], ' ');
	print_word("gaps_100us="), print_number(p[0].gaps[2], ' ');
	print_word("gaps_1ms="), print_number(p[0].gaps[3], '\n');
	return 0;
}
