/*
 * Fences, hosted. gcc's thread sanitizer knows no bare fences, so under it a fence is an exchange on a dummy of the
 * thread's own: the instruction orders memory just the same.
 */
#pragma once

#ifdef __SANITIZE_THREAD__
extern _Thread_local unsigned host_fence_dummy;
#define HOST_FENCE() ((void)__atomic_exchange_n(&host_fence_dummy, 1, __ATOMIC_SEQ_CST))
#else
#define HOST_FENCE() __atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif

static inline void fence_compiler(void)
{
	__asm__ volatile("" ::: "memory");
}

static inline void fence_full(void)
{
	HOST_FENCE();
}

static inline void fence_store(void)
{
	HOST_FENCE();
}

static inline void fence_store_nt(void)
{
	__asm__ volatile("sfence" ::: "memory"); /* a locked instruction would do, at 60 us instead of 60 ns */
}

/* Also where a simulated CPU notices interrupts that its thread was not signalled for in time, and lets others run. */
void cpu_relax(void);
