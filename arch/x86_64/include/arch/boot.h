/* Calls that the start-up sequence (kernel/main.c) makes into the architecture, in their order. */
#pragma once

#include "kernel/lib/types.h"

struct boot_info;

/* boot CPU: set up the per-CPU base, descriptors, traps and features */
void arch_early_init(void);
/* start consoles; each prints the log so far first */
void arch_console_init(void);
/*
 * memblock_reserve() the image, the trampoline page and the kernel's other memory, and remove RAM
 * that is not cached
 */
void arch_reserve_memory(void);
/* make a root table that maps the image W^X; it is not loaded yet */
void arch_page_tables_init(void);
void arch_page_tables_load(void); /* switch this CPU to the kernel's tables */
/* ACPI: set cpu_count, node_count and the nodes of RAM; without ACPI there is one CPU */
void arch_firmware_init(const struct boot_info *);
node_t arch_cpu_node(cpu_t cpu); /* node of a CPU, once the firmware tables are read */
/* the CPU's APIC ID, which names it in firmware's tables and in registers */
u32 arch_cpu_hardware_id(cpu_t cpu);
/* the distance in SLIT's units: 10 is local; nodes that do not exist are remote */
unsigned arch_node_distance(node_t from, node_t to);
/* start all CPUs in parallel; the log names those that do not start */
void arch_cpus_start(void);
/* a linked program's thread-local variables exist on every CPU; memory is there */
void arch_program_prepare(void);
/* run the linked program's constructors */
void arch_program_construct(void);

/*
 * Physical range of the image's read-only part (entry code, text, constants) in whole pages. The
 * direct map must not make it writable. False if there is no such part (hosted).
 */
bool arch_image_range(phys_t *start, phys_t *end_readonly);

/*
 * For kernel/run/machine_page.c, with all other CPUs idle: arch_machine_measure() reads every CPU's
 * errors, and arch_machine_page() calls `line` for each line about CPUs, clock and errors.
 * arch_machine_name() does so for the CPU's name, the features in use and the clock alone.
 */
typedef void sheet_line_fn(const char *name, const char *fmt, ...) __printf(2, 3);
void arch_machine_measure(void);
void arch_machine_page(sheet_line_fn *line);
void arch_machine_name(sheet_line_fn *line);

/*
 * A few bytes of memory that survive a reset (kernel/core/run_record.c). The boot CPU loads them
 * once, when the direct map and RAM are known; false if there is no such memory. They may be stored
 * at any time after that; each store is flushed through the caches to memory at once.
 */
bool arch_record_load(void *record, size_t size);
void arch_record_store(const void *record, size_t size);

/* Write `len` bytes back from the caches, so that they survive a reset. Any context. */
void arch_write_back(const void *start, size_t len);
