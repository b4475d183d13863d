/*
 * The boot CPU's own state, in the order in which its parts need each other. The other CPUs make
 * theirs in ap_start() (smp.c).
 */
#include <arch/boot.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/stack_guard.h"
#include "arch/x86_64/time/clock.h"
#include "arch/x86_64/clear/clear.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/descriptors.h"
#include "arch/x86_64/traps/mce.h"
#include "arch/x86_64/traps/traps.h"
#include "arch/x86_64/user/user.h"
#include "kernel/core/percpu.h"

void arch_early_init(void)
{
	stack_guard_choose();
	apic_silence_others(); /* CPUs that firmware left spinning would compete for CPU time */
	traps_init();
	descriptors_init_cpu(&boot_percpu);
	cpu_features_detect();
	cpu_features_init();
	clear_insns_choose();
	user_init_cpu();
	mce_init_cpu();
	clock_init();
}
