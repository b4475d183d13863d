/*
 * The parts of BOOTX64.EFI that read bytes of others: pure functions over (pointer, length).
 * tests/kernel/boot_efi_test.c runs them.
 */
#pragma once

#include "boot/boot_info.h"
#include "boot/efi/efi.h"
#include "kernel/core/log_record.h"

/* What ASHLAR.TXT says: the command line, a line "FILE WORDS" for each module, and "once". */
struct handover {
	char words[BOOT_CMDLINE_MAX];
	char module[BOOT_MODULES_MAX][BOOT_MODULE_TEXT_MAX];
	size_t modules;
	bool once;
};

/*
 * Read ASHLAR.TXT. A line "module FILE WORDS" names a module; "once" says that the kernel is not
 * started when the log of its last run was found; all other lines, joined by blanks, are the
 * command line. Lines end in LF or CR LF; UTF-8's mark at the beginning is skipped. Returns NULL,
 * or in words what does not fit. `out` is zero before.
 */
const char *handover_read_text(const u8 *text, size_t len, struct handover *out);

/*
 * Take the command line from a loaded image's load options (`len` bytes), if these are printable
 * UTF-16 text; firmware puts other data there as well. A first word in .efi is the program's own
 * name, which the UEFI shell passes. Returns false, and `out` is as before, if there is no word.
 */
bool handover_read_options(const u8 *options, size_t len, struct handover *out);

/*
 * The log that an earlier run left on a page border of `memory`, or NULL. The sum of its text may
 * be wrong (handover_log_sum()), its size is not.
 */
const struct log_record *handover_find_log(const u8 *memory, size_t len);
u32 handover_log_sum(const struct log_record *log);

/* The oldest bytes of a log, which its text ends with: 0 before it was full for the first time. */
u64 handover_log_older(const struct log_record *log);

/* The bytes between `start` and `end` that are RAM when boot services have ended. */
u64 handover_ram_between(const u8 *map, size_t len, size_t entry, u64 start, u64 end);
