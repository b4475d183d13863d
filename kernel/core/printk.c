/*
 * The log: a ring in RAM that exists before anything else, and the consoles fed from it.
 *
 *        oldest kept                     log_end
 *            v                              v
 *   [....====================================....]   position p lives at kept->text[p % log_size()]
 *
 * Positions only grow, so a reader can tell how much it missed. After a reset BOOTX64.EFI may find
 * the log in memory and save it (kernel/core/log_record.h).
 *
 * One lock covers the ring and the consoles. It is not a struct spinlock, because a CPU must be
 * able to print from interrupt handlers, inside lock checks, and before there is per-CPU data worth
 * checking.
 *
 * A reader at the other end of a line may hold the consoles up for seconds, with interrupts off
 * here. So a CPU that waits for a console, or for the lock, does what other CPUs wait for
 * (print_wait()). A call that is served then may print, too: before the line of a CPU that waits
 * for the lock, or behind the holder's line. It serves no calls itself, so this ends.
 *
 * So the lock is one word that names the CPU inside. If that CPU itself is nested by an NMI or a
 * fault, it goes ahead without waiting. Every other CPU waits a bounded time and then goes ahead as
 * well, because garbled output is better than none. The holder waits only for the consoles, which
 * are bounded. Apart from these two, a line is never cut by another.
 */
#include "kernel/core/printk.h"

#include <arch/atomic.h>
#include <arch/barrier.h>
#include <arch/boot.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/core/call.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/context.h"
#include "kernel/core/log_record.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/shootdown.h"
#include "kernel/core/upward.h"
#include "kernel/core/wait.h"
#include "kernel/lib/string.h"

enum {
	LOG_SIZE_FIRST = 64 * 1024,
	LINE_MAX = 1024,
	WARNINGS_KEPT = 16,
	WARNING_SIZE = 120,
	PUT_OFF_MAX = 8
};

static union {
	struct log_record head;
	char bytes[sizeof(struct log_record) + LOG_SIZE_FIRST];
} __attribute__((aligned(PAGE_SIZE))) first_log;
/* replaced once, when the boot CPU runs alone */
static struct log_record *kept = &first_log.head;
static u32 log_text_size = LOG_SIZE_FIRST;
/* the first ones, each written once by the CPU that counted it */
static char warning[WARNINGS_KEPT][WARNING_SIZE];
static u32 warnings;
static cpu_t output_owner; /* number of the CPU inside + 1, 0: none */
static u64 progress;       /* pieces printed that are not complaints; atomic */
/* parts of the log that the owner has yet to show on consoles, oldest first */
static struct {
	u64 from, end;
} put_off[PUT_OFF_MAX];
static u32 put_offs;

static u64 loglevel = LOG_INFO;
OPTION_U64(loglevel, loglevel, LOG_ERROR, LOG_DEBUG,
	   "0 errors .. 3 everything; the rest stays in the RAM log");

/*
 * How long to wait for another CPU's output: seconds, or much less in a panic. A number of spins
 * bounds the wait before a clock runs.
 */
#define OUTPUT_WAIT_NS       (5 * NS_PER_S)
#define OUTPUT_WAIT_PANIC_NS (50 * NS_PER_MS)
#define OUTPUT_WAIT_SPINS    (1U << 28)

struct output {
	irq_flags_t flags;
	bool owned;  /* this caller took the lock and must release it */
	bool nested; /* this CPU holds it already, and will go on with its line */
};

/*
 * Calls are served where any other wait serves them. A handler and a called function only flush,
 * and an NMI, which may have interrupted that, only says that it goes on.
 */
void print_wait(void)
{
	cpu_relax();
	wait_moved(WAIT_CONSOLE);
	if (atomic_load_relaxed(&panic_in_progress) || context_in(CONTEXT_NMIS) ||
	    !cpu_online(cpu_id()))
		return;
	if (context_may(CONTEXT_LOCKED))
		call_serve();
	else
		shootdown_serve();
}

static struct output output_begin(void) __acquires(irq)
{
	struct output out = {.flags = irq_save()};
	cpu_t me = cpu_id() + 1;
	u64 start;

	if (atomic_load_relaxed(&output_owner) == me) {
		out.nested = !context_in(CONTEXT_NMIS) && !panic_is_ours();
		return out;
	}
	if (atomic_cas(&output_owner, 0, me)) {
		out.owned = true;
		return out;
	}
	start = clock_ns();
	for (u32 spins = 0; spins < OUTPUT_WAIT_SPINS; spins++) {
		bool panicking = atomic_load_relaxed(&panic_in_progress) || panic_is_ours();

		print_wait();
		if (atomic_load_relaxed(&output_owner) == 0 && atomic_cas(&output_owner, 0, me)) {
			out.owned = true;
			break;
		}
		if (clock_ns() - start > (panicking ? OUTPUT_WAIT_PANIC_NS : OUTPUT_WAIT_NS))
			break;
	}
	/* the one inside is stopped, and each line and each reading would wait for it again */
	if (panic_is_ours()) {
		atomic_store_relaxed(&output_owner, me);
		out.owned = true;
	}
	return out;
}

static void output_finish(struct output out) __releases(irq)
{
	if (out.owned)
		atomic_store_release(&output_owner, 0);
	irq_restore(out.flags);
}

/* len <= log_text_size. Inside the lock. */
static void ring_append(const char *text, size_t len)
{
	const size_t at = kept->end % log_text_size, first = MIN(len, log_text_size - at);

	log_record_append(kept, log_text_size, text, len);
	arch_write_back(kept->text + at, first);
	arch_write_back(kept->text, len - first);
	arch_write_back(kept, sizeof(*kept));
}

