/*
 * NMIs; see nmi.h. Their sources are
 *
 *   another CPU's panic       this CPU halts for good
 *   cpu_where()               this CPU reports where it is, and goes on (sample.c)
 *   the HPET, once a second   watchdog_tick(), on the boot CPU
 *   the board                 memory parity or an expansion card (port 0x61): a panic that says so
 *
 * An NMI may interrupt a CPU anywhere: idle, holding locks, in the allocator. The code here
 * therefore takes no lock and does not look at struct pages. Printing waits for the lock of the
 * output for a bounded time and then goes on without it (kernel/core/printk.c).
 *
 * Sources: Intel SDM vol. 3A, 6.7 "Nonmaskable interrupt"; Intel, "I/O Controller Hub 10
 * Datasheet", 2008, 13.7.1 "NMI_SC", 13.5.6 "Redirection table"; Intel, "IA-PC HPET Specification"
 * 1.0a, 2004-10, 2.3.8 "Timer N configuration".
 */
#include "arch/x86_64/interrupts/nmi.h"

#include <arch/atomic.h>
#include <arch/cpu.h>
#include <arch/mmio.h>
#include <arch/percpu.h>

#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/interrupts/irq.h"
#include "arch/x86_64/interrupts/sample.h"
#include "arch/x86_64/time/clock_sources.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/watchdog.h"

enum { NMI_STATUS = 0x61, NMI_PARITY = 0x80, NMI_CHANNEL = 0x40 };
enum { HPET_TIMER0 = 0x100, TIMER_SIZE = 0x20 };
enum { CONFIG_LEGACY = 2, TIMERS_SHIFT = 8, TIMERS_MASK = 0x1f };
enum { TIMER_CONFIG = 0x00, TIMER_ROUTES = 0x04, TIMER_COMPARATOR = 0x08 };
enum {
	TIMER_LEVEL = 1 << 1,
	TIMER_ENABLE = 1 << 2,
	TIMER_PERIODIC = 1 << 3,
	TIMER_CAN_PERIODIC = 1 << 4
};
enum {
	TIMER_SET_VALUE = 1 << 6,
	TIMER_32BIT = 1 << 8,
	TIMER_ROUTE_SHIFT = 9,
	TIMER_ROUTE_MASK = 0x1f << 9,
	TIMER_MESSAGE = 1 << 14
};

#define FS_PER_S 1000000000000000ULL

static bool stopping, ticking;
static u8 board_stuck; /* bits of port 61h that were set at start and could not be cleared */
static u32 stopped, unknown;

const char *nmi_board_says(u8 status, u8 stuck)
{
	if (status == 0xff) /* no such port */
		return NULL;
	if (status & ~stuck & NMI_PARITY)
		return "the board reports a memory parity error or a fatal system error (SERR)";
	return status & ~stuck & NMI_CHANNEL ? "an expansion card reports an error (IOCHK)" : NULL;
}

/*
 * Clear errors latched before start by switching their source off and on. A bit that stays set is
 * ignored from now on.
 */
static void clear_board(void)
{
	enum { WRITABLE = 0x0f, PARITY_OFF = 1 << 2, CHANNEL_OFF = 1 << 3 };
	const u8 status = inb(NMI_STATUS);

	if (!nmi_board_says(status, 0))
		return;
	outb(NMI_STATUS, (status & WRITABLE) | PARITY_OFF | CHANNEL_OFF);
	outb(NMI_STATUS, status & WRITABLE);
	board_stuck = inb(NMI_STATUS) & (NMI_PARITY | NMI_CHANNEL);
	pr_warn("NMI: port 61h said %02x at start: %s%s", status, nmi_board_says(status, 0),
		board_stuck ? "; the bit cannot be cleared and is ignored from now on" : "");
}

/*
 * One NMI may come from the board, from the watchdog and from cpu_where() at once, so the board's
 * status is read every time.
 */
