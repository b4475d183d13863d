/*
 * NMIs; see nmi.h. Their sources are
 *
 *   another CPU's panic       this CPU halts for good
 *   cpu_where()               this CPU reports where it is, and goes on (backtrace.c)
 *   the tick, once a second   watchdog_tick(), mce_poll(), on the boot CPU (nmi_tick.c)
 *   the board                 memory parity or an expansion card (port 0x61): a panic that says so
 *   a management controller   watchdog_show(): where all busy CPUs are; the run goes on
 *
 * An NMI may interrupt a CPU anywhere: idle, holding locks, in the allocator. The code here
 * therefore takes no lock and does not look at struct pages. Printing waits for the lock of the
 * output for a bounded time and then goes on without it (kernel/core/printk.c).
 *
 * Sources: Intel SDM vol. 3A, 6.7 "Nonmaskable interrupt"; Intel, "I/O Controller Hub 10
 * Datasheet", 2008, 13.7.1 "NMI_SC".
 */
#include "arch/x86_64/interrupts/nmi.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/percpu.h>

#include "arch/x86_64/cpu/io.h"
#include "arch/x86_64/interrupts/backtrace.h"
#include "arch/x86_64/interrupts/nmi_tick.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/mce.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/core/watchdog.h"

enum { NMI_STATUS = 0x61, NMI_PARITY = 0x80, NMI_CHANNEL = 0x40 };
enum { SHOWN_MAX = 4, NAMED_MAX = 16 };

#define SHOWN_EVERY_NS  (2 * NS_PER_S) /* a management controller interrupts all CPUs at once */
#define STOP_BASE_NS    (100 * NS_PER_MS)
#define STOP_PER_CPU_NS (5 * NS_PER_MS)
#define STOP_SPINS_MAX  (1u << 27) /* replaces the time limit if the clock does not run */

static bool stopping;  /* an NMI stops the CPU that receives it */
static u8 board_stuck; /* bits of port 61h that were set at start and could not be cleared */
static u32 stopped;    /* CPUs so far */
static u32 shown;      /* times that the positions of CPUs were printed for an NMI */
static u64 shown_at;   /* the last time; the CPU that moves it prints */

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
 * Somebody asks: a button, or a management controller. All CPUs may get the NMI, and one of them
 * answers. Nothing ends.
 */
static void show_where(u8 status)
{
	const u64 now = clock_ns();
	u64 before = atomic_load_relaxed(&shown_at);

	if ((before && now - before < SHOWN_EVERY_NS) || !atomic_cas(&shown_at, before, now))
		return;
	if (atomic_fetch_add(&shown, 1) >= SHOWN_MAX)
		return;
	pr_warn("NMI without a known reason on CPU %u, port 61h says %02x: a request to show where "
		"the CPUs are",
		cpu_id(), status);
	watchdog_show();
}

/*
 * One NMI may come from the board, from the watchdog and from cpu_where() at once, so the board's
 * status is read every time.
 */
static void handle_board_or_tick(bool answered)
{
	const u8 status = inb(NMI_STATUS);
	const char *words = nmi_board_says(status, board_stuck);
	enum nmi_tick tick;

	if (words)
		panic("NMI: %s; port 61h says %02x", words, status);
	tick = cpu_id() == 0 ? nmi_tick_take() : NMI_NO_TICK;
	if (tick == NMI_TICK) {
		mce_poll();
		watchdog_tick();
	} else if (tick == NMI_NO_TICK && !answered) {
		show_where(status);
	}
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
	nmi_tick_take(); /* a test's handler may have left one unacknowledged */
}

static void print_not_stopped(void)
{
	int left = NAMED_MAX;
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		if (cpu != cpu_id() && !atomic_load_relaxed(&cpu_data(cpu)->arch.stopped) &&
		    left-- > 0)
			print(" %u", cpu);
	print(left < 0 ? " ...\n" : "\n");
}

static void wait_stopped(u32 want)
{
	const u64 limit = (STOP_BASE_NS + want * STOP_PER_CPU_NS) * cpu_deadline_scale(),
		  start = clock_ns();

	for (u32 spins = 0; atomic_load_acquire(&stopped) < want; spins++) {
		if (clock_ns() - start > limit || spins > STOP_SPINS_MAX) {
			print("%u of %u other CPUs did not stop:",
			      want - atomic_load_acquire(&stopped), want);
			print_not_stopped();
			return;
		}
		cpu_relax();
	}
}

void cpus_stop_others(void)
{
	const cpu_t self = cpu_id();
	u32 sent = 0;
	cpu_t cpu;

	if (apic_mode() == APIC_NONE)
		return;
	atomic_store_release(&stopping, true);
	cpumask_foreach(cpu, &cpus_online) {
		if (cpu != self)
			sent += apic_send(cpu_data(cpu)->arch.apic_id, ICR_NMI | ICR_ASSERT);
	}
	wait_stopped(sent);
}
