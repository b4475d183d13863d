/*
 * Takes the compiler's counts of executed lines out of the guest. `make test WHAT=coverage` links
 * it: the command `coverage` writes them to QEMU's debug console, whose bytes land in a file, and
 * run.py makes of that the files that gcov reads.
 *
 * The stream: for every translation unit the name of its file and a zero byte; then pieces, each a
 * length (u32) and that many bytes, until one of length 0. What is in them only the compiler's own
 * library knows.
 *
 * Source: GCC manual, "Profiling and Test Coverage in Freestanding Environments".
 */
#include <gcov.h>

#include <arch/cpu.h>

#include "arch/x86_64/cpu/io.h"
#include "kernel/console/command.h"
#include "kernel/core/panic.h"
#include "kernel/core/printk.h"

enum { DEBUG_CONSOLE = 0xe9 };

extern const struct gcov_info *const __start_coverage_table[], *const __stop_coverage_table[];

static void write_bytes(const void *data, unsigned length)
{
	const u8 *bytes = data;

	for (unsigned i = 0; i < length; i++)
		outb(DEBUG_CONSOLE, bytes[i]);
}

static void write_name(const char *name, void *arg)
{
	do
		outb(DEBUG_CONSOLE, (u8)*name);
	while (*name++);
}

static void write_piece(const void *data, unsigned length, void *arg)
{
	write_bytes(&length, sizeof(length));
	write_bytes(data, length);
}

static int cmd_coverage(const struct words *words)
{
	const unsigned none = 0;
	unsigned files = 0;

	for (const struct gcov_info *const *info = __start_coverage_table;
	     info < __stop_coverage_table; info++, files++) {
		const irq_flags_t flags = irq_save(); /* the library was compiled with a red zone */

		__gcov_info_to_gcda(*info, write_name, write_piece, NULL, NULL);
		write_bytes(&none, sizeof(none));
		irq_restore(flags);
	}
	print("coverage: %u files\n", files);
	return 0;
}

COMMAND(coverage, .help = "write the counts of executed lines to QEMU's debug console",
	.run = cmd_coverage);

/* The part of a C library that the library wants, in ways that counts of lines do not take. */
void __gcov_merge_add(void);
void __gcov_merge_add(void)
{
	panic("coverage: nothing is merged here");
}

void abort(void);
void abort(void)
{
	panic("coverage: abort()");
}

void *mmap(void);
void *mmap(void)
{
	panic("coverage: counts need no memory");
}
