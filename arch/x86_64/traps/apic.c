/*
 * Local APICs; see apic.h.
 *
 * The kernel itself uses only interprocessor interrupts and the timer. It masks the legacy PICs,
 * LINT0 (to which they are wired) and all pins of the I/O APICs, which firmware may have left
 * routed. A program opens the pins that it wants (irq.c).
 *
 * Memory order: in xAPIC mode a write to the ICR is a store to uncached memory and stays behind
 * earlier stores. The WRMSR of x2APIC mode is not ordered, so the message could overtake the
 * mailbox it announces. "MFENCE;LFENCE" therefore precedes it (Intel SDM vol. 3A, 11.12.3 "MSR
 * Access in x2APIC Mode").
 */
#include "arch/x86_64/traps/apic.h"

#include <arch/barrier.h>
#include <arch/cpu.h>
#include <arch/memory.h>
#include <arch/mmio.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/traps/apic_setup.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/context.h"
#include "kernel/core/printk.h"
#include "mm/mm.h"

enum {
	APIC_ID = 0x20,
	APIC_EOI = 0xb0,
	APIC_ISR = 0x100,
	APIC_IRR = 0x200,
	APIC_ESR = 0x280,
	APIC_ICR = 0x300,
	APIC_ICR_HIGH = 0x310,
	APIC_TIMER_COUNT = 0x380,
	APIC_TIMER_LEFT = 0x390,
	APIC_TIMER_DIVIDE = 0x3e0,
};

enum {
	ICR_PENDING = 1 << 12,
	CPUID_1_EDX_APIC = 1 << 9,
};

#define MSR_X2APIC        0x800
#define MSR_X2APIC_ICR    0x830
#define APIC_BASE_ENABLE  (1ULL << 11)
#define APIC_BASE_EXTD    (1ULL << 10)
#define APIC_BASE_ADDRESS 0x000ffffffffff000ULL

enum { PIC1_DATA = 0x21, PIC2_DATA = 0xa1 };
enum { SEND_POLLS = 1000000 }; /* a second or more; an ICR is busy for microseconds */

static enum apic_mode mode;
static volatile void __iomem *regs; /* xAPIC mode */

int apic_nmi_pin = -1;

static bool x2apic_asked;
OPTION_BOOL(x2apic, x2apic_asked,
	    "enter x2APIC mode; off: as firmware left it, and for CPUs with IDs above 254",
	    .boot_only = true);

static u32 apic_read(unsigned reg)
{
	return mode == APIC_X2APIC ? (u32)rdmsr(MSR_X2APIC + reg / 16) : mmio_read32(regs, reg);
}

static void apic_write(unsigned reg, u32 value)
{
	if (mode == APIC_X2APIC)
		wrmsr(MSR_X2APIC + reg / 16, value);
	else
		mmio_write32(regs, reg, value);
}

enum apic_mode apic_mode(void)
{
	return mode;
}

void apic_timer_once(u32 ticks)
{
	enum { DIVIDE_BY_1 = 0xb };

	apic_write(APIC_TIMER_DIVIDE, DIVIDE_BY_1);
	apic_write(APIC_LVT_TIMER, VECTOR_TIMER); /* one-shot, unmasked */
	apic_write(APIC_TIMER_COUNT, ticks);
}

u32 apic_timer_left(void)
{
	return apic_read(APIC_TIMER_LEFT);
}

volatile void __iomem *apic_registers(void)
{
	return mode == APIC_XAPIC ? regs : NULL;
}

void apic_silence_others(void)
{
	const u32 command = ICR_ALL_BUT_SELF | ICR_INIT | ICR_ASSERT;
	u64 base;

	if (!(cpuid(1, 0).edx & CPUID_1_EDX_APIC))
		return;
	base = rdmsr(MSR_APIC_BASE);
	if (base & APIC_BASE_EXTD) {
		wrmsr(MSR_X2APIC_ICR, command);
	} else if ((base & APIC_BASE_ENABLE) && (base & APIC_BASE_ADDRESS) < EARLY_PHYS_LIMIT) {
		volatile void __iomem *early =
			(volatile void __iomem *)phys_to_virt(base & APIC_BASE_ADDRESS);

		mmio_write32(early, APIC_ICR_HIGH, 0);
		mmio_write32(early, APIC_ICR, command);
	}
}

enum apic_mode apic_probe(void)
{
	u64 base;

