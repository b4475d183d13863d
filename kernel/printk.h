/*
 * Log, console and formatting.
 *
 * Every line goes to a RAM log that exists from the first instruction of C, and from there to whatever consoles
 * are there (none is fine). printk() lines carry a time stamp and a level; print() lines are bare: tables, KTAP and
 * records, which programs read.
 *
 * Any context, interrupts and NMI included: a line is formatted on the caller's stack and copied under a lock that
 * an NMI or a panic only tries for.
 */
#pragma once

#include <stdarg.h>

#include "kernel/types.h"

enum log_level { LOG_ERROR, LOG_WARN, LOG_INFO, LOG_DEBUG };

/* Print a log line of `level` (a newline is added). Lines above the level set by `loglevel=` stay in the RAM log only. */
void printk(enum log_level level, const char *fmt, ...) __printf(2, 3);

#define pr_err(...) printk(LOG_ERROR, __VA_ARGS__)
#define pr_warn(...) printk(LOG_WARN, __VA_ARGS__)
#define pr_info(...) printk(LOG_INFO, __VA_ARGS__)
#define pr_debug(...) printk(LOG_DEBUG, __VA_ARGS__)

/* Print exactly this, to the log and all consoles; the caller writes the newlines. At most 1023 bytes a call. */
void print(const char *fmt, ...) __printf(1, 2);
void vprint(const char *fmt, va_list args);

/* To the consoles only: what an editor paints. And a line to the log only: what was typed in the end. */
void echo(const char *text, size_t len);
void log_line(const char *fmt, ...) __printf(1, 2);

/*
 * The usual printf conversions: %d %i %u %x %X %o %c %s %p %%, flags - 0 + space #, width and precision (also *),
 * lengths hh h l ll z t j. No floating point: print_ratio() and friends scale integers. Always terminates when
 * size > 0; returns the length the whole text would have had.
 */
int format(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);
int vformat(char *buf, size_t size, const char *fmt, va_list args);

/*
 * Read the RAM log: copies up to `size` bytes from position `*pos` and moves it on; 0 at the end. A reader that
 * fell behind the ring continues with the oldest byte kept.
 */
size_t log_read(u64 *pos, char *buf, size_t size);

/*
 * Changes with every line that is printed, but for those that only say that something does not go on: what a CPU prints between
 * log_complaint_begin() and log_complaint_end(), which nest. Any context.
 */
u64 log_progress(void);
void log_complaint_begin(void);
void log_complaint_end(void);

/* Warnings and errors so far, and the text of the first few (NULL: not kept): what a report should not leave out. */
unsigned log_warnings(void);
const char *log_warning(unsigned n);