enum { TO_LOG = 1 << 0, TO_CONSOLES = 1 << 1 };

/* If there are too many parts, the last one grows to the newest, with all that lies between. */
static void put_off_text(u64 from, size_t len)
{
	if (put_offs == 0 || (put_off[put_offs - 1].end != from && put_offs < PUT_OFF_MAX))
		put_off[put_offs++].from = from;
	put_off[put_offs - 1].end = from + len;
}

/* Show what calls that were served meanwhile have printed. */
static void show_put_off(void)
{
	char piece[256];

	for (u32 i = 0; i < put_offs; i++) {
		while (put_off[i].from < put_off[i].end) {
			const u64 left = put_off[i].end - put_off[i].from;
			const size_t want = (size_t)MIN((u64)sizeof(piece), left);

			kernel_upward.console_write(piece, log_read(&put_off[i].from, piece, want));
		}
	}
	put_offs = 0;
}

static void emit(const char *text, size_t len, unsigned where)
{
	struct output out = output_begin();
	u64 from;

	if (panic_is_ours()) /* nobody else will */
		show_put_off();
	from = atomic_load_relaxed(&kept->end);
	if (where & TO_LOG)
		ring_append(text, len);
	if ((where & TO_LOG) && this_cpu()->complaining == 0)
		atomic_add_relaxed(&progress, 1);
	if (out.nested && where == (TO_LOG | TO_CONSOLES))
		put_off_text(from, len);
	else if (where & TO_CONSOLES)
		kernel_upward.console_write(text, len);
	if (out.owned)
		show_put_off();
	output_finish(out);
}

void echo(const char *text, size_t len)
{
	emit(text, len, TO_CONSOLES);
}

void log_line(const char *fmt, ...)
{
	char line[LINE_MAX];
	size_t len;

	len = MIN((size_t)FORMAT_ARGS(line, sizeof(line) - 1, fmt), sizeof(line) - 2);
	line[len++] = '\n';
	emit(line, len, TO_LOG);
}

void print_bytes(const char *bytes, size_t len)
{
	emit(bytes, len, TO_LOG | TO_CONSOLES);
}

void vprint(const char *fmt, va_list args)
{
	char line[LINE_MAX];
	size_t len = (size_t)vformat(line, sizeof(line), fmt, args);

	if (len >= sizeof(line)) {
		len = sizeof(line) - 1;
		line[len - 1] = '\n'; /* the next line is not part of this one */
	}
	print_bytes(line, len);
}

void print(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vprint(fmt, args);
	va_end(args);
}

/* Their names for programs: ashlar.h. */
void ashlar_print(const char *fmt, ...) __printf(1, 2) __attribute__((alias("print")));
void ashlar_vprint(const char *fmt, va_list args) __attribute__((alias("vprint")));

/* Keep the first few warnings, without their time stamps. */
static void keep_warning(const char *text, size_t len)
{
	const u32 n = atomic_fetch_add(&warnings, 1);

	if (n >= WARNINGS_KEPT)
		return;
	len = MIN(len, (size_t)WARNING_SIZE - 1);
	memcpy(warning[n], text, len);
	warning[n][len - (len > 0 && text[len - 1] == '\n')] = '\0';
}

unsigned log_warnings(void)
{
	return atomic_load_relaxed(&warnings);
}

const char *log_warning(unsigned n)
{
	return n < MIN(log_warnings(), (unsigned)WARNINGS_KEPT) ? warning[n] : NULL;
}

void printk(enum log_level level, const char *fmt, ...)
{
	char line[LINE_MAX];
	u64 now_us = clock_ns() / NS_PER_US;
	size_t len, stamp;

	len = stamp = (size_t)format(line, sizeof(line), "[%5llu.%06llu] ", now_us / 1000000,
				     now_us % 1000000);
	len += (size_t)FORMAT_ARGS(line + len, sizeof(line) - len, fmt);

	len = MIN(len, sizeof(line) - 2); /* room for the newline, even if the text was cut */
	if (line[len - 1] != '\n')
		line[len++] = '\n';
	if (level <= LOG_WARN)
		keep_warning(line + stamp, len - stamp);
	emit(line, len, TO_LOG | (level <= loglevel ? TO_CONSOLES : 0));
}

size_t log_read(u64 *pos, char *buf, size_t size)
{
	struct output out = output_begin();
	u64 end = atomic_load_relaxed(&kept->end);
	size_t n, at, first;

	if (end > log_text_size && *pos < end - log_text_size)
		*pos = end - log_text_size;
	if (*pos > end)
		*pos = end;
	n = MIN(size, (size_t)(end - *pos));
	at = *pos % log_text_size;
	first = MIN(n, log_text_size - at);
	memcpy(buf, kept->text + at, first);
	memcpy(buf + first, kept->text, n - first);
	*pos += n;
	output_finish(out);
	return n;
}

void log_grow(void *memory, size_t size)
{
	struct log_record *old = kept;

	if (old->end > LOG_SIZE_FIRST) /* never so early; it would begin in the middle */
		return;
	kept = memory;
	*kept = (struct log_record){0};
	log_text_size = (u32)(size - sizeof(*kept));
	ring_append(old->text, (size_t)old->end);
	old->magic = 0;
	arch_write_back(old, sizeof(*old));
}

size_t log_size(void)
{
	return log_text_size;
}

u64 log_progress(void)
{
	return atomic_load_relaxed(&progress);
}
