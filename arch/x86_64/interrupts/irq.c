/*
 * I/O APICs. Interrupts of devices arrive at their pins. Every pin is masked at start-up, whatever
 * firmware left, and only the watchdog's is opened: drivers of this kernel poll.
 *
 *   line (GSI) --gsi_base--> I/O APIC, pin --entry--> vector or NMI, on one CPU
 *
 * Destinations are physical APIC IDs of 8 bits. `lock` guards the two registers through which all
 * other registers of an I/O APIC are reached.
 *
 * Source: Intel, "82093AA I/O Advanced Programmable Interrupt Controller", 1996, 3.2.
 */
#include <arch/mmio.h>

#include "arch/x86_64/interrupts/irq.h"
#include "kernel/core/lock.h"
#include "mm/mm.h"

enum { IO_APIC_SELECT = 0, IO_APIC_DATA = 0x10, REG_VERSION = 1, REG_PINS = 0x10 };
enum { PIN_MODE = 7 << 8, PIN_MODE_SMI = 2 << 8, IO_APICS_MAX = 32 };

static struct io_apic {
	volatile void __iomem *regs;
	u32 gsi_base, pins;
} io_apics[IO_APICS_MAX];
static unsigned io_apic_count;

static struct spinlock lock = SPINLOCK_INIT(LOCK_LEAF);

static u32 io_read(const struct io_apic *io, u32 reg)
{
	mmio_write32(io->regs, IO_APIC_SELECT, reg);
	return mmio_read32(io->regs, IO_APIC_DATA);
}

static void io_write(const struct io_apic *io, u32 reg, u32 value)
{
	mmio_write32(io->regs, IO_APIC_SELECT, reg);
	mmio_write32(io->regs, IO_APIC_DATA, value);
}

/*
 * Add an I/O APIC and mask its pins. A pin that raises SMIs belongs to firmware and is left as it
 * is.
 */
void io_apic_add(phys_t phys, u32 gsi_base)
{
	struct io_apic *io = &io_apics[io_apic_count];
	volatile void __iomem *regs = mmio_map(phys, 32);

	if (!regs)
		return;
	*io = (struct io_apic){.regs = regs, .gsi_base = gsi_base};
	io->pins = (io_read(io, REG_VERSION) >> 16 & 0xff) + 1;
	for (u32 pin = 0; pin < io->pins; pin++)
		if ((io_read(io, REG_PINS + 2 * pin) & PIN_MODE) != PIN_MODE_SMI)
			io_write(io, REG_PINS + 2 * pin, PIN_MASKED);
	/* an I/O APIC beyond the table's end is masked like the others and forgotten */
	io_apic_count += io_apic_count + 1 < IO_APICS_MAX;
}

static const struct io_apic *io_apic_of(u32 gsi)
{
	for (unsigned i = 0; i < io_apic_count; i++)
		if (gsi >= io_apics[i].gsi_base && gsi - io_apics[i].gsi_base < io_apics[i].pins)
			return &io_apics[i];
	return NULL;
}

/* First register of the entry of `gsi`. */
static u32 entry_of(const struct io_apic *io, u32 gsi)
{
	return REG_PINS + 2 * (gsi - io->gsi_base);
}

bool io_apic_set(u32 gsi, u32 low)
{
	const struct io_apic *io = io_apic_of(gsi);
	const u32 id = apic_id();

	if (!io || id > XAPIC_ID_MAX)
		return false;
	spin_lock(&lock);
	io_write(io, entry_of(io, gsi) + 1, id << 24);
	io_write(io, entry_of(io, gsi), low);
	spin_unlock(&lock);
	return true;
}
