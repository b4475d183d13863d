/*
 * Start-up, in order. Each call is named for what it makes true; it needs only the calls above it.
 */
#include "kernel/main.h"

#include <arch/boot.h>

#include "boot/boot_info.h"
#include "kernel/console/console.h"
#include "kernel/core/boot_stages.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/fail.h"
#include "kernel/core/log_record.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/run_record.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/upward.h"
#include "kernel/core/verdict.h"
#include "kernel/run/machine_page.h"
#include "kernel/run/monitor.h"
#include "kernel/virtio/balloon.h"
#include "mm/contig/bad_frames.h"
#include "mm/debug/leaks.h"
#include "mm/init.h"
#include "mm/map/directmap.h"
#include "mm/map/memblock.h"
#include "mm/memmap/zone.h"

const struct kernel_upward kernel_upward = {.console_write = console_write,
					    .early_alloc = memblock_alloc_or_die};

#define AS_TEXT(word)    AS_TEXT_OF(word)
#define AS_TEXT_OF(word) #word

/*
 * The log of a long run fits, unless it would take more than 1/256 of RAM. It goes to the lowest
 * place, often between 1 and 2 MiB, which spoils no block, and where BOOTX64.EFI looks for it.
 */
static void keep_more_log(void)
{
	phys_t at = 0;

	if (memblock_node_bytes(0) / 256 < LOG_SIZE_MAX) /* all RAM is on node 0 for now */
		return;
	for (phys_t end = MIB(2); end <= LOG_PHYS_MAX && !at; end += MIB(2))
		at = memblock_find(&memblock_memory, &memblock_reserved, LOG_SIZE_MAX, PAGE_SIZE,
				   end, NODE_NONE);
	if (!at)
		return;
	memblock_reserve(at, at + LOG_SIZE_MAX, OWNER_BOOT);
	log_grow(phys_to_virt(at), LOG_SIZE_MAX);
}

void kernel_main(const struct boot_info *info)
{
	print("ASHLAR-BEGIN\n");
	arch_early_init(); /* traps are caught, time is known */
	boot_stage_end("early");
	pr_info("Ashlar " AS_TEXT(ASHLAR_VERSION));
	cmdline_apply(&cmdline_machine, info->cmdline, info->cmdline_len);
	arch_console_init(); /* people see the log from its first line */

	/* RAM is known, and the ranges already in use are kept */
	if (memblock_sort_out(info, &memblock_memory, &memblock_reserved) < 0) {
		pr_err("no usable RAM");
		verdict_end_with(VERDICT_FAIL);
	}
	bad_ram_reserve(); /* so are the frames that badram= names */
	arch_reserve_memory();
	boot_stage_end("memory");

	arch_page_tables_init();
	direct_map_init(); /* all RAM is reachable */
	arch_page_tables_load();
	keep_more_log();
	run_record_begin(); /* the record of the previous run is read and a new one begun */
	boot_stage_end("map");

	arch_firmware_init(info); /* CPUs and nodes are known */
	boot_stage_end("firmware");
	percpu_init(); /* every CPU has its data */
	shootdown_init();
	arch_cpus_start(); /* every CPU runs its idle loop */
	boot_stage_end("cpus");

	mm_init(); /* RAM has owners, and pages can be allocated */
	boot_stage_end("mm");
	arch_program_prepare();
	boot_stage_end("program"); /* ready */
	machine_page_ready();
	balloon_init(); /* free memory goes back to the host where there is a balloon */

	/*
	 * Pages in use now are the kernel's own; verdict_end() checks that the same are in use
	 * then.
	 */
	leaks_begin();
	fail_begin(&mm_kernel.fail); /* failures from now on are those that debug.fail= asks for */
	arch_program_construct();
	/* Commands, if the command line asks for them; a room's payload, if one is wanted. */
	if (!monitor_run() && !(payload_of_room && payload_of_room()))
		payload_run();
	fail_print(&mm_kernel.fail);
	machine_page();
	verdict_end();
}
