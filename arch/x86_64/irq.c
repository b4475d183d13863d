/*
 * Device interrupts: pins of I/O APICs, each with an entry that says which vector of which CPU it raises.
 *
 *   line (GSI) --gsi_base--> I/O APIC, pin --entry--> vector --irqs[]--> handler
 *
 * Every pin is masked at start-up, whatever firmware left, and opened by irq_register() alone. Destinations are physical APIC IDs
 * of 8 bits, so a CPU with a larger one cannot take device interrupts.
 *
 * Source: Intel, "82093AA I/O Advanced Programmable Interrupt Controller", 1996, 3.2.
 */
#include <arch/irq.h>

#include <arch/atomic.h>
#include <arch/cpu.h>
#include <arch/mmio.h>

#include "arch/x86_64/apic.h"
#include "arch/x86_64/traps.h"
#include "kernel/call.h"
#include "kernel/percpu.h"
#include "mm/mm.h"

enum { IO_APIC_SELECT = 0, IO_APIC_DATA = 0x10, REG_VERSION = 1, REG_PINS = 0x10 };
enum { PIN_MASKED = 1 << 16, PIN_LEVEL = 1 << 15, PIN_LOW = 1 << 13, PIN_MODE = 7 << 8, PIN_MODE_SMI = 2 << 8, PIN_MODE_NMI = 4 << 8 };
enum { IO_APICS_MAX = 32, VECTOR_FIRST = 0x30, VECTORS = 0x80 };

static struct io_apic {
	volatile void __iomem *regs;
	u32 gsi_base, pins;
} io_apics[IO_APICS_MAX];
static unsigned io_apic_count;

static struct irq {
	irq_fn *fn; /* NULL: free */
	void *arg;
	u32 gsi;
} irqs[VECTORS];

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

/* A pin that raises SMIs is firmware's and stays. */
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
	io_apic_count += io_apic_count + 1 < IO_APICS_MAX; /* one too many is masked like the others, and not kept */
}

static const struct io_apic *io_apic_of(u32 gsi)
{
	for (unsigned i = 0; i < io_apic_count; i++)
		if (gsi >= io_apics[i].gsi_base && gsi - io_apics[i].gsi_base < io_apics[i].pins)
			return &io_apics[i];
	return NULL;
}

u32 io_apic_lines(void)
{
	const struct io_apic *io = io_apic_of(0);

	return io ? io->pins : 0;
}

bool io_apic_route_nmi(u32 gsi)
{
	const struct io_apic *io = io_apic_of(gsi);
	const u32 id = apic_id();

	if (!io || id > XAPIC_ID_MAX)
		return false;
	io_write(io, REG_PINS + 2 * (gsi - io->gsi_base) + 1, id << 24);
	io_write(io, REG_PINS + 2 * (gsi - io->gsi_base), PIN_MODE_NMI);
	return true;
}

static void handle_irq(struct trap_frame *frame)
{
	const struct irq *irq = &irqs[frame->vector - VECTOR_FIRST];
	irq_fn *fn = atomic_load_acquire(&irq->fn);

	if (fn)
		fn(irq->arg);
	apic_eoi();
}

static struct irq *irq_find(u32 gsi)
{
	for (unsigned i = 0; i < VECTORS; i++)
		if (irqs[i].fn && irqs[i].gsi == gsi)
			return &irqs[i];
	return NULL;
}

int irq_register(u32 gsi, enum irq_trigger trigger, irq_fn *fn, void *arg)
{
	const struct io_apic *io = io_apic_of(gsi);
	const u32 id = this_cpu()->arch.apic_id;
	unsigned free = 0;

	if (!io || id > XAPIC_ID_MAX)
		return -ENODEV;
	if (irq_find(gsi))
		return -EBUSY;
	while (free < VECTORS && irqs[free].fn)
		free++;
	if (free == VECTORS)
		return -ENOSPC;
	irqs[free].arg = arg;
	irqs[free].gsi = gsi;
	atomic_store_release(&irqs[free].fn, fn);
	trap_set_handler(VECTOR_FIRST + free, handle_irq);
	io_write(io, REG_PINS + 2 * (gsi - io->gsi_base) + 1, id << 24);
	io_write(io, REG_PINS + 2 * (gsi - io->gsi_base),
		 (VECTOR_FIRST + free) | (trigger == IRQ_LEVEL ? PIN_LEVEL | PIN_LOW : 0));
	return 0;
}

static void nothing(void *arg)
{
	(void)arg;
}

void irq_unregister(u32 gsi)
{
	const struct io_apic *io = io_apic_of(gsi);
	struct irq *irq = irq_find(gsi);

	if (!io || !irq)
		return;
	io_write(io, REG_PINS + 2 * (gsi - io->gsi_base), PIN_MASKED);
	call_cpus(&cpus_online, nothing, NULL); /* every CPU has answered with interrupts on: what was running has returned */
	atomic_store_release(&irq->fn, NULL);
}
