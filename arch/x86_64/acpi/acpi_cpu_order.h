/*
 * The order in which CPUs are numbered, so that the first N are the N that do most work:
 *
 *   1. CPU 0 is the boot CPU;
 *   2. one thread of each core, then the second threads, and so on;
 *   3. among these, performance cores before efficient ones;
 *   4. among these, round robin over the nodes, and within a node by rising APIC ID.
 *
 * maxcpus= therefore takes cores before siblings and spreads over the nodes. padata starts helpers
 * in the order of their numbers and does the same.
 *
 * A CPU's kind can be asked only on the CPU itself, once it runs. In a hybrid processor the cores
 * with one thread are taken for efficient ones if others have two. Where no core has two threads
 * the kinds are unknown, and point 3 decides nothing.
 */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/*
 * Put the list into this order. list[0] is the boot CPU and stays; the others ascend by APIC ID.
 * Nodes are set. CPUs that will not be started come last. Pure.
 */
void acpi_order_cpus(struct cpu_desc *list, size_t count, unsigned core_shift, bool hybrid);
