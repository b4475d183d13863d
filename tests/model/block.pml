/*
 * Blocks, their struct pages and the section's page table: mm/memmap/block_state.c, mm/hvo/hvo.c, mm/hvo/hvo_take.c, mm/memmap/vmemmap.c,
 * mm/zone/section_close.c, mm/memmap/meta.c.
 *
 *   section (one PMD entry):  none | leaf over frames L0..L3 | table of four PTEs
 *   block b                   two PTEs: 2b for the frame of its head, 2b + 1 for all other frames of struct pages
 *
 * Two CPUs run operations on two blocks of one section, so that they meet in splitting, closing and metadata memory. A third, the observer,
 * stands for any CPU: it is busy or idle, caches what it likes of what it walks (a translation of the whole section, the pointer to
 * the table, and one PTE, any one but always the same) and forgets only when it flushes (Intel SDM vol. 3A, 4.10.2
 * and 4.10.3; AMD APM vol. 2, 5.5). Also an idle CPU may walk, from what it has cached, before its flush; it does not write.
 * Rounds and tags are here what shootdown.pml has shown them to be.
 *
 * Checked: nobody walks a freed table; nobody can have two translations of one address of different size and frame at once; no
 * writable translation of the shared tail frame exists; nobody can write to a frame in its next life; what a CPU uses of a block
 * that is not in transit is what the tables say (so a huge page has one head); every change of state is in the table of
 * block_state.c. That waits end is shootdown.pml's business.
 *
 * -DMAPPED: the section is opened mapped (a leaf), else on demand. -DPOOL=n: frames of metadata memory at the start; few of them make the
 * operators use blocks as metadata memory. -DBUG_... plants a bug: run.py has the list.
 */
#define BLOCKS 2

#ifndef OPERATIONS
#define OPERATIONS 3 /* of CPU 0 */
#endif
#ifndef OPERATIONS_1
#define OPERATIONS_1 OPERATIONS
#endif
#ifndef POOL
#define POOL 5
#endif

/* Frames. Entries of page tables are 2 * frame + writable. */
#define NO_FRAME 0
#define L(k) (1 + (k))
#define SHARED 5
#define POOL_FIRST 6
#define IN_META(b) (11 + (b)) /* one that block b holds while it is metadata memory */
#define FRAMES 13

#define RW(f) (2 * (f) + 1)
#define RO(f) (2 * (f))
#define FRAME(entry) ((entry) >> 1)
#define WRITABLE(entry) ((entry) & 1)

mtype = { UNOPENED, OPENING, OPEN, CLOSING };   /* section */
mtype = { NEW, BARE, HUGE, FULL, META };        /* block; NEW: of an unopened section */
mtype = { ABSENT, FREE, USED, GATED };          /* frame */
mtype = { NONE, LEAF, TABLE };                  /* PMD entry */

mtype section = UNOPENED;
mtype state[BLOCKS] = NEW;
bool transit[BLOCKS];
mtype pmd = NONE;
byte table;  /* frame of the table, if pmd == TABLE */
byte pte[4]; /* in it */
byte splits_unflushed;

mtype frame[FRAMES];
byte frame_tag[FRAMES];
byte purpose[FRAMES]; /* k + 1: struct pages behind PTE k; AS_TABLE */
#define AS_TABLE 5

byte G, done;
byte due[BLOCKS]; /* a huge block whose remap waits for a round of this generation; nobody uses it before */

/* The observer. */
byte k;         /* the PTE it caches */
byte published;
bool idle;
bool has_leaf;  /* TLB: the section as one 2 MiB */
byte has_table; /* paging-structure cache: frame of the table */
byte has_pte;   /* TLB: PTE k */

