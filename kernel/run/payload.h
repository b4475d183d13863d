/*
 * Payloads of rooms: what a run does instead of payload_run() (kernel/payload_run.h), if a room
 * finds that it was asked for. The linker gathers them, so kernel_main() need not know the rooms.
 *
 *	PAYLOAD(program, program_wanted, program_run);
 */
#pragma once

#include "kernel/lib/types.h"

struct payload {
	bool (*wanted)(void); /* was it asked for? Prints nothing if not. */
	void (*run)(void);    /* ends the run or returns, as payload_run() */
};

TABLE_DECLARE(const struct payload, payload_table);

#define PAYLOAD(ident, wanted_fn, run_fn)                                                          \
	static const struct payload payload_##ident TABLE_ENTRY(payload_table) = {                 \
		.wanted = (wanted_fn), .run = (run_fn)}

/*
 * Run the first payload that is wanted, and return true. False if none is. Boot CPU, once the
 * machine is up.
 */
bool payload_run_wanted(void);
