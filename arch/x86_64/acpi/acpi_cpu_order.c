/*
 * The order of CPUs; see acpi_cpu_order.h.
 *
 *   APIC IDs   0 1 | 2 3 || 4 5 | 6 7     two nodes of two cores
 *   thread     0 1   0 1    0 1   0 1     number within the core
 *   turn       0 0   1 1    0 0   1 1     number among the CPUs of its class on its node
 *   CPU        0 4   2 6    1 5   3 7     by thread, then turn, then node
 *
 * Two CPUs have the same class if both will be started or both will not, and their thread numbers
 * and kinds are equal.
 */
#include "arch/x86_64/acpi/acpi_cpu_order.h"

#include "arch/x86_64/acpi/acpi_root.h"

enum { THREAD_MAX = 127 };

/* Class in bits 63:55. Nodes are dense and fewer than 2^23. */
static u64 class_of(const struct cpu_desc *cpu)
{
	return (u64)!cpu->enabled << 63 | (u64)MIN(cpu->thread, THREAD_MAX) << 56 |
	       (u64)cpu->efficient << 55;
}

static u64 key_of_class_and_node(const void *record)
{
	const struct cpu_desc *cpu = record;

	return class_of(cpu) | (u64)cpu->node << 32 | cpu->apic_id;
}

static u64 key_of_turn(const void *record)
{
	const struct cpu_desc *cpu = record;

	return class_of(cpu) | (u64)cpu->turn << 23 | cpu->node;
}

/*
 * Set the number of each CPU within its core. Threads of a core are neighbours, except for the boot
 * CPU, which is the first of its core. Returns the largest number.
 */
static u32 number_threads(struct cpu_desc *list, size_t count, unsigned core_shift)
{
	const u32 boot = list[0].apic_id >> core_shift;
	u32 largest = 0;

	for (size_t i = 1; i < count; i++) {
		const u32 core = list[i].apic_id >> core_shift;

		if (i > 1 && core == list[i - 1].apic_id >> core_shift)
			list[i].thread = list[i - 1].thread + 1;
		else
			list[i].thread = core == boot;
		largest = MAX(largest, list[i].thread);
	}
	return largest;
}

static void mark_efficient(struct cpu_desc *list, size_t count, unsigned core_shift)
{
	for (size_t i = 1; i < count; i++)
		list[i].efficient = list[i].thread == 0 &&
				    (i + 1 == count || list[i].apic_id >> core_shift !=
							       list[i + 1].apic_id >> core_shift);
}

/* The list is sorted by class and node. The boot CPU has the first turn of its own. */
static void number_turns(struct cpu_desc *list, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const struct cpu_desc *before = &list[i - 1];

		if (class_of(before) == class_of(&list[i]) && before->node == list[i].node)
			list[i].turn = before->turn + 1;
		else
			list[i].turn = class_of(&list[0]) == class_of(&list[i]) &&
				       list[0].node == list[i].node;
	}
}

void acpi_order_cpus(struct cpu_desc *list, size_t count, unsigned core_shift, bool hybrid)
{
	if (count < 2)
		return;
	if (number_threads(list, count, core_shift) > 0 && hybrid)
		mark_efficient(list, count, core_shift);
	acpi_sort(&(struct acpi_order){&list[1], sizeof(*list), key_of_class_and_node}, count - 1);
	number_turns(list, count);
	acpi_sort(&(struct acpi_order){&list[1], sizeof(*list), key_of_turn}, count - 1);
}
