/*
 * Log, console and formatting.
 *
 * Every line goes to a RAM log that exists from the first instruction of C, and from there to every
 * console that is present (none is fine). printk() lines carry a time stamp and a level. print()
 * lines are bare: tables, KTAP and records, which programs read.
 *
 * Any context, interrupts and NMI included. A line is formatted on the caller's stack and copied
 * under a lock. The wait for that lock is bounded; a CPU that waits too long prints without it.
 */
#pragma once

#include <stdarg.h>

#include "kernel/lib/format.h"
#include "kernel/lib/types.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/*
 * Print a log line of `level`; a newline is added. Lines above the level set by `loglevel=` stay in
 * the RAM log only.
 */
void printk(enum log_level level, const char *fmt, ...) __printf(2, 3);

#define pr_err(...)   printk(LOG_ERROR, __VA_ARGS__)
#define pr_warn(...)  printk(LOG_WARN, __VA_ARGS__)
#define pr_info(...)  printk(LOG_INFO, __VA_ARGS__)
#define pr_debug(...) printk(LOG_DEBUG, __VA_ARGS__)

/*
 * Print exactly this text to the log and all consoles; the caller writes the newlines. At most 1023
 * bytes per call; longer text is cut, and its last byte is a newline. print_bytes() prints any
 * bytes, zero bytes too, at most 4096 per call. Text of one call is not cut by another's.
 */
void print(const char *fmt, ...) __printf(1, 2);
void vprint(const char *fmt, va_list args);
void print_bytes(const char *bytes, size_t len);

/*
 * echo() writes to the consoles only: the output of the line editor. log_line() writes a line to
 * the log only: the finished line that the user typed.
 */
void echo(const char *text, size_t len);
void log_line(const char *fmt, ...) __printf(1, 2);

/*
 * Read the RAM log: copy up to `size` bytes from position `*pos`, move *pos on, and return the
 * number of bytes; 0 at the end. A reader that fell behind the ring continues with the oldest byte
 * kept.
 */
size_t log_read(u64 *pos, char *buf, size_t size);

/*
 * Keep the log in `memory` of `size` bytes from now on, at most LOG_SIZE_MAX (log_record.h), which
 * is larger, on a page border, and has any contents. Boot CPU, before others run, once.
 * log_size(): bytes that the log keeps.
 */
void log_grow(void *memory, size_t size);
size_t log_size(void);

/*
 * One turn of a wait for a console: relax, and serve other CPUs as far as the context allows. Waits
 * for this CPU count the turn as movement. Any context.
 */
void print_wait(void);

/*
 * A count that changes with every piece of text printed, except complaints: lines that a CPU prints
 * while its `complaining` is above 0, which only say that something does not go on. Any context.
 */
u64 log_progress(void);

/*
 * Number of warnings and errors so far, and the text of the n-th (NULL if it was not kept; only the
 * first few are). For reports.
 */
unsigned log_warnings(void);
const char *log_warning(unsigned n);
