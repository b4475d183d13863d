/*
 * Per-CPU data: see percpu.h. The boot CPU's is static; that of every other CPU comes from the
 * CPU's own node.
 */
#include "kernel/core/percpu.h"

#include <arch/boot.h>

#include "kernel/core/upward.h"

/*
 * The boot CPU runs the payload and never the idle loop, so work given to it would not be done. Its
 * work slot is therefore claimed for good.
 */
struct percpu boot_percpu = {.self = &boot_percpu, .work = {.claimed = 1}};

static struct percpu *boot_table[1] = {&boot_percpu};
static u64 boot_online_word = 1;

struct percpu **cpu_table = boot_table;
struct cpumask cpus_online = {.words = &boot_online_word};
cpu_t cpu_count = 1;
size_t cpumask_words = 1;
node_t node_count = 1;

cpu_t cpu_first_of_node(node_t node)
{
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		if (cpu_data(cpu)->node == node)
			return cpu;
	}
	return CPU_NONE;
}

/* The masks of all CPUs share one allocation, because each is at most a few words. */
static void percpu_make_masks(void)
{
	const size_t words = DIV_ROUND_UP((size_t)cpu_count, 64);
	u64 *pool = kernel_upward.early_alloc((2 * (u64)cpu_count + 1) * words * sizeof(u64),
					      NODE_NONE, "CPU masks");

	pool[0] = boot_online_word;
	cpumask_words = words;
	cpus_online.words = pool;
	pool += words;
	for (cpu_t i = 0; i < cpu_count; i++) {
		cpu_table[i]->call_from.words = pool;
		cpu_table[i]->round_targets.words = pool + words;
		pool += 2 * words;
	}
}

void percpu_init(void)
{
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): a table of pointers */
	struct percpu **table = kernel_upward.early_alloc((u64)cpu_count * sizeof(*table),
							  NODE_NONE, "the CPU table");

	for (cpu_t i = 0; i < cpu_count; i++) {
		struct percpu *cpu =
			i == 0 ? &boot_percpu
			       : kernel_upward.early_alloc(sizeof(struct percpu), arch_cpu_node(i),
							   "the data of all CPUs");

		cpu->self = cpu;
		cpu->id = i;
		cpu->node = arch_cpu_node(i);
		table[i] = cpu;
	}
	cpu_table = table;
	percpu_make_masks();
}
