/*
 * Whose an isolation is: mm/zone/isolate.c against mm/zone/section_close.c, mm/zone/section.c and those who take blocks (mm/zone/transit.c, contig.c).
 *
 *   isolator 0, 1  claims a range, 0 both blocks and 1 the second: token on the zone's list, then bit by bit; waits for what is in
 *                  transit; undoes it, or takes all of it if all is free, which ends the isolation block by block, then its token
 *   closer         closes the section of both blocks if all of it is free and under no token; opens it again, which gives types
 *   taker          takes a free block that is not isolated, changes it, publishes it
 *
 * What is done under the zone's lock is one step (atomic). The section's own state (CLOSING, OPENING by compare-and-swap) is block.pml's.
 *
 * Checked: each bit is covered by one token and no two tokens overlap; whoever was told that a range is its own finds all its bits set until
 * it ends the isolation itself; nothing isolated is taken; opening overwrites no bit; all come to an end.
 */
#define BLOCKS 2
#ifndef TURNS
#define TURNS 2
#endif

bool opened[BLOCKS] = true; /* state is not UNOPENED */
bool isolated[BLOCKS];      /* BLOCK_ISOLATED */
bool listed[BLOCKS] = true; /* free, on a list */
bool transit[BLOCKS];
bool closing[BLOCKS];       /* in transit to UNOPENED */
bool token[2];              /* on the zone's list */
bool done[4];

#define covers(t, b) (token[t] && b >= t) /* 0: both blocks; 1: the second */
#define holders(b) (covers(0, b) + covers(1, b))
#define sound(b) (holders(b) <= 1 && (!isolated[b] || holders(b) == 1))
#define all_sound (sound(0) && sound(1))

#ifdef BUG_ISOLATES_WHAT_CLOSES
#define comes_or_goes(b) (!opened[b])
#else
#define comes_or_goes(b) (!opened[b] || closing[b])
#endif
#ifdef BUG_CLOSED_UNDER_A_TOKEN
#define closable (listed[0] && listed[1])
#else
#define closable (listed[0] && listed[1] && !holders(0) && !holders(1))
#endif

/* isolate_range(): claim(), token_begin() */
inline claim(t)
{
#ifdef BUG_TOKEN_AFTER_THE_BITS
	mine = true;
#else
	atomic {
#ifdef BUG_OVERLAP_UNCHECKED
		token[t] = true;
#else
		token[t] = !(t == 0 -> holders(0) + holders(1) : holders(1));
#endif
		mine = token[t];
		assert(all_sound)
	}
#endif
}

/* isolate_some(), isolate_obstacle() */
inline isolate_block(t, b)
{
	atomic {
		if
		:: isolated[b] || comes_or_goes(b) -> mine = false
		:: else -> isolated[b] = true; assert(all_sound)
		fi
	}
}

/* isolate_undo(): block by block, the token at the end */
inline undo(t)
{
	b = t;
	do
	:: b < BLOCKS -> atomic { isolated[b] = false; b++ }
	:: else -> break
	od;
	atomic { token[t] = false; assert(all_sound) }
}

/* take_all(): all free, looked at block by block; each taken, and no longer isolated, in a step; the token at the end */
inline take_all(t)
{
	b = t; taken = true;
	do
	:: b < BLOCKS -> atomic { assert(isolated[b]); taken = taken && listed[b]; b++ }
	:: else -> break
	od;
	b = t;
	do
	:: taken && b < BLOCKS ->
		atomic {
			assert(isolated[b] && listed[b]); /* as it was when it was looked at */
			listed[b] = false; transit[b] = true; isolated[b] = false;
			assert(all_sound);
			b++
		}
	:: else -> break
	od;
	if
	:: taken -> atomic { token[t] = false; assert(all_sound) }
	:: else
	fi
}

/* block_publish_free() */
inline publish(b)
{
	atomic { transit[b] = false; listed[b] = true }
}

proctype isolator(byte t)
{
	byte left = TURNS, b;
	bool mine, taken;

	do
	:: left > 0 ->
		claim(t);
		b = t;
		do
		:: mine && b < BLOCKS -> isolate_block(t, b); b++
		:: else -> break
		od;
#ifdef BUG_TOKEN_AFTER_THE_BITS
		token[t] = mine;
#endif
		if
		:: mine ->
			!(transit[1] || (t == 0 && transit[0])); /* published */
			atomic { assert(isolated[1]); assert(t == 1 || isolated[0]) }; /* told: it is yours */
			if
			:: skip
			:: take_all(t)
			fi
		:: else
		fi;
		if
		:: taken ->
#ifdef BUG_UNDONE_AFTER_TAKING
			isolated[1] = false;
#endif
			if
			:: t == 0 -> publish(0)
			:: else
			fi;
			publish(1)
		:: !taken && token[t] ->
			atomic { assert(!mine || (isolated[1] && (t == 1 || isolated[0]))) };
			undo(t)
		:: else
		fi;
		d_step { left--; b = 0; mine = false; taken = false }
	:: left == 0 -> break
	od;
	done[t] = true
}

/* section_close(), take_section(), section_is_free() */
inline close_section()
{
	atomic {
		if
		:: closable ->
			listed[0] = false; listed[1] = false;
			transit[0] = true; transit[1] = true;
			closing[0] = true; closing[1] = true;
			closed = true
		:: else
		fi
	}
}

/* forget_blocks() */
inline forget_blocks()
{
	atomic {
		transit[0] = false; transit[1] = false;
		closing[0] = false; closing[1] = false;
		opened[0] = false; opened[1] = false
	}
}

/* section_publish_records(): the types, with the states; then, under the lock, the lists */
inline open_section()
{
	atomic { assert(!isolated[0] && !isolated[1]); isolated[0] = false; isolated[1] = false; opened[0] = true; opened[1] = true };
	atomic { listed[0] = true; listed[1] = true }
}

proctype closer()
{
	byte left = TURNS;
	bool closed;

	do
	:: left > 0 ->
		close_section();
		if
		:: closed -> forget_blocks(); open_section()
		:: else
		fi;
		d_step { left--; closed = false }
	:: left == 0 -> break
	od;
	done[2] = true
}

/* block_take_in(), and what becomes of it */
proctype taker()
{
	byte left = TURNS, b;
	bool taken;

	do
	:: left > 0 ->
		if
		:: b = 0
		:: b = 1
		fi;
		atomic {
			if
			:: listed[b] && !isolated[b] -> listed[b] = false; transit[b] = true; taken = true
			:: else
			fi
		};
		if
		:: taken -> publish(b)
		:: else
		fi;
		d_step { left--; b = 0; taken = false }
	:: left == 0 -> break
	od;
	done[3] = true
}

proctype judge()
{
	timeout -> assert(done[0] && done[1] && done[2] && done[3] && !isolated[0] && !isolated[1] && !token[0] && !token[1])
}

init
{
	atomic { run isolator(0); run isolator(1); run closer(); run taker(); run judge() }
}
