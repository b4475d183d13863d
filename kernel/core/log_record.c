/* Appending to the log as it lies in memory: see log_record.h. */
#include "kernel/core/log_record.h"

#include <arch/atomic.h>

void log_record_append(struct log_record *log, u32 size, const char *text, size_t len)
{
	const u64 end = log->end;
	size_t at = end % size;

	for (size_t i = 0; i < len; i++) {
		log->sum += (u8)text[i] - (end + i < size ? 0U : (u8)log->text[at]);
		log->text[at] = text[i];
		at = at + 1 < size ? at + 1 : 0;
	}
	atomic_store_relaxed(&log->end, end + len);
	log->magic = LOG_MAGIC;
	log->size = size;
	log->head = log_record_head(log);
}
