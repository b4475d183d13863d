/*
 * Whether the run before this one came to its end: a reset must never look like a pass.
 *
 *   begin          record: boots + 1, RUNNING       a record that was RUNNING already: that run never ended
 *   end, reboot    record: ENDED, verdict
 *
 * The record lies in memory that a reset leaves alone and loaders do not use; whoever clears it (power off, careful
 * firmware) makes the next run the first. A run after one that never ended says so and cannot end as a pass: people may
 * only see its last lines. unfinished=ok says that the reset was on purpose.
 */
#pragma once

#include "kernel/types.h"

enum run_state { RUN_RUNNING = 1, RUN_ENDED = 2 };

struct run_record {
	u64 magic;
	u32 boots, state, verdict;
	u32 sum; /* over the other words */
};

/* What `found` tells: false if it is no record. Pure. */
bool run_record_valid(const struct run_record *found);

/* The record of the run that begins now, after `found` (any bytes). Pure. */
struct run_record run_record_next(const struct run_record *found);

/* The same with another state, sum made right. Pure. */
struct run_record run_record_closed(const struct run_record *record, u32 verdict);

/* Start-up: read the record, write ours, say what happened before. */
void run_record_begin(void);

/* The run is over, or left on purpose (verdict 0). */
void run_record_end(u32 verdict);

/* True if the run before this one never ended, and nobody said that this is fine. */
bool run_record_unfinished(void);