/* A busy CPU could store through this translation into what the frame has become. */
#define MAY_WRITE(entry) ((entry) != 0 && WRITABLE(entry) && frame[FRAME(entry)] == USED && purpose[FRAME(entry)] != k + 1)
/* What it uses of a settled block is what the tables say. */
#define CURRENT (transit[k / 2] || due[k / 2] > done || ((has_pte == 0 || (pmd == TABLE && has_pte == pte[k]) || \
	(pmd == LEAF && has_pte == RW(L(k)))) && (!has_leaf || pmd == LEAF || (pmd == TABLE && pte[k] == RW(L(k))))))
#define SAFE (idle || (!MAY_WRITE(has_pte) && !(has_leaf && MAY_WRITE(RW(L(k)))) && CURRENT))

inline flush()
{
	has_leaf = false; has_table = 0; has_pte = 0; published = G
}

active proctype observer()
{
	select(k : 0 .. 3);
end:	do
	/* walks: busy or idle */
	:: d_step { pmd == LEAF && !has_leaf && has_table == 0 -> has_leaf = true;
		assert(has_pte == 0 || FRAME(has_pte) == L(k)) }
	:: d_step { pmd == TABLE && has_table == 0 -> has_table = table }
	:: d_step { has_table != 0 ->
		assert(frame[has_table] == USED && purpose[has_table] == AS_TABLE); /* no access through a freed table */
		if
		:: has_pte == 0 && has_table == table && pmd != LEAF && pte[k] != 0 -> has_pte = pte[k];
			assert(FRAME(has_pte) != SHARED || !WRITABLE(has_pte));
			assert(!has_leaf || FRAME(has_pte) == L(k)) /* size and frame differ */
		:: else
		fi }
	/* interrupted, or flushing for reasons of its own; leaving idle is the same: nothing is used before */
	:: d_step { published != G -> flush(); idle = false }
	:: d_step { idle && published == G -> idle = false; assert(SAFE) }
	:: d_step { !idle -> assert(SAFE); idle = true }
	:: d_step { !idle && !SAFE -> assert(false) }
	od
}

/* ---- metadata memory ---- */

/* block_release_gated(), then the lowest free frame. 0 if there is none. */
inline take_frame(f, owner)
{
	d_step {
		i = 1;
		do
		:: i < FRAMES ->
			if
#ifdef BUG_GATE_IGNORED
			:: frame[i] == GATED -> frame[i] = FREE; frame_tag[i] = 0; purpose[i] = 0
#else
			:: frame[i] == GATED && done >= frame_tag[i] -> frame[i] = FREE; frame_tag[i] = 0; purpose[i] = 0
#endif
			:: else
			fi;
			i++
		:: else -> break
		od;
		f = 1;
		do
		:: f < FRAMES && frame[f] != FREE -> f++
		:: else -> break
		od;
		if
		:: f == FRAMES -> f = NO_FRAME
		:: else -> frame[f] = USED; purpose[f] = owner; assert(SAFE)
		fi;
		i = 0
	}
}

inline give_frame(f)
{
	d_step { frame[f] = FREE; purpose[f] = 0 }
}

/* shootdown_tag() and meta_give(). */
inline gate_frame(f)
{
#ifdef BUG_FREED_UNGATED
	give_frame(f)
#else
	d_step {
		frame[f] = GATED;
#ifdef BUG_TAG_OF_LAST_ROUND
		frame_tag[f] = G
#else
		frame_tag[f] = G + 1
#endif
	}
#endif
}

/* ---- rounds: shootdown_full() ---- */

inline round(skip_idle)
{
	d_step { G++; g = G };
	published >= g || (skip_idle && idle);
	d_step { done = (done > g -> done : g); g = 0 }
}

#define ALL_CPUS false
#define SKIP_IDLE true

/* ---- blocks ---- */

inline set_state(b, to)
{
	d_step {
		assert((state[b] == NEW && (to == BARE || to == FULL)) ||
		       (state[b] == BARE && (to == HUGE || to == FULL || to == META || to == NEW)) ||
		       (state[b] == HUGE && (to == BARE || to == FULL)) ||
		       (state[b] == FULL && (to == HUGE || to == NEW)) ||
		       (state[b] == META && to == BARE));
		state[b] = to
	}
}

