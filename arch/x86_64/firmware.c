/*
 * From firmware tables to facts about this machine: CPUs, nodes, clocks. See acpi_find.h.
 *
 * Whatever the tables say or lack, the boot CPU goes on. At worst it is the only CPU on the only
 * node, and the log says why.
 */
#include <arch/boot.h>

#include "arch/x86_64/acpi/acpi_devices.h"
#include "arch/x86_64/acpi/acpi_find.h"
#include "arch/x86_64/acpi/acpi_machine.h"
#include "arch/x86_64/acpi/acpi_madt.h"
#include "arch/x86_64/consoles/console.h"
#include "arch/x86_64/cpu/leftovers.h"
#include "arch/x86_64/cpu/pci.h"
#include "arch/x86_64/exit.h"
#include "arch/x86_64/interrupts/irq.h"
#include "arch/x86_64/interrupts/nmi.h"
#include "arch/x86_64/interrupts/nmi_tick.h"
#include "arch/x86_64/time/clock.h"
#include "arch/x86_64/traps/apic.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/mm.h"

enum { HPET_SIZE = 0x500 }; /* with 32 timers, the most that it can state */

static u64 max_cpus = ~0ULL;
OPTION_U64(maxcpus, max_cpus, 1, ~0ULL, "start no more CPUs than this; 1: only the boot CPU",
	   .boot_only = true);

static void drop_unreachable(struct cpu_desc *list, size_t count)
{
	for (size_t i = 1; i < count && apic_mode() == APIC_XAPIC; i++)
		if (list[i].apic_id > XAPIC_ID_MAX)
			list[i].enabled = false;
}

static void read_cpus(void)
{
	const struct acpi_table *madt = acpi_get(ACPI_MADT), *dmar = acpi_get(ACPI_DMAR);
	const bool opted_out = dmar && acpi_dmar_opts_out(dmar);
	struct cpu_desc *list;
	struct acpi_madt info;
	size_t count;

	if (apic_probe() == APIC_NONE || !madt) {
		pr_warn("%s: one CPU is used", madt ? "no local APIC" : "no MADT");
		apic_choose_mode(0, opted_out);
		pic_mask_all();
		apic_init_cpu();
		cpu_descs[0].apic_id = apic_id();
		return;
	}
	pic_mask_all();
	list = acpi_machine_cpus(madt, &count, &info, io_apic_add);
	apic_nmi_pin = info.nmi_lint;
	apic_choose_mode(count ? list[count - 1].apic_id : 0, opted_out);
	apic_init_cpu();
	/* CPU numbers are dense. The boot CPU is number 0 whether or not the table lists it. */
	count = cpu_list_boot_first(list, count, apic_id());
	drop_unreachable(list, count);
	cpu_descs = list;
	cpu_count = (cpu_t)count;
}

static void read_pci(void)
{
	const struct acpi_table *mcfg = acpi_get(ACPI_MCFG);
	u32 buses;
	const phys_t base = mcfg ? acpi_mcfg_base(mcfg, &buses) : 0;

	if (!base || pci_has_ports())
		return;
	if (!pci_memory_is_possible(base, buses)) {
		pr_warn("PCI: MCFG names memory at %llx for %u buses, which cannot be: not used",
			base, buses);
		return;
	}
	pci_use_memory(base, buses);
	leftovers_stop(); /* devices that no port reached before */
}

static void read_clocks(void)
{
	const struct acpi_table *hpet = acpi_get(ACPI_HPET), *table = acpi_get(ACPI_FADT);
	struct acpi_fadt fadt = {0};
	const phys_t base = hpet ? acpi_hpet_base(hpet) : 0;
	volatile void __iomem *regs = base ? mmio_map(base, HPET_SIZE) : NULL;

	if (table && acpi_fadt_parse(table, &fadt) == 0)
		exit_use_acpi(&fadt, acpi_get(ACPI_DSDT));
	clock_refine_begin(regs, (u16)fadt.pm_timer_port, fadt.pm_timer_32bit);
	nmi_tick_start();
}

void arch_firmware_init(const struct boot_info *info)
{
	acpi_find_tables(info);
	read_pci();
	console_firmware_init();
	nmi_init(); /* before read_cpus() opens the pin of NMIs */
	read_cpus();
	acpi_machine_nodes(acpi_get(ACPI_SRAT), acpi_get(ACPI_SLIT));
	acpi_machine_order_cpus(cpuid_own, NULL, max_cpus);
	read_clocks();
}

node_t arch_cpu_node(cpu_t cpu)
{
	return cpu < cpu_count ? cpu_descs[cpu].node : 0;
}

u32 arch_cpu_hardware_id(cpu_t cpu)
{
	return cpu < cpu_count ? cpu_descs[cpu].apic_id : ~0U;
}
