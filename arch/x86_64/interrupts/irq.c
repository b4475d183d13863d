/*
 * Device interrupts. They arrive at pins of I/O APICs; each pin has an entry with the vector and
 * the CPU that it interrupts.
 *
 *   line (GSI) --gsi_base--> I/O APIC, pin --entry--> vector --irqs[]--> handler
 *
 * Every pin is masked at start-up, whatever firmware left, and only irq_register() opens one.
 * Destinations are physical APIC IDs of 8 bits, so a CPU with a larger ID cannot take device
 * interrupts.
 *
 * irq_unregister() ends a line in this order:
 *   1. The pin is masked. Its last interrupt may still wait in the destination's local APIC.
 *   2. `fn` becomes NULL. An interrupt delivered from now on calls no handler.
 *   3. The destination is asked whether the vector is in service there. The bit is set before the
 *      handler's first instruction and cleared after its last. The answer "no" therefore means that
 *      a handler that had loaded the old `fn` has returned from it. Because of step 2 this holds
 *      even if the interrupt is still waiting when the destination answers.
 *
 * An interrupt may wait so long that its vector belongs to another line by then. A CPU that is not
 * that line's ignores it. On the registering CPU this cannot happen, because vectors are given out
 * in turn and never one of which an interrupt waits there.
 *
 * `lock` guards the table and the two registers through which all other registers of an I/O APIC
 * are reached. Handlers take no lock. They read `fn`, `cpu` and `arg`, which change only while `fn`
 * is NULL.
 *
 * Sources: Intel, "82093AA I/O Advanced Programmable Interrupt Controller", 1996, 3.2; Intel SDM
 * vol. 3A, 11.8.4 "Interrupt Acceptance for Fixed Interrupts" (requested and in-service bits).
 */
#include <arch/irq.h>

#include <arch/atomic.h>
#include <arch/cpu.h>
#include <arch/mmio.h>

#include "arch/x86_64/interrupts/irq.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/context.h"
#include "kernel/core/lock.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/wait.h"
#include "mm/mm.h"

enum { IO_APIC_SELECT = 0, IO_APIC_DATA = 0x10, REG_VERSION = 1, REG_PINS = 0x10 };
enum { PIN_LEVEL = 1 << 15, PIN_LOW = 1 << 13, PIN_MODE = 7 << 8, PIN_MODE_SMI = 2 << 8 };
enum { IO_APICS_MAX = 32, VECTOR_FIRST = 0x30, VECTORS = 0x80 };

static struct io_apic {
	volatile void __iomem *regs;
	u32 gsi_base, pins;
} io_apics[IO_APICS_MAX];
static unsigned io_apic_count;

static struct irq {
	irq_fn *fn; /* NULL: no line, or a line that is being unregistered */
	void *arg;
	cpu_t cpu; /* where its interrupts arrive */
	u32 gsi;
	bool taken;
} irqs[VECTORS];
static unsigned last_taken;

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

