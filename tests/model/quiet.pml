/*
 * A quiet CPU: its entry into the kernel against rounds that leave it alone, and the frames that wait for it (kernel/core/shootdown.h,
 * the rule for quiet CPUs).
 *
 *   initiator   unmaps page 0, gates its frame under a tag, and makes a full round; the same with page 1; then it is short of frames: settles
 *   program     becomes quiet, is interrupted (by the initiator or by a device), enters the kernel (a call, or the end); again and again
 *   META        gives a gated frame a new owner as soon as shootdown_reusable() has reached its tag
 *
 * Hardware: as in shootdown.pml. The PTEs and the flag `quiet` are plain stores, which wait in a buffer; G, last_full, done, and published
 * are changed by locked instructions. The TLB takes in everything that is present at every moment, also while the
 * program is quiet.
 *
 * Checked: once a tag is done, the kernel on the program's CPU does not use an old translation; and while a frame has a new owner, the TLB
 * of that CPU has no old translation of it, even if the program is quiet (assertions). When nothing moves any more, both frames were reused
 * and all are through; no run is infinite.
 */
#ifndef VISITS
#define VISITS 2
#endif
#define MIN(a, b) ((a) < (b) -> (a) : (b))
#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define BIT(n) (1 << (n))

byte G, last_full, done, published;
bool quiet;           /* of the program's CPU */
byte mapped = 3;      /* bit p: the PTE of page p is present and writable */
byte tag[2];
byte gated, reused;   /* bit p */

byte tlb = 3;         /* of the program's CPU */
bool uses = true;     /* its kernel may use what the TLB has */
bool ipi, device = true;
bool through[2];

#define SET_QUIET 2
#define CLEAR_QUIET 3
chan buffer[2] = [2] of { byte }; /* of the initiator, and of the program's CPU */
#define locked(c) empty(buffer[c])
#define fence(c) empty(buffer[c])

#define DONE(p) ((gated & BIT(p)) && done >= tag[p])
#define OLD(p) (tlb & ~mapped & BIT(p))
#define SAFE (!(tlb & reused) && !(uses && ((DONE(0) && OLD(0)) || (DONE(1) && OLD(1)))))

/* ---- the program's CPU ---- */

inline flush_and_publish()
{
	g = G;
	d_step { fence(1); tlb = mapped; assert(SAFE) }
	d_step { locked(1); published = MAX(published, g); g = 0 }
}

/* call_serve() */
inline serve()
{
	ipi = false;
	if
	:: published < last_full -> flush_and_publish()
	:: else
	fi
}

/* quiet_begin() */
inline enter_quiet()
{
	uses = false;
	buffer[1]!SET_QUIET
}

/* rest_end(), with interrupts off */
inline leave_quiet()
{
	buffer[1]!CLEAR_QUIET;
#ifdef BUG_INTERRUPTS_ON
	if /* the handler finds that its CPU is not quiet */
	:: device -> device = false; d_step { uses = true; assert(SAFE) }; uses = false
	:: skip
	fi;
#endif
#ifndef BUG_NO_FENCE
	fence(1);
#endif
#ifndef BUG_NO_FLUSH
	if
#ifdef BUG_LOOKS_AT_DONE
	:: published < done -> flush_and_publish()
#else
	:: published < last_full -> flush_and_publish()
#endif
	:: else
	fi;
#endif
	d_step { uses = true; assert(SAFE) }
}

proctype program()
{
	byte g, visits = VISITS;
	bool stays;

	do
	:: visits > 0 ->
		visits--;
		if /* a program may stay quiet until all is done: then only an interrupt makes it flush */
		:: stays = true
		:: stays = false
		fi;
		enter_quiet();
		do /* quiet; an interrupt is an entry, after which the CPU is quiet again */
		:: ipi -> leave_quiet(); serve(); enter_quiet()
		:: device -> device = false; leave_quiet(); enter_quiet()
		:: !stays || through[0] -> break
		od;
		leave_quiet()
	:: visits == 0 -> break
	od;
	through[1] = true;
end:	do
	:: ipi -> serve()
	od
}

/* ---- the initiator ---- */

/* shootdown_full(SHOOTDOWN_SKIP_BOTH); its own flush does not matter here */
inline full_round()
{
#ifdef BUG_QUIET_READ_EARLY
	skips = quiet;
#endif
	d_step { locked(0); G++; mine = G }
	d_step { locked(0); last_full = MAX(last_full, mine) }
#ifndef BUG_QUIET_READ_EARLY
	skips = quiet;
#endif
	if
	:: !skips -> ipi = true; (published >= mine || quiet)
	:: else
	fi;
	d_step { locked(0); done = MAX(done, mine); mine = 0; skips = false; assert(SAFE) }
}

inline unmap_and_gate(p)
{
	buffer[0]!p;
	fence(0);
	tag[p] = G + 1;
	gated = gated | BIT(p)
}

/* shootdown_settle(): asks once, and waits for the flush */
inline settle(p)
{
	if
#ifndef BUG_NOT_ASKED
	:: published < tag[p] && quiet -> ipi = true
#endif
	:: else
	fi;
#ifndef BUG_NOT_WAITED_FOR
	(published >= tag[p])
#endif
}

proctype initiator()
{
	byte mine;
	bool skips;

	unmap_and_gate(0);
	full_round();
	unmap_and_gate(1);
	full_round();
	settle(1);
	assert(done >= tag[1] && published >= tag[1]);
	through[0] = true
}

/* ---- META ---- */

/* gate_release() at shootdown_reusable() */
inline look()
{
	reusable = done;
#ifndef BUG_FRAMES_NOT_HELD
	if
#ifdef BUG_HELD_WHILE_QUIET
	:: !quiet
#endif
	:: else -> reusable = MIN(reusable, published)
	fi
#endif
}

/* It looks when something may have changed: at most twice for each frame, at any time, and for good at the end. */
proctype meta_memory()
{
	byte reusable, looks = 4;
	bool last;

	do
	:: looks > 0 || (through[0] && through[1] && !ipi) ->
		last = looks == 0;
		looks = (last -> 0 : looks - 1);
		look();
		d_step {
			if
			:: (gated & 1) && reusable >= tag[0] -> reused = reused | 1
			:: else
			fi;
			if
			:: (gated & 2) && reusable >= tag[1] -> reused = reused | 2
			:: else
			fi;
			assert(SAFE)
		}
		if
		:: reused == 3 || last -> break
		:: else
		fi;
		reusable = 0
	od
}

proctype store_buffer(byte c)
{
	byte what;

end:	do
	:: atomic {
		buffer[c]?what;
		if
		:: what == SET_QUIET -> quiet = true
		:: what == CLEAR_QUIET -> quiet = false
		:: else -> mapped = mapped & ~BIT(what)
		fi;
		what = 0
	   }
	od
}

proctype judge()
{
	timeout -> assert(through[0] && through[1] && reused == 3)
}

init
{
	atomic {
		run store_buffer(0); run store_buffer(1);
		run initiator(); run program(); run meta_memory(); run judge()
	}
}
