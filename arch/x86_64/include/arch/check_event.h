/* What check_event() can be told (arch/check.h). */
#pragma once

/*
 * Steps of the protocols that tests/model describes, in the order of the code: a hosted run can write them down, and
 * tests/model/replay.py holds them against the models' rules. Where a call stands relative to the step decides what
 * a reader of the trace may conclude: see replay.py.
 */
enum check_event {
	CHECK_ROUND_SKIPPING, /* a full round began: its generation; idle CPUs are left alone */
	CHECK_ROUND_ALL,      /* the same, idle CPUs too */
	CHECK_ROUND_RANGED,   /* a ranged round began: its generation */
	CHECK_DONE,           /* a full round is complete: its generation; not yet raised */
	CHECK_PUBLISH,        /* this CPU has flushed all: the generation it loaded before; not yet raised */
	CHECK_TAG,            /* a tag was taken */
	CHECK_IDLE,           /* this CPU is about to be idle */
	CHECK_AWAKE,          /* it is not any more, and has not flushed yet */
	CHECK_GIVE,           /* a frame goes back to META: frame, tag or 0 */
	CHECK_STATE,          /* a block's state changes: its struct pages' address, from * 16 + to */
	CHECK_SETTLED,        /* blocks are in transit no more: their struct pages' address, how many */
	CHECK_REUSED,         /* what the hosted arch adds: frames, count; see check_frames_reused() */
	CHECK_PTE,            /* an entry was taken away or changed: the address it translated, the frame it led to */
	CHECK_TABLE,          /* the same for an entry that pointed to a table */
};
