/*
 * Two CPUs with store buffers (--mm tso): each writes a word and then looks at the other's.
 *
 * CBMC takes each __atomic builtin for a fence of all kinds. Here loads and stores are plain, as on
 * x86: only locked instructions and fence_full() keep a load behind a store.
 */
#include "tests/prove/prove.h"

#include <arch/atomic.h>
#undef atomic_load_relaxed
#undef atomic_load_acquire
#undef atomic_store_relaxed
#undef atomic_store_release
#undef atomic_fetch_add
#undef atomic_fetch_and
#undef atomic_exchange
#undef atomic_fetch_or
#undef atomic_fetch_sub
#undef atomic_cas
#define atomic_load_relaxed(p)     (*(p))
#define atomic_load_acquire(p)     (*(p))
#define atomic_store_relaxed(p, v) ((void)(*(p) = (v)))
#define atomic_store_release(p, v) ((void)(*(p) = (v)))
#define FENCE                      __CPROVER_fence("WWfence", "RRfence", "RWfence", "WRfence")
#define LOCKED(p, v)                                                                               \
	({                                                                                         \
		__typeof__(*(p)) was_;                                                             \
		FENCE;                                                                             \
		__CPROVER_atomic_begin();                                                          \
		was_ = *(p);                                                                       \
		*(p) = (__typeof__(*(p)))(v);                                                      \
		__CPROVER_atomic_end();                                                            \
		FENCE;                                                                             \
		was_;                                                                              \
	})
#define atomic_fetch_add(p, v) LOCKED(p, was_ + (v))
#define atomic_fetch_sub(p, v) LOCKED(p, was_ - (v))
#define atomic_fetch_and(p, v) LOCKED(p, was_ &(v))
#define atomic_fetch_or(p, v)  LOCKED(p, was_ | (v))
#define atomic_exchange(p, v)  LOCKED(p, v)
#define atomic_cas(p, old, v)  (LOCKED(p, was_ == (old) ? (v) : was_) == (old))

#include "kernel/core/percpu.h"
#undef cpumask_foreach
static struct percpu first, second;
static __CPROVER_thread_local cpu_t here;
#define cpu_data(cpu)              ((cpu) ? &second : &first)
#define this_cpu()                 cpu_data(here)
#define cpu_id()                   here
#define cpumask_foreach(cpu, mask) for (cpu = 0; cpu < 2; cpu++)

#include "kernel/core/call.c"

static bool is_through, is_woken;

void shootdown_flush(void)
{
}

void cpu_idle_look(void)
{
}

/* If the other CPU is through, nobody ends a halt that it has not ended. */
void cpu_halt_until_interrupt(void)
{
	const bool through = is_through;

	prove(!through || is_woken);
}

u64 ipi_send(cpu_t cpu)
{
	is_woken = true;
	return 1;
}

static void wake(void)
{
	idle_task_wake(1);
	is_through = true;
}

PROVE(idle_halt, "3 --mm tso", "a-halt-without-a-fence", "one halt, one call that wakes")
{
__CPROVER_ASYNC_1:
	wake();
	here = 1;
	halt_unless_news(0);
}
