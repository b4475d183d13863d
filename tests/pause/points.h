/*
 * Switch points of a guest. `make run SEED=N` includes this before the code of mm/ and
 * kernel/core, so that each atomic access, and with it each lock, and each fence and message comes
 * after pause_at_point(). That function pauses as often as the seed says. QEMU, which runs one CPU
 * at a time by instructions (ACCEL=icount), goes on with the next CPU at every pause, so the seed
 * decides the order in which CPUs run. The same seed gives the same bytes on the console.
 *
 * Nothing of this is in an ordinary build.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/cpu.h>

void pause_at_point(void);

/* A macro is not expanded in itself: inside, these are the compiler's and the architecture's. */
#define __atomic_load_n(...)     (pause_at_point(), __atomic_load_n(__VA_ARGS__))
#define __atomic_store_n(...)    (pause_at_point(), __atomic_store_n(__VA_ARGS__))
#define __atomic_exchange_n(...) (pause_at_point(), __atomic_exchange_n(__VA_ARGS__))
#define __atomic_fetch_add(...)  (pause_at_point(), __atomic_fetch_add(__VA_ARGS__))
#define __atomic_fetch_sub(...)  (pause_at_point(), __atomic_fetch_sub(__VA_ARGS__))
#define __atomic_fetch_or(...)   (pause_at_point(), __atomic_fetch_or(__VA_ARGS__))
#define __atomic_fetch_and(...)  (pause_at_point(), __atomic_fetch_and(__VA_ARGS__))
#define __atomic_compare_exchange_n(...)                                                           \
	(pause_at_point(), __atomic_compare_exchange_n(__VA_ARGS__))
#define fence_full()           (pause_at_point(), fence_full())
#define ipi_send(cpu)          (pause_at_point(), ipi_send(cpu))
#define ipi_send_mask(targets) (pause_at_point(), ipi_send_mask(targets))
