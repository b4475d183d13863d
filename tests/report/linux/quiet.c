/*
 * Program that runs in the Linux that is measured, for the table of quiet CPUs: the loop of
 * bench=quiet, on each CPU but the first, while the first resizes a pool of 2 MiB pages.
 *
 *   quiet CPUS PAGES    prints the figures of a record, or nothing and exits with 1
 *
 *	grow_, shrink_    interrupts that those CPUs took, by rows of /proc/interrupts: res and
 *	                  cal from other CPUs, loc from their own timer, iwi from themselves. tlb
 *	                  are calls for flushes of programs' memory, which cal has, too.
 *
 * The processes run for a second before they look, in which nohz_full= stops their ticks.
 */
#include <linux/signal.h>

#include "nolib.h"
#include "tests/bench/quiet_gaps.h"

enum { CPUS_MAX = 64, TEXT_MAX = 1 << 16, ROWS = 5 };
enum { SHARED = MAP_SHARED | MAP_ANONYMOUS, READ_EXEC = PROT_READ | PROT_EXEC };

extern const u8 user_programs[], user_programs_end[], user_program_gaps[];

static const char labels[ROWS][5] = {"RES:", "CAL:", "LOC:", "IWI:", "TLB:"};
static const char keys[ROWS][5] = {"res=", "cal=", "loc=", "iwi=", "tlb="};
static const char gap_keys[GAP_CLASSES][12] = {
	"gaps_1us=", "gaps_10us=", "gaps_100us=", "gaps_1ms="};

/* The numbers behind a label but the first, added up; 0 without the label. */
static u64 sum_row(const char *at, const char *label)
{
	u64 sum = 0, column = 0;

	while (*at && __builtin_memcmp(at, label, 4) != 0)
		at++;
	for (at += *at ? 4 : 0; *at == ' ' || (*at >= '0' && *at <= '9'); at++)
		if (*at != ' ' && at[-1] == ' ' && column++ > 0)
			sum += number_of(at);
	return sum;
}

static void read_rows(u64 *rows)
{
	static char text[TEXT_MAX];
	const u64 file = (u64)call(SYS_open, (u64) "/proc/interrupts", O_RDONLY, 0, 0, 0, 0);
	long at = 0, got;

	while ((got = call(SYS_read, file, (u64)text + at, TEXT_MAX - 1 - at, 0, 0, 0)) > 0)
		at += got;
	text[at] = '\0';
	call(SYS_close, file, 0, 0, 0, 0, 0);
	for (unsigned i = 0; i < ROWS; i++)
		rows[i] = sum_row(text, labels[i]);
}

static bool run_on(u64 cpu)
{
	const u64 mask = 1ULL << cpu;

	return call(SYS_sched_setaffinity, 0, sizeof(mask), (u64)&mask, 0, 0, 0) >= 0;
}

/* The process of a CPU. Returns only if it cannot run there. */
static int watch_clock(u64 cpu, struct program *program, u64 khz)
{
	const u64 begin = tsc() + khz * 1000;
	u64 ticks[GAP_CLASSES];

	for (unsigned class = 0; class < GAP_CLASSES; class ++)
		ticks[class] = gap_ns[class] * khz / NS_PER_MS;
	if (!run_on(cpu))
		return 1;
	while (tsc() < begin)
		;
	__asm__ volatile("mov (%1), %%r8; mov 8(%1), %%r9; mov 16(%1), %%r10\n"
			 "mov 24(%1), %%r11; jmp *%0"
			 :
			 : "a"(user_program_gaps), "S"(ticks), "D"(program)
			 : "memory");
	__builtin_unreachable();
}

static int run(long argc, char **argv)
{
	const u64 cpus = argc == 3 ? number_of(argv[1]) : 0,
		  pages = argc == 3 ? number_of(argv[2]) : 0;
	const u64 code = (u64)user_programs & ~4095ULL, khz = tsc_khz(), wait[2] = {2, 0};
	struct program *p = (struct program *)map_memory(CPUS_MAX * sizeof(*p), SHARED);
	u64 rows[3][ROWS], done, ns, running = 0;
	long children[CPUS_MAX];

	if (!p || cpus < 2 || cpus > CPUS_MAX || !run_on(0) ||
	    call(SYS_mprotect, code, (u64)user_programs_end - code, READ_EXEC, 0, 0, 0) < 0)
		return 1;
	for (u64 i = 1; i < cpus; i++)
		if ((children[i] = call(SYS_fork, 0, 0, 0, 0, 0, 0)) == 0)
			return watch_clock(i, &p[i], khz);
	call(SYS_nanosleep, (u64)wait, 0, 0, 0, 0, 0);
	for (u64 i = 1; i < cpus; i++)
		running += __atomic_load_n(&p[i].running, __ATOMIC_ACQUIRE);
	read_rows(rows[0]);
	ns = now_ns();
	done = set_pool(POOL_2M, pages);
	read_rows(rows[1]);
	set_pool(POOL_2M, 0);
	ns = now_ns() - ns;
	read_rows(rows[2]);
	for (u64 i = 1; i < cpus; i++) { /* p[0] gets the sums */
		call(SYS_kill, (u64)children[i], SIGKILL, 0, 0, 0, 0);
		call(SYS_wait4, (u64)children[i], 0, 0, 0, 0, 0);
		p[0].longest = p[i].longest > p[0].longest ? p[i].longest : p[0].longest;
		for (unsigned class = 0; class < GAP_CLASSES; class ++)
			p[0].gaps[class] += p[i].gaps[class];
	}
	if (running != cpus - 1)
		return 1;
	print_word("done="), print_number(done, ' ');
	print_word("ns="), print_number(ns, ' ');
	for (unsigned i = 0; i < 2 * ROWS; i++) {
		print_word(i < ROWS ? "grow_" : "shrink_"), print_word(keys[i % ROWS]);
		print_number(rows[i / ROWS + 1][i % ROWS] - rows[i / ROWS][i % ROWS], ' ');
	}
	for (unsigned class = 0; class < GAP_CLASSES; class ++)
		print_word(gap_keys[class]), print_number(p[0].gaps[class], ' ');
	print_word("longest_ns="), print_number(p[0].longest * NS_PER_MS / khz, '\n');
	return 0;
}
