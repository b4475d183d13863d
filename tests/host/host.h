/*
 * The hosted machine: a process that simulates a computer, so that mm/ and kernel/ run under
 * sanitizers and debuggers.
 *
 *   memfd (physical memory)    [#########################################]
 *        |  \  \                            direct map: all of it, read-write, always
 *        |   \  '--- vmemmap window 0..3    4 KiB by 4 KiB, as the page tables in it say
 *        |    \                             (checked backend)
 *        |     '---- vmap region            likewise
 *        '---------- page tables, struct percpu, ...: ordinary frames
 *
 * A CPU is a thread, or a stack of its own if schedules are explored (explore/schedule.c). Private
 * to tests/host; the rest of the tree sees only <arch/...>.
 */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/memory.h>

#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"

#ifdef HOST_FAST
#define HOST_BACKEND "fast"
#else
#define HOST_BACKEND "checked"
#endif

enum { HOST_CPUS_MAX = 256, HOST_NODES_MAX = 16 };

/* The machine to simulate, from the runner's arguments. */
struct host_config {
	cpu_t cpus;
	node_t nodes;
	u64 ram;
	const char *extra;  /* words added to every command line */
	const char *replay; /* file that describes the machine (replay.h), or NULL */
	const char *trace;  /* file for the events of a case (trace.c), or NULL */
	unsigned limit_s;   /* seconds of processor time that a case may take */
	bool unwatched;     /* frames that are used again are not looked up (check.c) */
};
extern struct host_config host_config;

enum { HOST_PENDING_IPI = 1, HOST_PENDING_TIMER = 2 };

struct host_cpu {
	pthread_t thread;
	cpu_t id;
	bool started;
	u32 pending; /* interrupts that wait; also the futex on which a halted CPU sleeps */
	u32 halted;
	u32 stopped;          /* stopped for good by cpus_stop_others() */
	volatile bool irq_on; /* the interrupt flag; handlers of this thread's signals read it */
};
extern struct host_cpu host_cpus[HOST_CPUS_MAX];
extern _Thread_local struct host_cpu *host_me;

/*
 * Printed by a case that is about to break a rule on purpose. The machine must then end with the
 * text in the rest of the line (main.c).
 */
#define HOST_EXPECT_CRASH "host: expecting an end that says: "

/*
 * Frames that a PC's kernel image would fill. Nothing else uses them here, so the tests of the
 * hosted machine do.
 */
#define HOST_IMAGE_START MIB(2)
#define HOST_IMAGE_END   MIB(4)

/* machine.c */
/* make the memory; this thread becomes CPU 0 */
void host_machine_init(void);
__noreturn void host_machine_run(const char *cmdline); /* run kernel_main() on it */

/* console.c: make the exit status 0 or 1, as a program's, instead of the verdict. */
void host_run_by_hand(void);

/* pci.c: what functions (bus << 8 | device << 3 | function) say of their registers; NULL: no PCI */
extern u32 (*host_pci)(u32 place, unsigned reg);

/* pages.c */
extern u64 host_memory_bytes; /* size of the memfd: up to the last byte of RAM */
extern int host_memory_fd;
void host_memory_init(u64 bytes);
void host_pgtable_set_root(pfn_t root);
struct host_pte;
void host_pte_set(const struct host_pte *pte, u64 value); /* with the mapping, as any store */
/* Does this store take away or change a translation of a 4 KiB or 2 MiB leaf, in use now? */
bool host_pte_outdates(const struct host_pte *pte, u64 value);
void host_map_stale(const struct host_pte *pte, u64 old); /* as this entry said before */
void host_map_current(const struct host_pte *pte);        /* as the tables say */
/*
 * The place in the direct map of what page tables map at `addr`; `addr` itself if that is memory of
 * the process; NULL if nothing is mapped there.
 */
void *host_alias(void *addr);

/* shadow.c: what the memory sanitizer knows of physical memory; empty without it */
void host_shadow_init(u64 bytes);
/* call before these addresses map that memory */
void host_shadow_map(virt_t virt, u64 bytes, phys_t phys);
void host_shadow_unmap(virt_t virt, u64 bytes); /* call before they map nothing */
/* a read of these frames before a write is an error from now on */
void host_shadow_unwritten(pfn_t pfn, u64 frames);
/* written by code that the sanitizer does not see */
void host_shadow_written(const void *addr, size_t bytes);

