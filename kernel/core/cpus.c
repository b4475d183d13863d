/* The CPUs, as a program sees them: see cpus.h. */
#include "kernel/core/cpus.h"

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"

cpu_t cpu_this(void)
{
	return cpu_id();
}

cpu_t cpus_started(void)
{
	return cpumask_weight(&cpus_online);
}

cpu_t cpus_known(void)
{
	return cpu_count;
}

bool cpu_is_started(cpu_t cpu)
{
	return cpu < cpu_count && cpu_online(cpu);
}

void call_others(call_fn *fn, void *arg)
{
	call_cpus(&cpus_online, fn, arg);
}
