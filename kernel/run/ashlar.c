/*
 * Functions of ashlar.h that add something to one of the kernel's. ashlar_print(), ashlar_format()
 * and their v-forms are only second names, in printk.c and format.c.
 */
#include "ashlar.h"

#include "kernel/core/printk.h"

/* One call of print(), so that no other CPU's text comes between. */
void ashlar_result(const char *name, const char *fmt, ...)
{
	char pairs[900];
	va_list args;

	va_start(args, fmt);
	vformat(pairs, sizeof(pairs), fmt, args);
	va_end(args);
	print("RESULT %s %s\n", name, pairs);
}

static __printf(2, 0) void log_text(enum log_level level, const char *fmt, va_list args)
{
	char line[256];

	vformat(line, sizeof(line), fmt, args);
	printk(level, "%s", line);
}

void ashlar_note(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_text(LOG_INFO, fmt, args);
	va_end(args);
}

void ashlar_warn(const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	log_text(LOG_WARN, fmt, args);
	va_end(args);
}
