/*
 * Fences, hosted. gcc's thread sanitizer does not support bare fences. Under it a fence is an
 * exchange on a dummy variable of the thread's own, whose instruction orders memory just the same.
 * Where schedules are explored, stores are buffered as a processor does (explore/buffer.c).
 */
#pragma once

#if defined(HOST_EXPLORE)
void explore_fence(void);
#define HOST_FENCE() explore_fence()
#elif defined(__SANITIZE_THREAD__)
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
#ifdef HOST_EXPLORE
	fence_compiler(); /* as on the machine, where stores stay in their order */
#else
	HOST_FENCE();
#endif
}

static inline void fence_store_nt(void)
{
	/* a locked instruction would do, but takes 60 us instead of 60 ns */
	__asm__ volatile("sfence" ::: "memory");
}

/*
 * Relax the CPU. A simulated CPU also notices here any interrupt whose signal is late, and lets
 * others run.
 */
void cpu_relax(void);
