/*
 * The end of a run, as end= says.
 *
 *   auto      Report the verdict to QEMU's isa-debug-exit device. An emulator without it is powered
 *             off. A real machine does as for page.
 *   halt      Halt with the last lines on show.
 *   page      Halt likewise, but let people page through the log with keys.
 *   cycle     As page, but the pages, and QR codes of the results, also go by on their own.
 *   reboot    Reset the machine through the ACPI reset register, else the ports that PCs have for
 *             it, else by a triple fault.
 *   poweroff  Switch the power off as ACPI's FADT and \_S5 say; else say why not, and halt. What
 *             firmware wants to do before (_PTS) is AML, which nothing here interprets.
 *
 * Source: ACPI 6.5, 4.8.3.2 "PM1 Control Registers", 4.8.3.6 "Reset Register", 4.8.3.7 "Sleep
 * Control and Status Registers", 16.3.1; Intel, "I/O Controller Hub 10 Datasheet", 2008,
 * 13.7.5 "RST_CNT".
 */
#include <arch/barrier.h>
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/mmio.h>

#include "arch/x86_64/acpi/acpi_devices.h"
#include "arch/x86_64/consoles/console.h"
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

#define RESET_WAIT_NS     (100 * NS_PER_MS)
#define ACPI_MODE_WAIT_NS (300 * NS_PER_MS)
#define POWER_WAIT_NS     (2 * NS_PER_S)

enum end { END_AUTO, END_HALT, END_PAGE, END_CYCLE, END_REBOOT, END_POWEROFF };

static unsigned on_end;
OPTION_CHOICE(end, on_end, "auto|halt|page|cycle|reboot|poweroff",
	      "what the machine does when the run is over");

enum {
	PM1_SCI_ON = 1 << 0,
	PM1_SLEEP = 1 << 13,
	PM1_SLEEP_TYPE = 10,
	CONTROL_SLEEP = 1 << 5,
	CONTROL_SLEEP_TYPE = 2
};

static struct acpi_fadt acpi;
static volatile void __iomem *reset_memory, *sleep_memory;
static bool sleep_known;
static u8 sleep_type[2];

void exit_use_acpi(const struct acpi_fadt *fadt, const struct acpi_table *dsdt)
{
	acpi = *fadt;
	if (fadt->reset_supported && fadt->reset.space == ACPI_SPACE_MEMORY)
		reset_memory = mmio_map(fadt->reset.addr, 1);
	if (fadt->sleep_control.addr && fadt->sleep_control.space == ACPI_SPACE_MEMORY)
		sleep_memory = mmio_map(fadt->sleep_control.addr, 1);
	sleep_known = dsdt && acpi_s5_parse(dsdt, sleep_type);
}

static void reset_by_acpi(void)
{
	if (!acpi.reset_supported)
		return;
	if (reset_memory)
		mmio_write8(reset_memory, 0, acpi.reset_value);
	else if (acpi.reset.space == ACPI_SPACE_IO)
		outb((u16)acpi.reset.addr, acpi.reset_value);
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
	console_drain();
	reset_by_acpi();
	outb(RESET_CONTROL, RESET_SYSTEM);
	outb(RESET_CONTROL, RESET_NOW);
	clock_delay_ns(RESET_WAIT_NS);
	outb(KEYBOARD_COMMAND, KEYBOARD_PULSE_RESET);
	clock_delay_ns(RESET_WAIT_NS);
	triple_fault();
	cpu_halt_forever();
}

/* The ports are ACPI's only in its mode, in which firmware need not have left the machine. */
static void enter_acpi_mode(void)
{
	const u64 begin = clock_ns();

	if (!acpi.smi_port || !acpi.acpi_on || (inw(acpi.pm1_control[0]) & PM1_SCI_ON))
		return;
	outb(acpi.smi_port, acpi.acpi_on);
	while (!(inw(acpi.pm1_control[0]) & PM1_SCI_ON) && clock_ns() - begin < ACPI_MODE_WAIT_NS)
		cpu_relax();
}

static __noreturn void poweroff_or_halt(void)
{
	const u16 *port = acpi.pm1_control;
	const bool by_port = acpi.sleep_control.addr && acpi.sleep_control.space == ACPI_SPACE_IO;
	const bool known = sleep_known && (port[0] || sleep_memory || by_port);
	const u8 sleep = (u8)(sleep_type[0] << CONTROL_SLEEP_TYPE | CONTROL_SLEEP);

	console_drain();
	if (known && port[0])
		enter_acpi_mode();
	for (unsigned i = 0; known && i < ARRAY_LEN(acpi.pm1_control) && port[i]; i++) {
		const u16 kept = inw(port[i]) & (u16) ~(PM1_SLEEP | 7 << PM1_SLEEP_TYPE);

		outw(port[i], (u16)(kept | sleep_type[i] << PM1_SLEEP_TYPE | PM1_SLEEP));
	}
	if (known && sleep_memory)
		mmio_write8(sleep_memory, 0, sleep);
	if (known && by_port)
		outb((u16)acpi.sleep_control.addr, sleep);
	clock_delay_ns(known ? POWER_WAIT_NS : 0);
	print("The power stays on: %s. The machine can be switched off now.\n",
	      known ? "the machine does not react to ACPI's registers"
		    : "ACPI's tables do not tell how to switch it off");
	cpu_halt_forever();
}

bool machine_end_pages(void)
{
	return on_end == END_PAGE || on_end == END_CYCLE ||
	       (on_end == END_AUTO && !cpu_features.hypervisor);
}

void machine_end(unsigned code)
{
	irq_disable();
	if (on_end == END_REBOOT)
		machine_reset();
	if (machine_end_pages())
		pager_run(on_end == END_CYCLE);
	if (on_end != END_POWEROFF && (on_end != END_AUTO || !cpu_features.hypervisor))
		cpu_halt_forever();
	if (on_end == END_AUTO)
		outb(DEBUG_EXIT_PORT, (u8)code);
	poweroff_or_halt();
}