static void handle_board_or_tick(bool answered)
{
	const u8 status = inb(NMI_STATUS);
	const char *words = nmi_board_says(status, board_stuck);

	if (words)
		panic("NMI: %s; port 61h says %02x", words, status);
	if (answered)
		return;
	if (ticking && cpu_id() == 0)
		watchdog_tick();
	else if (atomic_fetch_add(&unknown, 1) == 0)
		pr_warn("NMI without a known reason on CPU %u, port 61h says %02x; further ones "
			"are not reported",
			cpu_id(), status);
}

static void handle_nmi(struct trap_frame *frame)
{
	if (atomic_load_acquire(&stopping)) {
		if (panic_is_ours())
			/* a tick, or another CPU's cpu_where(), must not stop the panicking CPU */
			return;
		atomic_store_relaxed(&this_cpu()->arch.stopped, 1);
		atomic_fetch_add(&stopped, 1);
		cpu_halt_forever();
	}
	handle_board_or_tick(sample_answer(frame));
}

void nmi_init(void)
{
	clear_board();
	trap_set_handler(TRAP_NMI, handle_nmi);
}

void nmi_stop_all(void)
{
	atomic_store_release(&stopping, true);
}

u32 nmi_stopped(void)
{
	return atomic_load_acquire(&stopped);
}

/*
 * Find a timer that can repeat and be routed to a pin of the first I/O APIC. Returns the offset of
 * its registers, or 0. *route is the highest possible pin, because the low ones belong to ISA
 * devices, which a program may want (irq_register() refuses the pin taken here).
 */
static unsigned find_timer(const volatile void __iomem *hpet, u32 pins, u32 *route)
{
	const unsigned timers = (mmio_read32(hpet, HPET_CAPS) >> TIMERS_SHIFT & TIMERS_MASK) + 1;

	for (unsigned n = 0; n < timers; n++) {
		const unsigned timer = HPET_TIMER0 + n * TIMER_SIZE;
		const u32 routes = mmio_read32(hpet, timer + TIMER_ROUTES) &
				   (pins >= 32 ? ~0u : (1u << pins) - 1);

		if (!(mmio_read32(hpet, timer + TIMER_CONFIG) & TIMER_CAN_PERIODIC) || !routes)
			continue;
		*route = 31 - (u32)__builtin_clz(routes);
		return timer;
	}
	return 0;
}

/* The first write after TIMER_SET_VALUE is the first event; the second is the period. */
static void start_timer(volatile void __iomem *hpet, unsigned timer, u32 route, u32 period)
{
	const u32 kept = mmio_read32(hpet, timer + TIMER_CONFIG) &
			 ~(u32)(TIMER_ROUTE_MASK | TIMER_LEVEL | TIMER_MESSAGE);

	mmio_write32(hpet, timer + TIMER_CONFIG,
		     kept | route << TIMER_ROUTE_SHIFT | TIMER_ENABLE | TIMER_PERIODIC |
			     TIMER_SET_VALUE | TIMER_32BIT);
	mmio_write32(hpet, timer + TIMER_COMPARATOR, mmio_read32(hpet, HPET_COUNTER) + period);
	mmio_write32(hpet, timer + TIMER_COMPARATOR, period);
}

bool nmi_tick_start(volatile void __iomem *hpet)
{
	const u32 fs = hpet ? mmio_read32(hpet, HPET_PERIOD) : 0;
	unsigned timer;
	u32 route = 0;

	if (!watchdog_wanted())
		return false;
	timer = fs ? find_timer(hpet, io_apic_lines(), &route) : 0;
	if (!timer || FS_PER_S / fs > 0xffffffff || !io_apic_route_nmi(route)) {
		pr_info("watchdog: off, because no HPET timer can send NMIs through an I/O APIC");
		return false;
	}
	ticking = true;
	mmio_write32(hpet, HPET_CONFIG,
		     (mmio_read32(hpet, HPET_CONFIG) | HPET_ENABLE) & ~(u32)CONFIG_LEGACY);
	start_timer(hpet, timer, route, (u32)(FS_PER_S / fs));
	return true;
}
