/*
 * PCI's two ways to a configuration, and what firmware left behind: SeaBIOS and OVMF let the disk
 * controller from which they booted write to memory, and QEMU's chipset has a watchdog that nobody
 * has halted. A screen may be anywhere.
 */
#ifndef ASHLAR_HOSTED

#include <arch/pci.h>

#include "arch/x86_64/acpi/acpi_devices.h"
#include "arch/x86_64/acpi/acpi_find.h"
#include "arch/x86_64/consoles/console_screen.h"
#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/cpu/leftovers.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/mtrr_cpu.h"
#include "arch/x86_64/cpu/pci.h"
#include "arch/x86_64/cpu/trap_frame.h"
#include "arch/x86_64/time/clock.h"
#include "arch/x86_64/traps/mce.h"
#include "arch/x86_64/traps/traps.h"
#include "boot/boot_info.h"
#include "kernel/console/console.h"
#include "tests/kernel/cpus.h"
#include "tests/kernel/test.h"

enum { VIRTIO = 0x1af4, DISPLAY = 0x03, BRIDGE = 0x06, SYSTEM = 0x08, USB = 0x0c03 };

/*
 * Virtio devices may, because they have drivers here. Bridges and I/O APICs stay as they are; of
 * many the bit is fixed.
 */
TEST(arch_leftovers, no_device_without_a_driver_may_write_to_memory)
{
	struct pci_place at = PCI_FIRST;

	for (; pci_next(&at); at.next++) {
		const u32 class = pci_read(&at, PCI_CLASS);

		if ((pci_read(&at, PCI_HEADER) >> 16 & 0x7f) == 0 && class >> 24 != DISPLAY &&
		    class >> 24 != BRIDGE && class >> 24 != SYSTEM && class >> 16 != USB &&
		    (pci_read(&at, PCI_ID) & 0xffff) != VIRTIO)
			EXPECT(!(pci_read(&at, PCI_COMMAND) & PCI_ENABLE_MASTER));
	}
}

/*
 * The first device without a driver is asked, and gets back what it had. On hardware its firmware's
 * work might go on between, and switches may be fixed.
 */
TEST(arch_leftovers, a_device_that_is_stopped_keeps_its_other_switches)
{
	static const unsigned decodes[] = {0, PCI_ENABLE_IO, PCI_ENABLE_MEMORY};
	const unsigned all = PCI_ENABLE_IO | PCI_ENABLE_MEMORY | PCI_ENABLE_MASTER;
	struct pci_place at = PCI_FIRST;
	u32 class = 0, before, set;

	if (!cpu_features.hypervisor)
		SKIP("a real device might write to memory");
	for (; pci_next(&at); at.next++) {
		class = pci_read(&at, PCI_CLASS);
		if (class >> 24 != DISPLAY && class >> 24 != BRIDGE && class >> 24 != SYSTEM &&
		    class >> 16 != USB && (pci_read(&at, PCI_ID) & 0xffff) != VIRTIO)
			break;
		class = 0;
	}
	if (!class)
		SKIP("no PCI device without a driver");
	before = pci_read(&at, PCI_COMMAND) & all;
	for (size_t i = 0; i < ARRAY_LEN(decodes); i++) {
		pci_command(&at, decodes[i] | PCI_ENABLE_MASTER, all);
		set = pci_read(&at, PCI_COMMAND) & all; /* a switch for what it lacks is fixed */
		EXPECT_EQ(leftover_stop(&at), !!(set & PCI_ENABLE_MASTER));
		EXPECT_EQ(pci_read(&at, PCI_COMMAND) & all, set & ~PCI_ENABLE_MASTER);
		EXPECT(!leftover_stop(&at));
	}
	pci_command(&at, before, all);
}

TEST(arch_leftovers, the_chipsets_watchdog_is_halted)
{
	const u16 base = tco_base();

	if (!base)
		SKIP("the chipset has no TCO");
	EXPECT(inw(base + TCO_CONTROL1) & TCO_HALT);
	outw(base + TCO_TIME, 0x3ff); /* ten minutes */
	outw(base + TCO_CONTROL1, inw(base + TCO_CONTROL1) & (u16)~TCO_HALT);
	outw(base + TCO_RELOAD, 1);
	EXPECT(tco_stop());
	EXPECT(inw(base + TCO_CONTROL1) & TCO_HALT);
	EXPECT(!tco_stop());
}

