/* The machine page: see machine_page.h. */
#include "kernel/run/machine_page.h"

#include <arch/boot.h>
#include <arch/cpu.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

enum { PAGE_AUTO, PAGE_ON, PAGE_OFF };
enum { COLUMNS = 79, INDENT = 11, ROWS = 20, GAINS_MAX = 8, GAIN_SIZE = COLUMNS - INDENT + 1 };

static unsigned choice;
OPTION_CHOICE(console.page, choice, "auto|on|off",
	      "print the machine page at the end; auto: on real hardware");

static struct gain {
	char name[INDENT]; /* "": none */
	char text[GAIN_SIZE];
} gains[GAINS_MAX];

static unsigned rows; /* rows printed of this page */

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
	va_list args;

	va_start(args, fmt);
	vformat(text, sizeof(text), fmt, args);
	va_end(args);
	print_rows(name, text);
}

void sheet_gain(const char *name, const char *fmt, ...)
{
	va_list args;

	for (unsigned i = 0; i < GAINS_MAX; i++) {
		if (gains[i].name[0] && strcmp(gains[i].name, name) != 0)
			continue;
		format(gains[i].name, sizeof(gains[i].name), "%s", name);
		va_start(args, fmt);
		vformat(gains[i].text, sizeof(gains[i].text), fmt, args);
		va_end(args);
		return;
	}
}

/* ---- gains, oddities ---- */

static void print_gains(void)
{
	for (unsigned i = 0; i < GAINS_MAX && gains[i].name[0]; i++)
		sheet_line(gains[i].name, "%s", gains[i].text);
}

/* Print as many warnings as the page has room for. */
static void print_warnings(void)
{
	const unsigned n = log_warnings();
	const bool room = rows + 2 < ROWS;
	unsigned i = 0;

	sheet_line("oddities", "%u%s", n, n == 0 ? "" : room ? ":" : ": see the log");
	for (; room && i < n && log_warning(i) && rows + 1 < ROWS; i++)
		sheet_line("", "%s", log_warning(i));
	if (room && i < n)
		sheet_line("", "and %u more: see the log", n - i);
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
	print_gains();
	print_warnings();
}
