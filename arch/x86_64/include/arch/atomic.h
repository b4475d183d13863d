/*
 * Atomic operations. The name states the memory order; read-modify-writes whose names state none
 * are sequentially consistent (on x86 every locked instruction is). Arguments may be any integer or
 * pointer type of 1 to 8 bytes, naturally aligned.
 */
#pragma once

#define atomic_load_relaxed(p)     __atomic_load_n((p), __ATOMIC_RELAXED)
#define atomic_load_acquire(p)     __atomic_load_n((p), __ATOMIC_ACQUIRE)
#define atomic_store_relaxed(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)
#define atomic_store_release(p, v) __atomic_store_n((p), (v), __ATOMIC_RELEASE)

#define atomic_fetch_add(p, v) __atomic_fetch_add((p), (v), __ATOMIC_SEQ_CST)
#define atomic_fetch_sub(p, v) __atomic_fetch_sub((p), (v), __ATOMIC_SEQ_CST)
#define atomic_fetch_or(p, v)  __atomic_fetch_or((p), (v), __ATOMIC_SEQ_CST)
#define atomic_fetch_and(p, v) __atomic_fetch_and((p), (v), __ATOMIC_SEQ_CST)
#define atomic_exchange(p, v)  __atomic_exchange_n((p), (v), __ATOMIC_SEQ_CST)

/* For counters, which need only that no increment is lost. */
#define atomic_add_relaxed(p, v) ((void)__atomic_fetch_add((p), (v), __ATOMIC_RELAXED))

/* Compare and swap: true if *p was `old` and is now `new_`. */
#define atomic_cas(p, old, new_)                                                                   \
	({                                                                                         \
		__typeof__(*(p)) _expected = (old);                                                \
		__atomic_compare_exchange_n((p), &_expected, (new_), 0, __ATOMIC_SEQ_CST,          \
					    __ATOMIC_SEQ_CST);                                     \
	})
