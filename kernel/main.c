/*
 * Start-up, in order. Each call is named for what it makes true; what it needs is what stands above it.
 */
#include "kernel/main.h"

#include <arch/boot.h>
#include <arch/clock.h>

#include "boot/boot_info.h"
#include "kernel/cmdline.h"
#include "kernel/fail.h"
#include "kernel/machine_page.h"
#include "kernel/monitor.h"
#include "kernel/percpu.h"
#include "kernel/printk.h"
#include "kernel/run_record.h"
#include "kernel/shootdown.h"
#include "kernel/verdict.h"
#include "mm/bad_frames.h"
#include "mm/directmap.h"
#include "mm/init.h"
#include "mm/leaks.h"
#include "mm/memblock.h"
#include "mm/zone.h"

static u64 ready_ns;

u64 kernel_ready_ns(void)
{
	return ready_ns;
}

void kernel_main(const struct boot_info *info)
{
	print("ASHLAR-BEGIN\n");
	arch_early_init(); /* traps are caught */
	cmdline_apply(info->cmdline, info->cmdline_len);
	arch_console_init(info); /* people see the log, from its first line */

	if (memblock_init(info) < 0) { /* RAM is known and what is taken stays ours */
		pr_err("no usable RAM");
		verdict_end_with(VERDICT_FAIL);
	}
	bad_ram_reserve(); /* nor is what badram= names anybody's */
	arch_reserve_memory();

	arch_page_tables_init();
	direct_map_init(); /* all RAM is reachable */
	arch_page_tables_load();
	run_record_begin(); /* the run before this one is known to have ended, or not */

	arch_firmware_init(info); /* CPUs and nodes are known */
	percpu_init();            /* every CPU has its data */
	shootdown_init();
	arch_cpus_start();        /* and runs its idle loop */

	mm_init(); /* RAM has owners: pages can be allocated */

	ready_ns = clock_ns();
	leaks_begin(); /* what is in use is the kernel's own; verdict_end() sees whether it is again */
	fail_begin(&mm_kernel.fail); /* what fails from now on is what was asked for */
	if (!monitor_run()) /* commands, if the command line asks for them */
		payload_run();
	fail_print(&mm_kernel.fail);
	machine_page();
	verdict_end();
}
