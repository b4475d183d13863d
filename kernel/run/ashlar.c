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

	FORMAT_ARGS(pairs, sizeof(pairs), fmt);
	print("RESULT %s %s\n", name, pairs);
}

void ashlar_note(const char *fmt, ...)
{
	char line[256];

	FORMAT_ARGS(line, sizeof(line), fmt);
	printk(LOG_INFO, "%s", line);
}

void ashlar_warn(const char *fmt, ...)
{
	char line[256];

	FORMAT_ARGS(line, sizeof(line), fmt);
	printk(LOG_WARN, "%s", line);
}
