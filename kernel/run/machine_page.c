/* The machine page: see machine_page.h. */
#include "kernel/run/machine_page.h"

#include <arch/boot.h>
#include <arch/cpu.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum { PAGE_AUTO, PAGE_ON, PAGE_OFF };
enum { COLUMNS = 79, INDENT = 11, ROWS = 20 };

static unsigned choice;
OPTION_CHOICE(console.page, choice, "auto|on|off",
	      "print the machine page at the end; auto: on real hardware");

static unsigned rows;           /* rows printed of this page */
static unsigned at_ready = ~0U; /* warnings when the kernel was ready; later ones are the run's */

/* ---- lines ---- */

size_t sheet_break(const char *text, size_t width)
{
	const size_t len = strlen(text);
	size_t end = width;

	if (len <= width)
		return len;
	while (end > 0 && text[end] != ' ')
		end--;
	return end > 0 ? end : width;
}

static void print_rows(const char *name, const char *text)
{
	do {
		const size_t len = sheet_break(text, COLUMNS - INDENT);

		print("  %-8s %.*s\n", name, (int)len, text);
		rows++;
		name = "";
		text += len;
		text += *text == ' ';
	} while (*text);
}

void sheet_line(const char *name, const char *fmt, ...)
{
	char text[512];

	FORMAT_ARGS(text, sizeof(text), fmt);
	print_rows(name, text);
}

/* Print as many warnings of the start as the page has room for. */
static void print_warnings(void)
{
	const unsigned all = log_warnings(), n = MIN(all, at_ready);
	const bool room = rows + 2 < ROWS;
	unsigned i = 0;

	sheet_line("oddities", "%u%s", n, n == 0 ? "" : room ? ":" : ": see the log");
	for (; room && i < n && log_warning(i) && rows + 2 < ROWS; i++)
		sheet_line("", "%s", log_warning(i));
	if (room && i < n)
		sheet_line("", "and %u more: see the log", n - i);
	if (all > n)
		sheet_line("", "and %u of the run: see the log", all - n);
}

void machine_page_ready(void)
{
	at_ready = log_warnings();
}

void machine_page(void)
{
	if (choice == PAGE_OFF || (choice == PAGE_AUTO && cpu_deadline_scale() != 1))
		return;
	print("\n");
	arch_machine_measure();
	print("\nThis machine\n");
	rows = 1;
	arch_machine_page(sheet_line);
	print_warnings();
}
