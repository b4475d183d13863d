/*
 * A record of whether the previous run came to its end, so that a reset never looks like a pass.
 *
 *   begin          record: boots + 1, RUNNING   a record found RUNNING: that run never ended
 *   end, reboot    record: ENDED, verdict, status of the program
 *
 * The record lies in memory that a reset leaves alone and loaders do not use. If that memory is
 * cleared (power off, careful firmware), the next run counts as the first. A run after one that
 * never ended says so and cannot end as a pass, because people may see only its last lines.
 * end.unfinished=ok says that the reset was on purpose.
 */
#pragma once

#include "kernel/lib/types.h"

enum run_state { RUN_RUNNING = 1, RUN_ENDED = 2 };

#define RUN_NO_STATUS 0xffff

struct run_record {
	u64 magic;
	u32 boots, state;
	u16 verdict;
	u16 status; /* exit status of the run's program; RUN_NO_STATUS: there was none */
	u32 sum;    /* over the other words */
};

/* True if `found` is a record. Pure. */
bool run_record_valid(const struct run_record *found);

/* The record of the run that begins now, after `found` (any bytes). Pure. */
struct run_record run_record_next(const struct run_record *found);

/* A copy of the record, marked ENDED with `verdict` and `status`, with the right sum. Pure. */
struct run_record run_record_closed(const struct run_record *record, u16 verdict, u16 status);

/* Start-up: read the previous record, write the new one, and report how the previous run ended. */
void run_record_begin(void);

/*
 * The run is over, or the user left it on purpose (verdict 0). `status` is the exit status of its
 * program, 0 to 255, or RUN_NO_STATUS.
 */
void run_record_end(u16 verdict, u16 status);

/* True if the previous run never ended, and end.unfinished=ok was not given. */
extern bool run_record_unfinished;
