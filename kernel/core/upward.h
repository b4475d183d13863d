/*
 * Calls from kernel/core up to the layers above it. There are no others (tests/lint/rooms.py).
 * kernel/main.c fills in the table.
 */
#pragma once

#include "kernel/lib/types.h"

struct kernel_upward {
	/*
	 * Write text of the log to every console. Called in whatever context the text was printed.
	 * See console.h.
	 */
	void (*console_write)(const char *text, size_t len);

	/*
	 * Memory for tables that are sized by the number of CPUs, before pages can be allocated. It
	 * is zeroed. If there is none, the run ends with a message that names `what`. See
	 * memblock.h.
	 */
	void *(*early_alloc)(u64 size, node_t node, const char *what);
};

extern const struct kernel_upward kernel_upward;
