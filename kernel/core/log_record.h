/*
 * The log as it lies in memory, on a page border, so that it can be found after a reset that left
 * memory alone (boot/efi/handover.h). Position p of the log is text[p % size].
 *
 * The writer keeps both sums right and writes each change back to memory (kernel/core/printk.c). A
 * reset in the middle of a change leaves a head that is right and a sum of the text that is not.
 */
#pragma once

#include "kernel/lib/types.h"

#define LOG_MAGIC    0x474f4c4853410001ULL
#define LOG_SIZE_MAX MIB(1)  /* with its head */
#define LOG_PHYS_MAX MIB(64) /* it lies below */

struct log_record {
	u64 magic;
	u64 end;  /* position after the newest byte */
	u32 size; /* of the text, bytes */
	u32 sum;  /* of the bytes of the text that were written */
	u64 head; /* log_record_head() */
	char text[];
};

/*
 * Append `len` bytes, and make the head right. `size` is always the same for a log; one that begins
 * has a head of zeros and any text. One CPU at a time.
 */
void log_record_append(struct log_record *log, u32 size, const char *text, size_t len);

/* The sum over the other members of the head. */
static inline u64 log_record_head(const struct log_record *log)
{
	return (log->magic ^ log->end * 3 ^ log->size * 5ULL) + log->sum;
}

/* True if `len` bytes from `log` on hold a log as a whole. Pure. */
static inline bool log_record_valid(const struct log_record *log, size_t len)
{
	return len > sizeof(*log) && log->magic == LOG_MAGIC && log->size > 0 &&
	       log->size <= LOG_SIZE_MAX - sizeof(*log) && log->size <= len - sizeof(*log) &&
	       log->head == log_record_head(log);
}
