/*
 * The end of a run. The host learns the verdict from QEMU's isa-debug-exit device; emulators without it are powered off
 * through the ports their chipsets are known for; a real machine halts and shows its last lines.
 *
 * The chipset ports are tried only under a hypervisor: on a real machine they may belong to anything.
 */
#include <arch/console.h>
#include <arch/cpu.h>

#include "arch/x86_64/cpuid.h"
#include "arch/x86_64/io.h"

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
