/*
 * The hosted machine: a process that plays a computer, so that mm/ and kernel/ run under sanitizers and debuggers.
 *
 *   memfd (physical memory)    [#########################################]
 *        |  \  \                                   direct map: all of it, read-write, always
 *        |   \  '--- vmemmap window 0..3           4 KiB by 4 KiB, as the page tables in it say (checked backend)
 *        |    '----- vmap region                   likewise
 *        '---------- page tables, struct percpu, ...: ordinary frames
 *
 * A CPU is a thread. Private to tests/host; the rest of the tree sees <arch/...> only.
 */
#pragma once

#include <pthread.h>
#include <signal.h>

#include "kernel/types.h"

#ifdef HOST_FAST
#define HOST_BACKEND "fast"
#else
#define HOST_BACKEND "checked"
#endif

enum { HOST_CPUS_MAX = 256, HOST_NODES_MAX = 16 };

/* What to build, from the runner's arguments. */
struct host_config {
	cpu_t cpus;
	node_t nodes;
	u64 ram;
	const char *extra; /* words put on every command line */
	const char *trace; /* where the events of a case go (trace.c), or NULL */
	unsigned limit_s;  /* seconds a case may take */
};
extern struct host_config host_config;

struct host_cpu {
	pthread_t thread;
	cpu_t id;
	bool started;
	u32 pending; /* an interrupt waits; the futex a halted CPU sleeps on */
	u32 halted;
	u32 stopped; /* for good: cpus_stop_others() */
};
extern struct host_cpu host_cpus[HOST_CPUS_MAX];
extern _Thread_local struct host_cpu *host_me;

/* Printed by a case that is about to break a rule: the machine must end, and say the rest of the line (main.c). */
#define HOST_EXPECT_CRASH "host: expecting an end that says: "

/* Frames that a PC's kernel image would fill; nobody else uses them here, so the machine's own tests do. */
#define HOST_IMAGE_START MIB(2)
#define HOST_IMAGE_END MIB(4)

/* machine.c */
void host_machine_init(void);                              /* memory, then this thread is CPU 0 */
__noreturn void host_machine_run(const char *cmdline); /* kernel_main() on it */

/* console.c: the exit status is a program's, 0 or 1, not the verdict's. */
void host_run_by_hand(void);

/* pages.c */
extern u64 host_memory_bytes; /* of the memfd: up to the last byte of RAM */
extern int host_memory_fd;
void host_memory_init(u64 bytes);
void host_pgtable_set_root(pfn_t root);
bool host_is_window(virt_t virt); /* inside a vmemmap window */

/* shadow.c: what the memory sanitizer knows; nothing without it */
void host_shadow_init(u64 bytes);
void host_shadow_map(virt_t virt, u64 bytes, phys_t phys); /* before these addresses show that memory */
void host_shadow_unmap(virt_t virt, u64 bytes);            /* before they show nothing */
void host_shadow_unwritten(pfn_t pfn, u64 frames);         /* whoever reads them before writing is wrong */
void host_shadow_written(const void *addr, size_t bytes);  /* by what the sanitizer does not see */

/* cpu.c */
void host_cpu_enter(cpu_t id); /* this thread becomes that CPU, interrupts off */
void host_signals_init(void);
u64 host_irq_save_quiet(void); /* irq_save() that does not count as "doing something" for the watcher */
void host_irq_restore_quiet(u64 flags);

/* fault.c */
void host_fault_init(void);
void host_fault_stack(void); /* for this thread: an own stack for faults, so that an overflow can be told */

/* check.c */
struct watch_change {
	virt_t virt;
	pfn_t pfn; /* that `virt` translated to, or of the table that was taken away */
	bool writable, is_table;
	bool idle_is_safe; /* CPUs that sleep will flush before they can use the stale translation */
	const void *place; /* who changed the entry: a code address */
	u64 when;          /* filled in */
};
void watch_changed(struct watch_change *change);
void watch_size_changed(virt_t virt, const void *place); /* a 2 MiB leaf became a table, or the reverse */
void watch_size_settled(virt_t virt, const void *place); /* an entry below is changed: the size must be known by all */
void watch_halt(void);  /* this CPU is about to halt */
void watch_awake(void); /* this CPU does something: it must have flushed what it missed while idle */

/* trace.c */
void host_trace_open(const char *path);

/* clear.c */
void host_features_init(void);

/* symbols.c */
void host_symbols_init(void);

/* console.c */
void host_clock_start(void); /* this is time 0 */
__noreturn void host_die(const char *fmt, ...) __printf(1, 2); /* the machine itself cannot go on: exit status 2 */