/* The boot page tables do not reach it, so nothing is drawn before it has a mapping of its own. */
TEST(arch_screen, a_screen_above_4_gib_waits_for_the_kernels_tables)
{
	const struct boot_framebuffer none = boot_info.framebuffer;

	for (const struct console *console = consoles; console; console = console->next)
		if (strcmp(console->name, "screen") == 0)
			SKIP("this machine has a screen");
	boot_info.framebuffer = (struct boot_framebuffer){.addr = TIB(32),
							  .pitch = 4096,
							  .width = 1024,
							  .height = 768,
							  .bpp = 32,
							  .type = BOOT_FB_RGB};
	EXPECT(console_screen_init());
	boot_info.framebuffer.addr = MIB(1);
	boot_info.framebuffer.width = 4; /* too small for a font */
	EXPECT(!console_screen_init());
	boot_info.framebuffer = none;
}

/* A sum over all functions of numbers, kinds and addresses. */
static u64 look(unsigned *functions)
{
	static const u8 registers[] = {PCI_ID, PCI_CLASS, PCI_HEADER, PCI_BAR0, PCI_CAPABILITIES};
	struct pci_place at = PCI_FIRST;
	u64 sum = 0;

	for (*functions = 0; pci_next(&at); at.next++, ++*functions)
		for (size_t i = 0; i < ARRAY_LEN(registers); i++)
			sum = sum * 31 + pci_read(&at, registers[i]) + at.next;
	return sum;
}

/* The register is not in use, before and meanwhile, so no memory changes its type. */
TEST(arch_mtrr, a_cpu_that_differs_takes_over_the_registers_of_cpu_0)
{
	const irq_flags_t flags = irq_save();
	struct mtrrs before, after;
	u32 last;
	bool known = mtrrs_read(&before), free;

	last = (u32)before.count - 1;
	free = known && before.count > 0 && !(before.variable[last].mask & 1 << 11);
	said_begin();
	if (free) {
		wrmsr(0x200 + 2 * last, 0x12345000 | MTRR_WRITE_BACK);
		mtrrs_take_over();
		mtrrs_read(&after);
	}
	mtrrs_report();
	said_end();
	irq_restore(flags);
	if (!free)
		SKIP("every MTRR is in use");
	EXPECT(memcmp(&after, &mtrrs_boot, sizeof(after)) == 0);
	EXPECT(!this_cpu()->arch.mtrrs_differ);
	EXPECT(said_says("*CPUs had other memory types (MTRRs) than CPU 0*") ||
	       said_says("*CPUs had no memory types*"));
}

/*
 * The NMI that polls may come before the handler has read its error, or in the middle of it. The
 * banks are written here, which emulators allow; the last of QEMU's ten is used.
 */
TEST(arch_mce, who_polls_leaves_errors_that_interrupt_to_the_handler)
{
	enum { BANK = 9, STATUS = 0x401 + 4 * BANK };
	const u64 uncorrected = 0xbULL << 60, signaled = 1ULL << 56;
	u64 caps = 0, left = 0, taken = 0;
	irq_flags_t flags;

	if (!rdmsr_safe(0x179, &caps) || (caps & 0xff) <= BANK || !(caps & 1 << 24))
		SKIP("no machine checks that CPUs recover from");
	flags = irq_save();
	if (!wrmsr_safe(STATUS, uncorrected | signaled | 0x9f)) {
		irq_restore(flags);
		SKIP("banks cannot be written");
	}
	mce_poll_all(NULL);
	rdmsr_safe(STATUS, &left);
	wrmsr_safe(STATUS, uncorrected | 0x9f);
	mce_poll_all(NULL);
	rdmsr_safe(STATUS, &taken);
	wrmsr_safe(STATUS, 0);
	irq_restore(flags);
	EXPECT_EQ(left, uncorrected | signaled | 0x9f);
	EXPECT_EQ(taken, 0);
}

static struct {
	u32 status;
	unsigned reads, at; /* of the status: so far, and before which the error comes */
} arrival;

#define SIGNALED (0xb1ULL << 56 | 0x9f)

static void step(struct trap_frame *frame)
{
	static const u8 rdmsr_insn[] = {0x0f, 0x32};

	if (memcmp((const void *)frame->rip, rdmsr_insn, sizeof(rdmsr_insn)) == 0 &&
	    (u32)frame->rcx == arrival.status && ++arrival.reads == arrival.at)
		wrmsr_safe(arrival.status, SIGNALED);
}

