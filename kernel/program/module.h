/*
 * The program and its files, as a loader passes them: modules in memory.
 *
 *	a cpio image      the files, and among them the program: program=NAME, or the first
 *	                  executable ELF. Its arguments, the name first, are the file
 *	                  proc/self/cmdline, and its environment is proc/self/environ, each word
 *	                  with a zero byte behind it. `make run PROGRAM=` passes this one module.
 *	an ELF            the program. The module's text, if any, is its name and arguments:
 *	                  module2 /a.out a.out one two
 *
 * With an ELF and a cpio image the image holds the files only. Any other module belongs to somebody
 * else (acpi=module).
 *
 * The loader's memory is never freed (MEM_LOADER), so what is found here stays in place.
 */
#pragma once

#include "kernel/program/arguments.h"

struct boot_info;

struct program_source {
	const void *elf;
	u64 elf_size;
	const void *cpio; /* the files, for files_begin(); NULL: none */
	u64 cpio_size;
	const char *name; /* of the program: of its file, or the first word of the module's text */
	struct arguments args, environment; /* if there are none: the name, and nothing */
};

/*
 * Find the program among the modules of `info`. `wanted`: what program= says, NULL if nothing.
 * Returns 0; -ENOENT if there is no program and none was wanted; or -EINVAL after a message that
 * says what is wrong. Boot CPU, once the direct map exists.
 */
int module_find(const struct boot_info *info, const char *wanted, struct program_source *source);

/*
 * module_find() for the machine's modules and program=. The first call looks and prints; the others
 * return the same.
 */
int module_program(struct program_source *source);

/* Is there a program, or an error that ends the run? */
bool module_wanted(void);
