/* The events that check_event() records (arch/check.h). */
#pragma once

/*
 * Steps of the protocols that tests/model describes, in the order of the code. A hosted run can
 * record them, and tests/model/replay.py checks the record against the models' rules. The position
 * of a call relative to its step decides what a reader of the trace may conclude; see replay.py.
 */
enum check_event {
	CHECK_ROUND_SKIPPING, /* a full round that leaves idle CPUs alone began: its generation */
	CHECK_ROUND_ALL,      /* a full round that includes idle CPUs began: its generation */
	CHECK_ROUND_RANGED,   /* a ranged round began: its generation */
	CHECK_DONE,           /* a full round is complete: its generation; not yet raised */
	/* this CPU has flushed all: the generation it loaded before the flush; not yet raised */
	CHECK_PUBLISH,
	CHECK_TAG,   /* a tag was taken */
	CHECK_IDLE,  /* this CPU is about to be idle */
	CHECK_AWAKE, /* this CPU is no longer idle and has not flushed yet */
	CHECK_GIVE,  /* a frame goes back to metadata memory: frame, tag or 0 */
	/* a block's state changes: its struct pages' address, from * 16 + to */
	CHECK_STATE,
	/* blocks are no longer in transit: their struct pages' address, how many */
	CHECK_SETTLED,
	/* added by the hosted arch: frames, count; see check_frames_reused() */
	CHECK_REUSED,
	/* an entry was removed or changed: the address it translated, the frame it led to */
	CHECK_PTE,
	CHECK_TABLE,  /* an entry that pointed to a table was removed or changed */
	CHECK_QUIET,  /* this CPU is about to be quiet */
	CHECK_RANGED, /* a ranged round is complete: its generation */
};
