/*
 * Shared by the programs of this folder: system calls, the clock and numbers (Linux x86-64). The C
 * library's headers give the numbers of calls and flags; nothing is linked. A program defines
 * run(), begins at _start, and exits with what run() returns.
 */
#pragma once

#include <linux/fcntl.h>
#include <linux/mman.h>
#include <linux/time.h>
#include <sys/syscall.h>

#include "kernel/lib/types.h"

#define POOLS   "/sys/kernel/mm/hugepages/hugepages-"
#define POOL_2M POOLS "2048kB/nr_hugepages"
#define POOL_1G POOLS "1048576kB/nr_hugepages"

static int run(long argc, char **argv);

static inline long call(long number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	register u64 r10 __asm__("r10") = d;
	register u64 r8 __asm__("r8") = e;
	register u64 r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

/* Memory of the caller's own, or NULL. */
static inline char *map_memory(u64 bytes, u64 flags)
{
	const long at = call(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, flags, -1UL, 0);

	return at < 0 && at > -4096 ? (char *)0 : (char *)at;
}

static inline u64 now_ns(void)
{
	u64 time[2];

	call(SYS_clock_gettime, CLOCK_MONOTONIC, (u64)time, 0, 0, 0, 0);
	return time[0] * 1000000000 + time[1];
}

static inline u64 tsc(void)
{
	u64 low, high;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return high << 32 | low;
}

/* Measured for 100 ms. */
static inline u64 tsc_khz(void)
{
	const u64 began = now_ns(), ticks = tsc();
	u64 ns;

	while ((ns = now_ns() - began) < 100000000)
		;
	return (tsc() - ticks) * 1000000 / ns;
}

static inline void write_number(u64 file, u64 n, char after)
{
	char text[24];
	int at = sizeof(text);

	text[--at] = after;
	do
		text[--at] = (char)('0' + n % 10);
	while (n /= 10);
	call(SYS_write, file, (u64)(text + at), sizeof(text) - (u64)at, 0, 0, 0);
}

static inline void print_number(u64 n, char after)
{
	write_number(1, n, after);
}

static inline void print_word(const char *text)
{
	u64 bytes = 0;

	while (text[bytes])
		bytes++;
	call(SYS_write, 1, (u64)text, bytes, 0, 0, 0);
}

static inline u64 number_of(const char *word)
{
	u64 n = 0;

	while (*word >= '0' && *word <= '9')
		n = n * 10 + (u64)(*word++ - '0');
	return n;
}

/* Set the size of a pool. Returns the size that it has then. */
static inline u64 set_pool(const char *path, u64 pages)
{
	const u64 file = (u64)call(SYS_open, (u64)path, O_RDWR, 0, 0, 0, 0);
	char text[24] = {0};

	write_number(file, pages, '\n');
	call(SYS_pread64, file, (u64)text, sizeof(text) - 1, 0, 0, 0);
	call(SYS_close, file, 0, 0, 0, 0, 0);
	return number_of(text);
}

__attribute__((used, noreturn)) static void start(long *stack)
{
	call(SYS_exit, (u64)run(stack[0], (char **)(stack + 1)), 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

__asm__(".globl _start\n_start: xor %ebp, %ebp; mov %rsp, %rdi; and $-16, %rsp; call start\n");