	if (!(cpuid(1, 0).edx & CPUID_1_EDX_APIC))
		return APIC_NONE;
	base = rdmsr(MSR_APIC_BASE);
	if (!(base & APIC_BASE_ENABLE)) {
		base |= APIC_BASE_ENABLE;
		wrmsr(MSR_APIC_BASE, base);
	}
	if (base & APIC_BASE_EXTD) {
		mode = APIC_X2APIC;
		return mode;
	}
	regs = mmio_map(base & APIC_BASE_ADDRESS, PAGE_SIZE);
	if (regs)
		mode = APIC_XAPIC;
	return mode;
}

void apic_choose_mode(u32 highest_id, bool opted_out)
{
	const struct apic_facts facts = {.left = mode,
					 .available = cpu_features.x2apic,
					 .opted_out = opted_out,
					 .highest_id = highest_id};

	mode = apic_mode_for(&facts, x2apic_asked); /* entered by apic_init_cpu() */
	if (facts.left == APIC_XAPIC && facts.available && opted_out) {
		if (mode == APIC_X2APIC)
			pr_warn("APIC: x2APIC mode by x2apic=on, although firmware opts out of it");
		else
			pr_info("APIC: xAPIC mode, because firmware opts out of x2APIC");
	}
}

u32 apic_id(void)
{
	if (mode == APIC_NONE)
		return cpuid(1, 0).ebx >> 24;
	return mode == APIC_X2APIC ? apic_read(APIC_ID) : apic_read(APIC_ID) >> 24;
}

/*
 * Firmware may have left interrupts in service, which would hold back the kernel's. Acknowledge
 * each of them; there are at most 256.
 */
static void finish_in_service(void)
{
	for (unsigned n = 0; n < 256; n++) {
		u32 any = 0;

		for (unsigned word = 0; word < 8; word++)
			any |= apic_read(APIC_ISR + word * 16);
		if (!any)
			return;
		apic_eoi();
	}
}

void apic_init_cpu(void)
{
	const struct apic_access access = {apic_read, apic_write};

	if (mode == APIC_NONE)
		return;
	if (mode == APIC_X2APIC)
		wrmsr(MSR_APIC_BASE, rdmsr(MSR_APIC_BASE) | APIC_BASE_ENABLE | APIC_BASE_EXTD);
	apic_set_up(&access, apic_nmi_pin);
	finish_in_service();
	apic_write(APIC_ESR, 0);
}

void apic_eoi(void)
{
	apic_write(APIC_EOI, 0);
}

/* The bit of `vector` in an array of 256 bits, which lies in 32-bit registers 16 bytes apart. */
static bool read_bit(unsigned first, unsigned vector)
{
	return mode != APIC_NONE && (apic_read(first + vector / 32 * 16) >> vector % 32 & 1);
}

bool apic_requested(unsigned vector)
{
	return read_bit(APIC_IRR, vector);
}

bool apic_in_service(unsigned vector)
{
	return read_bit(APIC_ISR, vector);
}

static bool xapic_idle(const volatile void __iomem *at)
{
	for (unsigned polls = 0; polls < SEND_POLLS; polls++) {
		if (!(mmio_read32(at, APIC_ICR) & ICR_PENDING))
			return true;
		cpu_relax();
	}
	return false;
}

/*
 * A message takes two register writes. Interrupts are off, because an interrupt between the writes
 * might send a message of its own.
 */
bool xapic_send(volatile void __iomem *at, u32 to, u32 command, bool nested)
{
	irq_flags_t flags = irq_save();
	const bool idle = xapic_idle(at);
	const u32 high = nested ? mmio_read32(at, APIC_ICR_HIGH) : 0;

	if (idle) {
		mmio_write32(at, APIC_ICR_HIGH, to << 24);
		mmio_write32(at, APIC_ICR, command);
	}
	if (nested) {
		xapic_idle(at); /* the interrupted sender has already polled */
		mmio_write32(at, APIC_ICR_HIGH, high);
	}
	irq_restore(flags);
	return idle;
}

bool apic_send(u32 to, u32 command)
{
	if (mode == APIC_XAPIC)
		return xapic_send(regs, to, command, context_in(CONTEXT_NMIS));
	if (mode == APIC_NONE)
		return false;
	__asm__ volatile("mfence; lfence" ::: "memory");
	wrmsr(MSR_X2APIC_ICR, (u64)to << 32 | command);
	return true;
}

void pic_mask_all(void)
{
	outb(PIC1_DATA, 0xff);
	outb(PIC2_DATA, 0xff);
}
