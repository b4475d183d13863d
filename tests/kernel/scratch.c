/* See scratch.h. */
#include "tests/kernel/scratch.h"

#include "kernel/lib/string.h"

static u8 room[SCRATCH_BYTES] __cacheline_aligned;

/* The room's end, so that a sanitizer sees what is written behind it. */
void *scratch(size_t bytes)
{
	return memset(room + SCRATCH_BYTES - ALIGN_UP(bytes, (size_t)16), 0, bytes);
}
