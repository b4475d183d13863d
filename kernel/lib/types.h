/* Types that say what a number is, and the few macros that all code uses. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef unsigned long long u64; /* what %llu prints */
typedef int32_t s32;
typedef long long s64;

typedef u64 pfn_t;  /* page frame number: physical address / 4 KiB */
typedef u64 phys_t; /* physical address, bytes */
typedef u64 virt_t; /* virtual address, bytes */
typedef u32 cpu_t;  /* dense CPU index, 0 is the boot CPU */
typedef u32 node_t; /* dense NUMA node index */

#define PFN_NONE  ((pfn_t)-1)
#define CPU_NONE  ((cpu_t)-1)
#define NODE_NONE ((node_t)-1)

#define PAGE_SHIFT 12
#define PAGE_SIZE  (1ULL << PAGE_SHIFT)

#define KIB(n) ((u64)(n) << 10)
#define MIB(n) ((u64)(n) << 20)
#define GIB(n) ((u64)(n) << 30)
#define TIB(n) ((u64)(n) << 40)

#define NS_PER_US 1000ULL
#define NS_PER_MS 1000000ULL
#define NS_PER_S  1000000000ULL

#define ARRAY_LEN(a)       (sizeof(a) / sizeof((a)[0]))
#define ALIGN_DOWN(x, a)   ((x) & ~((__typeof__(x))(a)-1)) /* a: power of two */
#define ALIGN_UP(x, a)     ALIGN_DOWN((x) + ((__typeof__(x))(a)-1), a)
#define IS_ALIGNED(x, a)   (((x) & ((__typeof__(x))(a)-1)) == 0)
#define DIV_ROUND_UP(n, d) (((n) + (d)-1) / (d))

/*
 * The smaller and the larger of two. Each argument is evaluated once, because another CPU may
 * change its value meanwhile.
 */
#define MIN(a, b)                  CHOOSE_ONCE(a, b, <, __COUNTER__)
#define MAX(a, b)                  CHOOSE_ONCE(a, b, >, __COUNTER__)
#define CHOOSE_ONCE(a, b, than, n) CHOOSE_ONCE_AS(a, b, than, n)
#define CHOOSE_ONCE_AS(a, b, than, n)                                                              \
	({                                                                                         \
		const __typeof__((a)than(b) ? (a) : (b)) choose_a##n = (a), choose_b##n = (b);     \
		choose_a##n than choose_b##n ? choose_a##n : choose_b##n;                          \
	})

/* a - b, or 0 if b is larger. */
static inline u64 saturating_sub(u64 a, u64 b)
{
	return a > b ? a - b : 0;
}

#define container_of(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

#define CACHE_LINE          64
#define __cacheline_aligned __attribute__((aligned(CACHE_LINE)))
#define __printf(fmt, args) __attribute__((format(printf, fmt, args)))
#define __noreturn          __attribute__((noreturn))
#define __packed            __attribute__((packed))

/*
 * Annotations for sparse (make lint). A pointer to device registers belongs to an address space of
 * its own, which only <arch/mmio.h> may dereference. Locks are counted: sparse reports a function
 * that returns with more or fewer locks held than it declares, or whose paths differ in this.
 */
#ifdef __CHECKER__
#define __iomem           __attribute__((noderef, address_space(__iomem)))
#define __force           __attribute__((force))
#define __acquires(lock)  __attribute__((context(lock, 0, 1)))
#define __releases(lock)  __attribute__((context(lock, 1, 0)))
#define __must_hold(lock) __attribute__((context(lock, 1, 1)))
#define __acquires_if(lock, taken)                                                                 \
	((taken) ? ({                                                                              \
		__context__(lock, 1);                                                              \
		true;                                                                              \
	})                                                                                         \
		 : false)
#define __counts_as(lock, step) __context__(lock, step)
#else
#define __iomem
#define __force
#define __acquires(lock)
#define __releases(lock)
#define __must_hold(lock)
#define __acquires_if(lock, taken) (taken)
#define __counts_as(lock, step)    ((void)0)
#endif

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/*
 * Put an object into a table that the linker gathers: tests, options, commands. TABLE_FOREACH walks
 * a table. The order is link order and means nothing.
 */
/* A name for an entry that nothing refers to. */
#define TABLE_ENTRY_NAME(number)    TABLE_ENTRY_NAME_(number)
#define TABLE_ENTRY_NAME_(number)   table_entry_##number
#define TABLE_ENTRY(table)          __attribute__((used, section(#table), aligned(8)))
#define TABLE_DECLARE(type, table)  extern type __start_##table[], __stop_##table[]
#define TABLE_FOREACH(entry, table) for (entry = __start_##table; entry < __stop_##table; entry++)

/* Errors are returned as the negative of these numbers, which are those of Linux. */
enum {
	EPERM = 1,
	ENOENT = 2,
	ESRCH = 3,
	EINTR = 4,
	EIO = 5,
	ENXIO = 6,
	E2BIG = 7,
	ENOEXEC = 8,
	EBADF = 9,
	ECHILD = 10,
	EAGAIN = 11,
	ENOMEM = 12,
	EACCES = 13,
	EFAULT = 14,
	EBUSY = 16,
	EEXIST = 17,
	ENODEV = 19,
	ENOTDIR = 20,
	EISDIR = 21,
	EINVAL = 22,
	EMFILE = 24,
	ENOTTY = 25,
	EFBIG = 27,
	ENOSPC = 28,
	ESPIPE = 29,
	EPIPE = 32,
	ERANGE = 34,
	ENAMETOOLONG = 36,
	ENOSYS = 38,
	ENOTEMPTY = 39,
	ELOOP = 40,
	EOVERFLOW = 75,
	ENOTSOCK = 88,
	EPROTONOSUPPORT = 93,
	ENOTSUP = 95,
	EAFNOSUPPORT = 97,
	ETIMEDOUT = 110,
};