/* An error that interrupts another CPU takes the place of a corrected one, before each read. */
TEST(arch_mce, a_poll_leaves_an_error_that_interrupts_whenever_it_comes)
{
	const u32 usual = mce_turn_spins;
	irq_flags_t flags;
	u64 caps = 0, left;

	if (!rdmsr_safe(0x179, &caps) || (caps & 0xff) == 0)
		SKIP("no machine checks");
	arrival.status = 0x401 + 4 * ((u32)(caps & 0xff) - 1);
	if (!wrmsr_safe(arrival.status, SIGNALED))
		SKIP("banks cannot be written");
	mce_turn_spins = ~0U;
	for (arrival.at = 1; arrival.at < 8; arrival.at++) {
		flags = irq_save();
		arrival.reads = 0;
		wrmsr_safe(arrival.status, 1ULL << 63 | 0x9f);
		trap_set_handler(TRAP_DEBUG, step);
		__asm__ volatile("pushfq; orq %0, (%%rsp); popfq" ::"i"(RFLAGS_TRAP)
				 : "cc", "memory");
		mce_poll_all(NULL);
		__asm__ volatile("pushfq; andq %0, (%%rsp); popfq" ::"i"(~RFLAGS_TRAP)
				 : "cc", "memory");
		trap_set_handler(TRAP_DEBUG, NULL);
		rdmsr_safe(arrival.status, &left);
		wrmsr_safe(arrival.status, 0);
		irq_restore(flags);
		EXPECT_EQ(left, arrival.reads < arrival.at ? 0 : SIGNALED);
	}
	mce_turn_spins = usual;
}

enum { MCG_STATUS = 0x17a };
enum { OTHER = 0x10000 }; /* reads a bank, and is no CPU of the machine */

struct late_look {
	u32 bank, begun;
	u64 left; /* of the bank's status */
};

/* A corrected error, and a look as for the machine page. */
static void look_late(void *arg)
{
	struct late_look *look = arg;
	const u32 status = 0x401 + 4 * look->bank;
	const irq_flags_t flags = irq_save();

	wrmsr_safe(status, 1ULL << 63 | 0x9f);
	atomic_store_release(&look->begun, 1);
	mce_poll_all(NULL);
	rdmsr_safe(status, &look->left);
	irq_restore(flags);
}

/*
 * Siblings share banks. A CPU that finds another at one looks when it goes idle the next time; for
 * the machine page it waits for its turn.
 */
TEST(arch_mce, one_cpu_reads_at_a_time_and_no_look_is_lost)
{
	struct late_look late = {0};
	u32 *const seen = &this_cpu()->arch.tick_seen;
	const u32 usual = mce_turn_spins;
	u32 old, during;
	irq_flags_t flags;
	u64 caps = 0;

	if (!rdmsr_safe(0x179, &caps) || (caps & 0xff) == 0)
		SKIP("no machine checks");
	flags = irq_save();
	while (!atomic_cas(&mce_reader, 0, OTHER))
		cpu_relax();
	*seen = old = atomic_load_relaxed(&nmi_ticks) - 1;
	cpu_idle_look();
	during = *seen;
	atomic_store_release(&mce_reader, 0);
	while (*seen == old) { /* as often as it finds others, which look once in each tick */
		cpu_relax();
		cpu_idle_look();
	}
	irq_restore(flags);
	EXPECT_EQ(during, old);

	late.bank = (u32)(caps & 0xff) - 1;
	mce_turn_spins = ~0U;
	while (!atomic_cas(&mce_reader, 0, OTHER))
		cpu_relax();
	if (cpus_start_idle(look_late, &late, 1) > 0)
		CPUS_AWAIT(atomic_load_acquire(&late.begun));
	for (unsigned i = 0; i < 10000; i++)
		cpu_relax();
	atomic_store_release(&mce_reader, 0);
	cpus_await_work();
	mce_turn_spins = usual;
	EXPECT_EQ(late.left, 0);
}

static u32 handles, released;

static void release_late(void *unused)
{
	CPUS_AWAIT(atomic_load_acquire(&handles));
	for (unsigned i = 0; i < 1 << 16; i++)
		cpu_relax();
	atomic_store_relaxed(&released, 1);
	atomic_store_release(&mce_reader, 0);
}

#define CORRECTED (1ULL << 63 | 0x9f)

/*
 * The bank has a corrected error while this CPU takes a machine check. Returns what is left there;
 * *counted: how many errors were.
 */
static u64 handle(u32 status, u32 spins, u64 *counted)
{
	const u64 before = atomic_load_relaxed(&mce_totals.corrected);
	const u32 usual = mce_turn_spins;
	u64 left = 0;

	mce_turn_spins = spins;
	wrmsr_safe(MCG_STATUS, 1); /* the interrupted code can go on */
	wrmsr_safe(status, CORRECTED);
	atomic_store_release(&handles, 1);
	mce_handle(NULL);
	mce_turn_spins = usual;
	rdmsr_safe(status, &left);
	*counted = atomic_load_relaxed(&mce_totals.corrected) - before;
	return left;
}

/*
 * All CPUs may take one machine check. Each waits for the CPU that reads a bank, but not for ever,
 * and not for its own poll that was interrupted, which takes the error afterwards.
 */
