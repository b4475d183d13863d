/*
 * Console, clock, backtrace and the end of the hosted machine. All output goes through write(2),
 * which is safe in the signal handlers that print.
 */
#include <arch/boot.h>
#include <poll.h>

#include "arch/x86_64/time/timer.h"
#include "kernel/core/verdict.h"
#include "tests/host/host.h"

enum { FRAMES_MAX = 48, MESSAGE_MAX = 512 };

bool host_write(const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, text, len);

		if (n <= 0)
			return false; /* the reader is gone; there is no other output */
		text += n;
		len -= (size_t)n;
	}
	return true;
}

static bool stdout_write(struct console *console, const char *text, size_t len)
{
	return host_write(text, len);
}

static int stdin_read(struct console *console)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	unsigned char c;

	if (poll(&in, 1, 0) != 1 || read(STDIN_FILENO, &c, 1) != 1)
		return -1;
	return c;
}

/* Attached before main(), because the runner itself prints through it. */
__attribute__((constructor)) static void attach_terminal(void)
{
	static struct console terminal = {
		.name = "stdout", .write = stdout_write, .read = stdin_read};

	consoles = &terminal;
}

/* The kernel's fonts, for the tests that draw with them. */
__asm__(".section .rodata\n"
	".globl font_small_start, font_large_start\n"
	"font_small_start: .incbin \"arch/x86_64/consoles/font/spleen-8x16.psfu\"\n"
	"font_large_start: .incbin \"arch/x86_64/consoles/font/spleen-16x32.psfu\"\n"
	".text");

bool clock_tsc(struct clock_tsc *out)
{
	*out = (struct clock_tsc){0};
	return false;
}

void clock_delay_ns(u64 ns)
{
	u64 until = clock_ns() + ns;

	while (clock_ns() < until)
		cpu_relax();
}

#if defined(HOST_SANITIZED) && !defined(HOST_EXPLORE)
extern void __sanitizer_print_stack_trace(void);
#endif

/* The sanitizers' runtime prints files and lines; without it only names of functions are known. */
void panic_arch(void)
{
	cpus_stop_others();
#if defined(HOST_SANITIZED) && !defined(HOST_EXPLORE)
	__sanitizer_print_stack_trace();
#else
	virt_t frames[FRAMES_MAX];
	size_t n = backtrace_capture(frames, FRAMES_MAX);

	for (size_t i = 0; i < n; i++) {
		u64 offset = 0;
		const char *name = symbol_lookup(frames[i], &offset);

		print("  0x%llx %s+0x%llx\n", frames[i], name ? name : "?", offset);
	}
#endif
}

/* No timer interrupts but in the explorer: a thread has none. */
#ifndef HOST_EXPLORE
void timer_interrupt(void)
{
}

int timer_set(enum timer_owner owner, u64 at, irq_fn *fn, void *arg)
{
	return -ENODEV;
}

void timer_clear(enum timer_owner owner)
{
}

void timer_ends_halt(void *nothing)
{
}

int timer_once(u64 ns, irq_fn *fn, void *arg)
{
	return timer_set(TIMER_ONCE, ns, fn, arg);
}

void timer_cancel(void)
{
}
#endif

/* Nothing outlives the process. */
bool arch_record_load(void *record, size_t size)
{
	return false;
}

void arch_record_store(const void *record, size_t size)
{
}

void arch_write_back(const void *start, size_t len)
{
}

/* No loader would start the process again, so a reset ends it. */
void machine_reset(void)
{
	_exit(0);
}

#ifdef HOST_COVERAGE
void __gcov_dump(void);
#endif

static bool by_hand;

void host_run_by_hand(void)
{
	by_hand = true;
}

bool machine_end_pages(void)
{
	return false;
}

/*
 * The verdict is the exit status, which the runner reads. Run by hand, the status is 0 for a pass
 * and 1 for all else, as with any program.
 */
void machine_end(unsigned code)
{
	if (by_hand)
		code = code != VERDICT_PASS;
#ifdef HOST_COVERAGE
	__gcov_dump(); /* _exit() does not do it */
#endif
	_exit((int)code);
}

void host_die(const char *fmt, ...)
{
	char text[MESSAGE_MAX];
	int n;

	n = FORMAT_ARGS(text, sizeof(text) - 1, fmt);
	n = MIN(n, (int)sizeof(text) - 2);
	text[n++] = '\n';
	console_write("ashlar-host: ", 13);
	console_write(text, (size_t)n);
	_exit(2);
}