/* Every round that a change needs lies before this. */
inline publish(b)
{
	d_step { transit[b] = false; assert(SAFE) }
}

/* huge_from_bare() */
inline bare_to_huge(b)
{
	take_frame(f, 2 * b + 1);
	if
	:: f != NO_FRAME ->
#ifdef BUG_TAIL_WRITABLE
		pte[2 * b + 1] = RW(SHARED);
#else
		pte[2 * b + 1] = RO(SHARED);
#endif
		pte[2 * b] = RW(f);
		set_state(b, HUGE)
	:: else
	fi;
	publish(b);
	f = 0
}

/* Opening a bare block to be split: private struct pages. */
inline bare_to_full(b)
{
	take_frame(f, 2 * b + 1);
	if
	:: f != NO_FRAME ->
		take_frame(f2, 2 * b + 2);
		if
		:: f2 != NO_FRAME ->
			pte[2 * b] = RW(f);
			pte[2 * b + 1] = RW(f2);
			set_state(b, FULL)
		:: else -> give_frame(f)
		fi
	:: else
	fi;
	publish(b);
	f = 0; f2 = 0
}

/* hvo_unshare() */
inline huge_to_bare(b)
{
	f = FRAME(pte[2 * b]);
	pte[2 * b] = 0;
	pte[2 * b + 1] = 0;
	gate_frame(f);
	set_state(b, BARE);
#ifndef BUG_BARE_WITHOUT_ROUND
	round(SKIP_IDLE);
#endif
	due[b] = 0;
	publish(b);
	f = 0
}

/* huge_from_full(), mode on: the head stays where it is. */
inline full_to_huge_on(b)
{
	f = FRAME(pte[2 * b + 1]);
	pte[2 * b + 1] = RO(SHARED);
	gate_frame(f);
	g = G + 1;
#ifdef BUG_HEAD_MOVES
	f2 = FRAME(pte[2 * b]);
	take_frame(f, 2 * b + 1);
	if
	:: f != NO_FRAME -> pte[2 * b] = RW(f); gate_frame(f2)
	:: else
	fi;
	f2 = 0;
	publish(b);
	set_state(b, HUGE);
	round(SKIP_IDLE);
#else
	set_state(b, HUGE);
#ifdef BUG_PUBLISHED_BEFORE_ROUND
	publish(b);
	round(SKIP_IDLE);
#else
	if
	:: round(SKIP_IDLE)
	:: due[b] = g; g = 0 /* deferred: a later batch's round may serve this block too */
	fi;
	publish(b);
#endif
#endif
	f = 0
}

/* hvo_settle(): somebody is to use the page. */
inline hand_out(b)
{
	if
	:: due[b] > done ->
#ifndef BUG_GIVEN_BEFORE_ROUND
		round(SKIP_IDLE)
#endif
	:: else
	fi;
	due[b] = 0;
	publish(b)
}

/* The same in a baseline mode: a new head frame, and everybody is interrupted. */
inline full_to_huge_batched(b)
{
	take_frame(f, 2 * b + 1);
	if
	:: f != NO_FRAME ->
		f2 = FRAME(pte[2 * b]);
		pte[2 * b] = RW(f);
		f = FRAME(pte[2 * b + 1]);
		pte[2 * b + 1] = RO(SHARED);
		gate_frame(f);
		gate_frame(f2);
		set_state(b, HUGE);
		round(ALL_CPUS)
	:: else
	fi;
	publish(b);
	f = 0; f2 = 0
}

/* restore_run() */
inline huge_to_full(b)
{
	take_frame(f, 2 * b + 2);
	if
	:: f != NO_FRAME ->
		pte[2 * b + 1] = RW(f);
		set_state(b, FULL);
#ifndef BUG_RESTORED_WITHOUT_ROUND
		round(SKIP_IDLE);
#endif
		due[b] = 0
	:: else
	fi;
	publish(b);
	f = 0
}

