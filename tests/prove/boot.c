/* What firmware leaves in memory. */
#include "tests/prove/prove.h"

#include "boot/efi/handover.c"

PROVE(efi_log, "26", "a-log-larger-than-its-memory", "memory of up to 56 bytes")
{
	ANY_BYTES(memory, len, 56);
	const struct log_record *log = handover_find_log(memory, len);

	if (log) {
		prove((const u8 *)log == memory && log->size <= len - sizeof(*log));
		handover_log_sum(log);
		prove(handover_log_older(log) <= log->size);
	}
}
