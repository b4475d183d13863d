/* What the start-up sequence (kernel/main.c) asks of the architecture, in the order it asks. */
#pragma once

#include "kernel/types.h"

struct boot_info;

void arch_early_init(void);                         /* boot CPU: per-CPU base, descriptors, traps, features */
void arch_console_init(const struct boot_info *);   /* consoles; each first prints the log so far */
void arch_reserve_memory(void);                     /* memblock_reserve() the image, trampoline page, and what else is ours */
void arch_page_tables_init(void);                   /* root table with the image mapped W^X; not yet loaded */
void arch_page_tables_load(void);                   /* this CPU moves to the kernel's tables */
void arch_firmware_init(const struct boot_info *);  /* ACPI: sets cpu_count, node_count, nodes of RAM; without it one CPU */
node_t arch_cpu_node(cpu_t cpu);                    /* node of a CPU, once firmware is read */
u32 arch_cpu_hardware_id(cpu_t cpu);                /* the same in firmware's tables and registers: its APIC ID */
unsigned arch_node_distance(node_t from, node_t to);    /* as SLIT has it: 10 is local */
void arch_cpus_start(void);                         /* all of them, in parallel; those that do not come are named */
void arch_machine_print(void);                      /* CPU name and the features in use, for people */

/*
 * Physical range of the image's read-only part (entry code, text, constants), whole pages: the direct map must not make it
 * writable. False if there is none (hosted).
 */
bool arch_image_range(phys_t *start, phys_t *end_readonly);

/*
 * CPUs, caches, clocks and errors for kernel/machine_page.c, CPUs idle: measured where they can be, with records; then as lines of the
 * page (page_line()).
 */
void arch_machine_measure(void);
void arch_machine_page(void);

/*
 * A few bytes of memory that a reset leaves alone (kernel/run_record.c). Boot CPU: load once, when direct map and RAM are
 * known; false if there is no such memory. Store: any time after; at once in memory, past all caches.
 */
bool arch_record_load(void *record, size_t size);
void arch_record_store(const void *record, size_t size);
