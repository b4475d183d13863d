/*
 * A lock that interrupt handlers may take. The holder has interrupts off. It waits for nothing but
 * another lock of this kind, in the order timers, signals. So a CPU that waits for the lock waits
 * for a few instructions of the holder.
 */
#pragma once

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/cpu.h>

static inline irq_flags_t handler_lock(u32 *lock) __acquires(irq)
{
	const irq_flags_t flags = irq_save();

	while (!atomic_cas(lock, 0, 1))
		cpu_relax();
	return flags;
}

static inline void handler_unlock(u32 *lock, irq_flags_t flags) __releases(irq)
{
	atomic_store_release(lock, 0);
	irq_restore(flags);
}