TEST(arch_mce, of_a_broadcast_one_cpu_reads_at_a_time)
{
	u64 caps = 0, hung, hung_counted, own, own_counted, polled, late_counted;
	u32 status, reader;
	irq_flags_t flags;

	if (!rdmsr_safe(0x179, &caps) || (caps & 0xff) == 0)
		SKIP("no machine checks");
	status = 0x401 + 4 * ((u32)(caps & 0xff) - 1);
	flags = irq_save();
	while (!atomic_cas(&mce_reader, 0, OTHER))
		cpu_relax();
	if (!wrmsr_safe(MCG_STATUS, 1) || !wrmsr_safe(status, CORRECTED)) {
		atomic_store_release(&mce_reader, 0);
		irq_restore(flags);
		SKIP("banks cannot be written");
	}
	hung = handle(status, 1000, &hung_counted);
	reader = atomic_load_relaxed(&mce_reader);
	atomic_store_relaxed(&mce_reader, cpu_id() + 1);
	own = handle(status, ~0U, &own_counted);
	polled = atomic_load_relaxed(&mce_totals.corrected); /* an NMI may poll first */
	atomic_store_release(&mce_reader, 0);
	mce_poll_all(NULL);
	polled = atomic_load_relaxed(&mce_totals.corrected) - polled;
	irq_restore(flags);
	EXPECT(hung == 0 && hung_counted == 1 && reader == OTHER);
	EXPECT(own == CORRECTED && own_counted == 0 && polled == 1);

	while (!atomic_cas(&mce_reader, 0, OTHER))
		cpu_relax();
	released = 0;
	handles = 0;
	if (cpus_start_idle(release_late, NULL, 1) == 0) {
		handles = 1;
		release_late(NULL);
	}
	flags = irq_save();
	EXPECT_EQ(handle(status, ~0U, &late_counted), 0);
	EXPECT_EQ(atomic_load_relaxed(&released), 1);
	EXPECT_EQ(late_counted, 1);
	irq_restore(flags);
	cpus_await_work();
}

/* Bank 0 may be firmware's. */
TEST(arch_mce, banks_that_are_off_are_switched_on)
{
	enum { MSR_MCG_CAP = 0x179, MSR_MC_CTL = 0x400, BANKS = 0xff, MCA = 1 << 14 };
	u64 caps = 0, before = 0, after = 0;

	if (cpuid(1, 0).edx & MCA)
		rdmsr_safe(MSR_MCG_CAP, &caps);
	for (u32 bank = 1; bank < (caps & BANKS); bank++) {
		rdmsr_safe(MSR_MC_CTL + 4 * bank, &before);
		wrmsr_safe(MSR_MC_CTL + 4 * bank, 0);
		mce_init_cpu();
		rdmsr_safe(MSR_MC_CTL + 4 * bank, &after);
		EXPECT_EQ(after, before);
	}
}

TEST(arch_leftovers, a_tsc_that_firmware_moved_is_named)
{
	const cpu_t other = cpus_find_other();
	const u64 hour = clock_tsc_hz() * 3600;
	struct arch_percpu *arch;

	SKIP_ON_ONE_CPU();
	arch = &cpu_data(other)->arch;
	said_begin();
	clock_report_tscs();
	said_end();
	if (said_says("*TSC*"))
		SKIP("the TSCs of this machine differ");
	arch->tsc_adjust -= 5000;
	arch->tsc_at_start -= hour;
	said_begin();
	clock_report_tscs();
	said_end();
	arch->tsc_adjust += 5000;
	arch->tsc_at_start += hour;
	EXPECT(said_says("*(TSC_ADJUST) of 1 CPUs, of CPU * by -5000, of CPU 0 by 0:*"));
	EXPECT(said_says("*the TSCs of 1 CPUs differ from CPU 0's, that of CPU * by -* or more:*"));
}

/* A machine may have the memory alone. */
TEST(arch_pci, memory_says_what_the_ports_say)
{
	const struct acpi_table *mcfg = acpi_get(ACPI_MCFG);
	u32 buses = 0;
	const phys_t base = mcfg ? acpi_mcfg_base(mcfg, &buses) : 0;
	unsigned by_ports, by_memory;
	u64 ports, memory;

	if (!base)
		SKIP("no MCFG");
	ports = look(&by_ports);
	pci_use_memory(base, buses);
	memory = look(&by_memory);
	if (pci_has_ports()) {
		pci_use_memory(0, 0);
		EXPECT(memory == ports);
	}
	EXPECT(by_memory > 0);
	EXPECT_EQ(by_memory, by_ports);
}

#endif