/*
 * split_section() and split_round(), for the section of a block that this CPU has in transit. Without a frame for the table the block is
 * left out, and whoever splits the leaf afterwards changes nothing about that.
 */
inline split()
{
	if
	:: pmd == LEAF ->
		take_frame(f, AS_TABLE);
		if
		:: f != NO_FRAME ->
			if
			:: d_step { pmd == LEAF && table == 0 -> /* looked at again under the section's lock */
				pte[0] = RW(L(0)); pte[1] = RW(L(1)); pte[2] = RW(L(2)); pte[3] = RW(L(3));
#ifndef BUG_SPLIT_COUNTED_LATE
				splits_unflushed++;
#endif
				table = f };
				pmd = TABLE; /* still under the lock */
#ifdef BUG_SPLIT_COUNTED_LATE
				splits_unflushed++;
#endif
#ifdef BUG_SPLIT_SKIPS_IDLE
				round(SKIP_IDLE);
#elif !defined(BUG_SIZE_AND_FRAME_AT_ONCE)
				round(ALL_CPUS);
#endif
				splits_unflushed--
			:: table != 0 -> pmd != LEAF; give_frame(f) /* another CPU was first */
			fi
		:: else -> left_out = (pmd == LEAF)
		fi;
		f = 0
	:: pmd != LEAF
	fi;
#ifndef BUG_LOSER_GOES_ON
	splits_unflushed == 0;
#endif
#ifdef BUG_LOOKS_AGAIN
	left_out = (pmd == LEAF)
#endif
}

/* ---- sections ---- */

inline open_section()
{
#ifdef MAPPED
	d_step {
		frame[L(0)] = USED; frame[L(1)] = USED; frame[L(2)] = USED; frame[L(3)] = USED;
		purpose[L(0)] = 1; purpose[L(1)] = 2; purpose[L(2)] = 3; purpose[L(3)] = 4;
		assert(SAFE);
		pmd = LEAF
	};
	set_state(0, FULL);
	set_state(1, FULL);
	section = OPEN;
#else
	take_frame(f, AS_TABLE);
	if
	:: f != NO_FRAME ->
		d_step { pte[0] = 0; pte[1] = 0; pte[2] = 0; pte[3] = 0; table = f };
		pmd = TABLE;
		set_state(0, BARE);
		set_state(1, BARE);
		section = OPEN
	:: else -> section = UNOPENED
	fi;
	f = 0;
#endif
	publish(0);
	publish(1)
}

/* meta_remove_block(): no frame of the section's struct pages is in use elsewhere; those that wait do so for this round. */
#define OWN_FRAMES(kk) (frame[L(kk)] == ABSENT || frame[L(kk)] == FREE || frame[L(kk)] == GATED || \
	(frame[L(kk)] == USED && (pmd == LEAF || FRAME(pte[kk]) == L(kk))))
#define CLOSABLE (section == OPEN && !transit[0] && !transit[1] && (state[0] == BARE || state[0] == FULL) && \
	(state[1] == BARE || state[1] == FULL) && OWN_FRAMES(0) && OWN_FRAMES(1) && OWN_FRAMES(2) && OWN_FRAMES(3))

/* A frame that a PTE of the dismantled table mapped: back to metadata memory, or away with the section's memmap block. */
inline free_mapped(kk)
{
	if
	:: d_step { FRAME(pte[kk]) >= POOL_FIRST -> frame[FRAME(pte[kk])] = FREE; purpose[FRAME(pte[kk])] = 0 }
	:: else
	fi
}

