/*
 * The end of a run. The host learns the verdict from QEMU's isa-debug-exit device; emulators without it are powered off
 * through the ports their chipsets are known for; a real machine halts and shows its last lines.
 *
 * The chipset ports are tried only under a hypervisor: on a real machine they may belong to anything.
 */
#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>

#include "arch/x86_64/cpuid.h"
#include "arch/x86_64/io.h"

enum { RESET_PORT = 0xcf9, RESET_SYSTEM = 0x02, RESET_CPU = 0x04, KEYBOARD_COMMAND = 0x64, KEYBOARD_RESET = 0xfe };

#define DEBUG_EXIT_PORT 0xf4 /* QEMU: -device isa-debug-exit,iobase=0xf4 */

/* PM1a control registers and the "S5" command of each: QEMU q35 and pc, old Bochs and QEMU, VirtualBox. */
static const struct {
	u16 port, value;
} poweroff[] = {{0x604, 0x2000}, {0xb004, 0x2000}, {0x4004, 0x3400}};

void cpu_halt_forever(void)
{
	for (;;)
		__asm__ volatile("cli; hlt" ::: "memory");
}

/*
 * The chipset's reset register (PCI Local Bus Specification-era chipsets from the 440FX on: Intel, "82371SB data sheet",
 * 1996, "Reset control register"), the keyboard controller's reset line, and if both are deaf a fault that cannot be delivered.
 */
void machine_reset(void)
{
	const struct __packed {
		u16 limit;
		u64 base;
	} no_idt = {0, 0};

	irq_disable();
	outb(RESET_PORT, RESET_SYSTEM);
	outb(RESET_PORT, RESET_SYSTEM | RESET_CPU);
	clock_delay_ns(100 * NS_PER_MS);
	outb(KEYBOARD_COMMAND, KEYBOARD_RESET);
	clock_delay_ns(100 * NS_PER_MS);
	__asm__ volatile("lidt %0; int3" ::"m"(no_idt));
	cpu_halt_forever();
}

void machine_end(unsigned code)
{
	irq_disable();
	if (cpuid_hypervisor()) {
		outb(DEBUG_EXIT_PORT, (u8)code);
		for (size_t i = 0; i < ARRAY_LEN(poweroff); i++)
			outw(poweroff[i].port, poweroff[i].value);
	}
	cpu_halt_forever();
}