u32 io_apic_entry(u32 gsi)
{
	const struct io_apic *io = io_apic_of(gsi);
	u32 entry;

	if (!io)
		return 0;
	spin_lock(&lock);
	entry = io_read(io, entry_of(io, gsi));
	spin_unlock(&lock);
	return entry;
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

static void handle_irq(struct trap_frame *frame)
{
	const struct irq *irq = &irqs[frame->vector - VECTOR_FIRST];
	irq_fn *fn = atomic_load_acquire(&irq->fn);

	if (fn && atomic_load_relaxed(&irq->cpu) == cpu_id())
		fn(irq->arg);
	apic_eoi();
}

static struct irq *irq_find(u32 gsi)
{
	for (unsigned i = 0; i < VECTORS; i++)
		if (irqs[i].taken && irqs[i].gsi == gsi)
			return &irqs[i];
	return NULL;
}

/*
 * A vector for a line on this CPU: the next one that no line has and of which no interrupt waits or
 * is in service here.
 */
static struct irq *irq_find_free(void)
{
	for (unsigned n = 1; n <= VECTORS; n++) {
		const unsigned i = (last_taken + n) % VECTORS;

		if (!irqs[i].taken && !apic_requested(VECTOR_FIRST + i) &&
		    !apic_in_service(VECTOR_FIRST + i)) {
			last_taken = i;
			return &irqs[i];
		}
	}
	return NULL;
}

/* Does the line's pin raise NMIs (the watchdog's, nmi_tick.c) or SMIs (firmware's)? */
static bool is_kept(const struct io_apic *io, u32 gsi)
{
	const u32 mode = io_read(io, entry_of(io, gsi)) & PIN_MODE;

	return mode == PIN_MODE_NMI || mode == PIN_MODE_SMI;
}

static int register_locked(const struct io_apic *io, const struct irq *line,
			   enum irq_trigger trigger)
{
	const u32 entry = entry_of(io, line->gsi),
		  level = trigger == IRQ_LEVEL ? PIN_LEVEL | PIN_LOW : 0;
	struct irq *irq;
	u32 vector;

	if (irq_find(line->gsi) || is_kept(io, line->gsi))
		return -EBUSY;
	irq = irq_find_free();
	if (!irq)
		return -ENOSPC;
	irq->taken = true;
	irq->gsi = line->gsi;
	irq->arg = line->arg;
	atomic_store_relaxed(&irq->cpu, line->cpu);
	atomic_store_release(&irq->fn, line->fn);
	vector = VECTOR_FIRST + (u32)(irq - irqs);
	trap_set_handler(vector, handle_irq);
	io_write(io, entry + 1, this_cpu()->arch.apic_id << 24);
	io_write(io, entry, vector | level);
	return 0;
}

int irq_register(u32 gsi, enum irq_trigger trigger, irq_fn *fn, void *arg)
{
	const struct irq line = {.fn = fn, .arg = arg, .cpu = cpu_id(), .gsi = gsi};
	const struct io_apic *io = io_apic_of(gsi);
	int err;

	context_assert(CONTEXT_ORDINARY);
	if (!io || this_cpu()->arch.apic_id > XAPIC_ID_MAX)
		return -ENODEV;
	spin_lock(&lock);
	err = register_locked(io, &line, trigger);
	spin_unlock(&lock);
	return err;
}

struct question {
	u32 vector;
	bool in_service;
};

static void answer(void *arg)
{
	struct question *q = arg;

	q->in_service = apic_in_service(q->vector);
}

/* Wait until no interrupt of `irq`, whose fn is NULL, is being handled. */
static void wait_for_handler(const struct irq *irq)
{
	struct question q = {.vector = VECTOR_FIRST + (u32)(irq - irqs)};
	struct wait wait = wait_begin(WAIT_DRAIN, "the end of an interrupt handler");

	if (irq->cpu == cpu_id()) {
		answer(&q);
		ASSERT(!q.in_service, "irq_unregister(%u) is called in the handler of that line",
		       irq->gsi);
		return;
	}
	for (;;) {
		call_cpu(irq->cpu, answer, &q);
		if (!q.in_service)
			return;
		wait_spin(&wait, irq->cpu);
	}
}

/*
 * Mask the pin and set fn to NULL, so that no further interrupt calls the handler. Returns the
 * line's slot, still taken, or NULL if the line is not registered.
 */
static struct irq *silence(const struct io_apic *io, u32 gsi)
{
	struct irq *irq = irq_find(gsi);

	if (!irq || !irq->fn)
		return NULL;
	io_write(io, entry_of(io, gsi), PIN_MASKED);
	io_read(io, entry_of(io, gsi)); /* makes sure that the write has arrived */
	atomic_store_release(&irq->fn, NULL);
	return irq;
}

void irq_unregister(u32 gsi)
{
	const struct io_apic *io = io_apic_of(gsi);
	struct irq *irq;

	context_assert(CONTEXT_ORDINARY);
	if (!io)
		return;
	spin_lock(&lock);
	irq = silence(io, gsi);
	spin_unlock(&lock);
	if (!irq)
		return;
	wait_for_handler(irq);
	spin_lock(&lock);
	irq->taken = false;
	spin_unlock(&lock);
}
