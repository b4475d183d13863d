/*
 * The end of a run, as end= says.
 *
 *   auto      Report the verdict to QEMU's isa-debug-exit device. An emulator without it is powered
 *             off through the ports its chipset is known for. A real machine does as for page.
 *   halt      Halt with the last lines on show.
 *   page      Halt likewise, but let people page through the log with keys.
 *   reboot    Reset the machine through the ACPI reset register, else the ports that PCs have for
 *             it, else by a triple fault.
 *   poweroff  Power an emulator off, without a verdict. A real machine halts, because its way to
 *             power off is in AML, which nothing here interprets.
 *
 * The chipset ports are tried only under a hypervisor, because on a real machine they may belong to
 * anything.
 *
 * Source: ACPI 6.5, 4.8.3.6 "Reset Register"; Intel, "I/O Controller Hub 10 Datasheet", 2008,
 * 13.7.5 "RST_CNT".
 */
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/mmio.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/exit.h"
#include "arch/x86_64/traps/descriptors.h"
#include "kernel/console/pager.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "mm/mm.h"

enum { DEBUG_EXIT_PORT = 0xf4 }; /* QEMU: -device isa-debug-exit,iobase=0xf4 */
enum {
	RESET_CONTROL = 0xcf9,
	RESET_SYSTEM = 0x02,
	RESET_NOW = 0x06,
	KEYBOARD_COMMAND = 0x64,
	KEYBOARD_PULSE_RESET = 0xfe
};

#define RESET_WAIT_NS (100 * NS_PER_MS)

enum end { END_AUTO, END_HALT, END_PAGE, END_REBOOT, END_POWEROFF };

static unsigned on_end;
OPTION_CHOICE(end, on_end, "auto|halt|page|reboot|poweroff",
	      "what the machine does when the run is over");

/*
 * PM1a control registers, each with its "S5" command: QEMU q35 and pc, old Bochs and QEMU,
 * VirtualBox.
 */
static const struct {
	u16 port, value;
} poweroff[] = {{0x604, 0x2000}, {0xb004, 0x2000}, {0x4004, 0x3400}};

static struct acpi_fadt reset_fadt;
static volatile void __iomem *reset_memory;

void exit_set_reset(const struct acpi_fadt *fadt)
{
	reset_fadt = *fadt;
	if (fadt->reset_supported && fadt->reset.space == ACPI_SPACE_MEMORY)
		reset_memory = mmio_map(fadt->reset.addr, 1);
}

static void reset_by_acpi(void)
{
	if (!reset_fadt.reset_supported)
		return;
	if (reset_memory)
		mmio_write8(reset_memory, 0, reset_fadt.reset_value);
	else if (reset_fadt.reset.space == ACPI_SPACE_IO)
		outb((u16)reset_fadt.reset.addr, reset_fadt.reset_value);
	clock_delay_ns(RESET_WAIT_NS);
}

/* Raise an interrupt without an interrupt table. */
static void triple_fault(void)
{
	static const struct descriptor_pointer nothing;

	__asm__ volatile("lidt %0; int3" ::"m"(nothing));
}

void machine_reset(void)
{
	irq_disable();
	reset_by_acpi();
	outb(RESET_CONTROL, RESET_SYSTEM);
	outb(RESET_CONTROL, RESET_NOW);
	clock_delay_ns(RESET_WAIT_NS);
	outb(KEYBOARD_COMMAND, KEYBOARD_PULSE_RESET);
	clock_delay_ns(RESET_WAIT_NS);
	triple_fault();
	cpu_halt_forever();
}

static __noreturn void poweroff_or_halt(void)
{
	if (cpu_features.hypervisor)
		for (size_t i = 0; i < ARRAY_LEN(poweroff); i++)
			outw(poweroff[i].port, poweroff[i].value);
	print("The machine can be switched off now.\n");
	cpu_halt_forever();
}

bool machine_end_pages(void)
{
	return on_end == END_PAGE || (on_end == END_AUTO && !cpu_features.hypervisor);
}

void machine_end(unsigned code)
{
	irq_disable();
	if (on_end == END_REBOOT)
		machine_reset();
	if (machine_end_pages())
		pager_run();
	if (on_end == END_HALT || on_end == END_PAGE || !cpu_features.hypervisor)
		cpu_halt_forever();
	if (on_end == END_AUTO)
		outb(DEBUG_EXIT_PORT, (u8)code);
	poweroff_or_halt();
}