inline close_section()
{
	pmd = NONE;
#ifdef BUG_SKIP_IDLE_WHEN_TABLE_FREED
	round(SKIP_IDLE);
#elif !defined(BUG_CLOSE_WITHOUT_ROUND)
	round(ALL_CPUS);
#endif
	if
	:: table != 0 ->
		free_mapped(0); free_mapped(1); free_mapped(2); free_mapped(3);
		d_step { frame[table] = FREE; purpose[table] = 0; table = 0;
			pte[0] = 0; pte[1] = 0; pte[2] = 0; pte[3] = 0 }
	:: else
	fi;
#ifdef MAPPED
	d_step { /* the memmap block is ordinary memory again: somebody uses it for something else */
		frame[L(0)] = USED; frame[L(1)] = USED; frame[L(2)] = USED; frame[L(3)] = USED;
		purpose[L(0)] = 0; purpose[L(1)] = 0; purpose[L(2)] = 0; purpose[L(3)] = 0;
		assert(SAFE);
		frame[L(0)] = ABSENT; frame[L(1)] = ABSENT; frame[L(2)] = ABSENT; frame[L(3)] = ABSENT;
		frame_tag[L(0)] = 0; frame_tag[L(1)] = 0; frame_tag[L(2)] = 0; frame_tag[L(3)] = 0
	};
#endif
	set_state(0, NEW);
	set_state(1, NEW);
	d_step { transit[0] = false; transit[1] = false; section = UNOPENED; assert(SAFE) }
}

/* Under the zone lock: off its list, in transit. */
#define take_block(b, from) d_step { section == OPEN && !transit[b] && state[b] == from -> transit[b] = true }

/* Metadata memory -> BARE: nothing in it in use or waiting. Its frame is then anybody's. */
#ifdef BUG_META_LEFT_WHILE_GATED
#define META_EMPTY(b) (frame[IN_META(b)] == FREE || frame[IN_META(b)] == GATED)
#else
#define META_EMPTY(b) (frame[IN_META(b)] == FREE || (frame[IN_META(b)] == GATED && done >= frame_tag[IN_META(b)]))
#endif

inline operations_on(b)
{
	if
#ifdef MAPPED
	:: take_block(b, FULL) ->
		split();
		if
		:: left_out -> publish(b) /* no frame for the table */
		:: !left_out -> full_to_huge_on(b)
		:: !left_out -> full_to_huge_batched(b)
		fi;
		left_out = false
	:: take_block(b, HUGE) -> huge_to_full(b)
	:: take_block(b, HUGE) -> hand_out(b)
#else
	:: take_block(b, BARE) ->
		if
		:: bare_to_huge(b)
		:: bare_to_full(b)
		:: d_step { frame[IN_META(b)] = FREE; purpose[IN_META(b)] = 0 }; set_state(b, META); publish(b)
		fi
	:: take_block(b, HUGE) -> huge_to_bare(b)
	:: take_block(b, HUGE) -> huge_to_full(b)
	:: take_block(b, HUGE) -> hand_out(b)
	:: take_block(b, FULL) -> full_to_huge_on(b)
	:: d_step { /* meta_trim(): taken out of metadata memory under its lock; its frame's next life begins */
		state[b] == META && META_EMPTY(b) -> transit[b] = true;
		frame[IN_META(b)] = USED; purpose[IN_META(b)] = 0; assert(SAFE);
		frame[IN_META(b)] = ABSENT; frame_tag[IN_META(b)] = 0 } ->
		set_state(b, BARE);
		publish(b)
#endif
	:: d_step { section == UNOPENED -> section = OPENING; transit[0] = true; transit[1] = true } -> open_section()
	:: d_step { CLOSABLE -> section = CLOSING; transit[0] = true; transit[1] = true } -> close_section()
	fi
}

proctype operator(byte b)
{
	byte f, f2, g, i, left;
	bool left_out;

	left = (b == 0 -> OPERATIONS : OPERATIONS_1);
	do
	:: left > 0 -> operations_on(b); left--
	:: left == 0 -> break
	od
}

init
{
	byte n;

	d_step {
		do
		:: n < FRAMES ->
			frame[n] = ABSENT;
			if
			:: n >= POOL_FIRST && n < POOL_FIRST + POOL -> frame[n] = FREE
			:: else
			fi;
			n++
		:: else -> break
		od;
		n = 0
	};
	run operator(0);
	run operator(1)
}