/* cpu.c */
void host_cpu_enter(cpu_t id); /* this thread becomes that CPU, with interrupts off */
u64 host_irq_save_quiet(
	void); /* irq_save() that does not tell the watcher that this CPU is awake */
void host_irq_restore_quiet(u64 flags);
/*
 * Take the pending interrupts of this CPU. Called with interrupts on; returns with interrupts on
 * and nothing pending.
 */
void host_deliver(void);

/* thread.c or explore/schedule.c: how CPUs run, and by which clock */
typedef void host_cpu_fn(cpu_t id); /* never returns */
void host_signals_init(void);
void host_cpu_begin(cpu_t id, host_cpu_fn *fn); /* run fn(id) as that CPU from now on */
void host_cpu_notify(struct host_cpu *target);  /* its `pending` was set just now */
void host_cpu_sleep(void);                      /* return when `pending` of this CPU is set */
void host_cpu_yield(void);                      /* this CPU waits: let others run */
void host_interrupts_on(void);                  /* this CPU has switched interrupts on */
/*
 * Kinds of points: what a CPU is about to do. A point names the object that the CPU is about to
 * access, or NULL if no other CPU could access it. The object of a flush is the page to flush;
 * NULL: all. Where schedules are explored, another CPU may run first.
 */
enum host_point {
	HOST_LOAD,
	HOST_STORE,
	HOST_LOCKED,
	HOST_FENCE,
	HOST_IRQ,
	HOST_IPI,
	HOST_PTE,
	HOST_FLUSH,
	HOST_RELAX,
	HOST_HALT
};
void host_point(enum host_point kind, const void *object);
/*
 * A page-table entry, about to be stored. Where schedules are explored, the store is buffered, and
 * host_pte_set() takes it back, or makes it again.
 */
struct host_pte {
	u64 *entry; /* in the direct map */
	virt_t virt;
	int level;
	const void *place; /* code address that stores */
};
void host_pte_buffer(const struct host_pte *pte, u64 value);
void host_clock_start(void); /* make this moment time 0 */

/* fault.c */
void host_fault_init(void);
/* give this thread its own stack for faults, so that an overflow can be reported */
void host_fault_stack(void);

/* check.c */
struct watch_change {
	virt_t virt;
	pfn_t pfn; /* that `virt` translated to, or of the table that was removed */
	bool writable, is_table;
	/* CPUs that sleep will flush before they can use the stale translation */
	bool idle_is_safe;
	const void *place; /* code address that changed the entry */
	u64 when;          /* filled in by watch_changed() */
};
void watch_changed(struct watch_change *change);
/* a 2 MiB leaf became a table, or the reverse */
void watch_size_changed(virt_t virt, const void *place);
/* an entry below is changed: all CPUs must have flushed since the size changed */
void watch_size_settled(virt_t virt, const void *place);
void watch_halt(void); /* this CPU is about to halt */
/* this CPU is active: it must have flushed all it missed while idle */
void watch_awake(void);

/* simulate.c: time spent on simulating hardware */
void host_simulate_init(void); /* call once, after host_clock_start() */
/* Nothing that returns another way may lie between these; `began` is what the first returned. */
u64 host_simulate_begin(void);
void host_simulate_end(u64 began);
bool host_simulates(void);              /* does this CPU do so now? */
u64 host_faults(void);                  /* page faults that the host took for this thread */
void host_simulate_faulted(u64 faults); /* so many of them belong to the simulation */

/* trace.c */
void host_trace_open(const char *path);

/* clear.c */
void host_features_init(void);

/* symbols.c */
void host_symbols_init(void);

/* console.c */
/* end the process because the hosted machine itself cannot go on: exit status 2 */
__noreturn void host_die(const char *fmt, ...) __printf(1, 2);

/* Write to standard output. False if nobody reads it any more. Also in signal handlers. */
bool host_write(const char *text, size_t len);
