/*
 * The vDSO: a small shared object that the kernel maps into every program, so that the time costs
 * no call. C libraries find it by AT_SYSINFO_EHDR and look its functions up by name and version, as
 * in any shared object. This file runs in ring 3, and nothing is relocated in it.
 *
 *   base - 4096   struct vdso_data (vdso_data.h)
 *   base          this object
 *
 * LFENCE keeps RDTSC from being executed before earlier loads (Intel SDM vol. 2B, "RDTSC"), so that
 * times that programs compare across CPUs do not run backwards.
 *
 * Source for names and version: Linux man-pages, vdso(7).
 */
#include "kernel/program/vdso/vdso_data.h"

#define EXPORT __attribute__((visibility("default")))

enum {
	CLOCK_REALTIME = 0,
	CLOCK_MONOTONIC = 1,
	CLOCK_MONOTONIC_RAW = 4,
	CLOCK_REALTIME_COARSE = 5,
	CLOCK_MONOTONIC_COARSE = 6,
	CLOCK_BOOTTIME = 7,
	CLOCK_TAI = 11,
};
#define BIT(clock)      (1u << (clock))
#define CLOCKS_CALENDAR (BIT(CLOCK_REALTIME) | BIT(CLOCK_REALTIME_COARSE) | BIT(CLOCK_TAI))
#define CLOCKS_SERVED                                                                              \
	(CLOCKS_CALENDAR | BIT(CLOCK_MONOTONIC) | BIT(CLOCK_MONOTONIC_RAW) |                       \
	 BIT(CLOCK_MONOTONIC_COARSE) | BIT(CLOCK_BOOTTIME))

enum { CALL_CLOCK_GETTIME = 228, CALL_GETCPU = 309 };
enum { CPU_BITS = 12 };

struct time {
	s64 sec, part; /* nanoseconds or microseconds */
};

extern const struct vdso_data vdso_data __attribute__((visibility("hidden")));

EXPORT int __vdso_clock_gettime(s32 clock, struct time *to);
EXPORT int __vdso_gettimeofday(struct time *to, u64 *zone);
EXPORT s64 __vdso_time(s64 *to);
EXPORT int __vdso_getcpu(u32 *cpu, u32 *node, void *unused);

static s64 call3(u64 number, u64 a, u64 b, u64 c)
{
	s64 result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c)
			 : "rcx", "r11", "memory");
	return result;
}

static u64 clock_ns(void)
{
	u32 low, high;
	u64 ticks;

	__asm__ volatile("lfence; rdtsc" : "=a"(low), "=d"(high)::"memory");
	ticks = ((u64)high << 32 | low) - vdso_data.base_tsc;
	if ((s64)ticks < 0)
		ticks = 0;
	return vdso_data.base_ns + (u64)(((unsigned __int128)ticks * vdso_data.mult) >> 32);
}

static int read(s32 clock, struct time *to)
{
	u64 ns;

	if ((u32)clock > CLOCK_TAI || !(CLOCKS_SERVED & BIT(clock)) || !vdso_data.mult)
		return (int)call3(CALL_CLOCK_GETTIME, (u64)clock, (u64)to, 0);
	ns = clock_ns();
	if (CLOCKS_CALENDAR & BIT(clock))
		ns += vdso_data.date_ns;
	to->sec = (s64)(ns / NS_PER_S);
	to->part = (s64)(ns % NS_PER_S);
	return 0;
}

int __vdso_clock_gettime(s32 clock, struct time *to)
{
	return read(clock, to);
}

int __vdso_gettimeofday(struct time *to, u64 *zone)
{
	struct time now = {0, 0};

	read(CLOCK_REALTIME, &now);
	if (to)
		*to = (struct time){now.sec, now.part / (s64)NS_PER_US};
	if (zone)
		*zone = 0;
	return 0;
}

s64 __vdso_time(s64 *to)
{
	struct time now = {0, 0};

	read(CLOCK_REALTIME, &now);
	if (to)
		*to = now.sec;
	return now.sec;
}

int __vdso_getcpu(u32 *cpu, u32 *node, void *unused)
{
	u32 value;

	if (!vdso_data.cpu_in_rdtscp)
		return (int)call3(CALL_GETCPU, (u64)cpu, (u64)node, 0);
	__asm__ volatile("rdtscp" : "=c"(value)::"eax", "edx", "memory");
	if (cpu)
		*cpu = value & ((1u << CPU_BITS) - 1);
	if (node)
		*node = value >> CPU_BITS;
	return 0;
}
