/*
 * Per-CPU lists against drains, disabling and isolation: mm/pcp.c, pcp_drain.c, page_fast.h, isolate.c, kernel/call.c.
 *
 *   owner      takes and frees pages of one block: from its list and to it, or under the zone's lock. Between any two steps its
 *              interrupt may come: the drain that another CPU asks for. Or has a turn at the lock for something else (zone_unlock())
 *   isolator   sets the block's isolation bit under the zone's lock, drains all, looks, takes the bit back; or disables lists,
 *              which raises a count and drains all, looks, enables them
 *   second     (-DASKERS=2) disables lists at the same time: so a drain that waits for the lock in its interrupt may serve another one
 *
 * A list is a word of bits that its owner reads and writes plainly, in two steps, as the code does: no lock, no locked instruction.
 * Each CPU calls itself through its own interrupt only, so the flag `inside` needs no order but program order.
 *
 * Checked: a page is in one place at any time (buddy, a list, or in use by one CPU), so none is lost or handed out twice; from the end
 * of a drain of an isolated block until the isolation ends, no list has a page of it; the same of all pages while lists are
 * disabled; all free what they have and come to an end (the judge), whatever the interrupts do.
 */
#ifndef OPERATIONS
#define OPERATIONS 2 /* pages that owner 0 takes, at most */
#endif
#ifndef OPERATIONS_1
#define OPERATIONS_1 1
#endif
#ifndef ASKERS
#define ASKERS 1
#endif
#define OWNERS 2
#define PAGES 2
#define ALL 3
#define BIT(p) (1 << (p))

byte buddy = ALL;      /* under the zone's lock */
byte list[OWNERS];     /* struct pcp_zone.map */
byte used[OWNERS];     /* by the owner */
byte wanted[OWNERS];   /* drain_wanted */
bool inside[OWNERS];
bool high[OWNERS];     /* mine->high is computed, and not 0 */
bool isolated;         /* BLOCK_ISOLATED */
byte disabled;         /* zone->pcp_disabled */
#define NOBODY 9
byte zone_lock = NOBODY;

bool quiet_block;      /* what the isolators rely on */
byte quiet_zone;
#define PATIENTLY 2
byte asked[OWNERS * ASKERS]; /* call_from, and its message: drain_request(), or drain_request_again() */
#define BY(asker) asked[me * ASKERS + (asker)]
bool at_lock[OWNERS];  /* percpu.at_locks: has a lock, or queues for one */
byte pending[ASKERS];  /* acknowledgements that call_cpus() waits for */
bool finished[OWNERS];
#ifdef BUG_CUT_BEFORE_THE_LOCK
byte cut[OWNERS];
#endif
byte left_over = ASKERS; /* isolators that are not through */

#define ONCE(p) ((((buddy >> (p)) & 1) + ((list[0] >> (p)) & 1) + ((list[1] >> (p)) & 1) + ((used[0] >> (p)) & 1) + \
		 ((used[1] >> (p)) & 1)) <= 1)
#define RULES (ONCE(0) && ONCE(1))
#define QUIET ((!quiet_block && !quiet_zone) || (list[0] == 0 && list[1] == 0))

/* ---- in the interrupt: drain_request(), drain_request_again() ---- */

#ifdef BUG_DRAINED_WHILE_INSIDE
#define MAY_DRAIN true
#else
#define MAY_DRAIN (!inside[me])
#endif
#ifdef BUG_WAITS_BEHIND_ITSELF
#define MAY_WAIT MAY_DRAIN
#else
#define MAY_WAIT (MAY_DRAIN && !at_lock[me]) /* locks_none() */
#endif

#ifdef BUG_HIGH_SURVIVES
#define FORGET_HIGH skip
#else
#define FORGET_HIGH high[me] = false
#endif

inline give_back_all()
{
	FORGET_HIGH;
	buddy = buddy | list[me];
	list[me] = 0;
	wanted[me] = false;
	assert(RULES)
}

/* One step: nothing of this CPU runs meanwhile, and the lock is had or not. While it queues for a lock itself, either may be. */
inline drain_at_once(asker)
{
	if
	:: d_step { MAY_DRAIN && (list[me] == 0 || zone_lock == NOBODY) ->
		BY(asker) = 0;
		give_back_all();
		pending[asker]-- }
	:: d_step { !MAY_DRAIN || (list[me] != 0 && (zone_lock != NOBODY || at_lock[me])) ->
		BY(asker) = 0;
		if
		:: MAY_DRAIN -> FORGET_HIGH
		:: else
		fi;
#ifdef BUG_LATE_COUNTS_AS_DRAINED
		wanted[me] = (inside[me] -> 1 : 0);
#else
		wanted[me] = 1;
#endif
		pending[asker]-- }
	fi
}

/* The lock is waited for, and who waits serves: another asker's request, which finds that this CPU stands at a lock. */
inline drain_patiently(asker)
{
	d_step { BY(asker) = 0; at_lock[me] = true; FORGET_HIGH };
#ifdef BUG_CUT_BEFORE_THE_LOCK
	cut[me] = list[me];
#endif
	do
	:: atomic { zone_lock == NOBODY -> zone_lock = me }; break
#if ASKERS > 1
	:: BY(1 - asker) -> drain_at_once(1 - asker)
#endif
	od;
	skip;
#ifdef BUG_CUT_BEFORE_THE_LOCK
	d_step { list[me] = list[me] | cut[me]; cut[me] = 0 }; /* whatever was drained meanwhile */
#endif
	d_step { give_back_all(); zone_lock = NOBODY; at_lock[me] = false; pending[asker]-- }
}

inline drain_request(asker)
{
	if
	:: BY(asker) == PATIENTLY && MAY_WAIT && list[me] != 0 -> drain_patiently(asker)
	:: else -> drain_at_once(asker)
	fi
}

/* Interrupts are on, or the wait serves what is asked: between any two steps. */
inline interrupts()
{
	if
	:: BY(0) -> drain_request(0)
#if ASKERS > 1
	:: BY(1) -> drain_request(1)
#endif
	:: true
	fi
}

/* ---- the owner ---- */

inline lock()
{
	at_lock[me] = true;
	do
	:: atomic { zone_lock == NOBODY -> zone_lock = me }; break
	:: BY(0) -> drain_request(0) /* wait_spin() serves */
#if ASKERS > 1
	:: BY(1) -> drain_request(1)
#endif
	od
}

inline unlock()
{
	zone_lock = NOBODY;
	at_lock[me] = false
}

inline enter()
{
#ifdef BUG_TYPE_READ_OUTSIDE
	type = isolated;
	interrupts();
#endif
	inside[me] = true
}

/* drain_this_cpu(may_wait) */
inline drain_mine()
{
	FORGET_HIGH;
	if
	:: list[me] != 0 ->
		lock();
		kept = list[me];
		interrupts();
		d_step { buddy = buddy | kept; list[me] = list[me] & ~kept; kept = 0; assert(RULES) };
		unlock()
	:: else
	fi
}

/* pcp_leave() and pcp_leave_slow() */
inline leave()
{
	interrupts();
	if
	:: wanted[me] ->
#ifdef BUG_NOTE_TAKEN_FIRST
		wanted[me] = false;
		interrupts();
		drain_mine();
#else
		drain_mine();
		interrupts();
		wanted[me] = false;
#endif
	:: else
	fi;
	interrupts(); /* a note that is left here is found when it is asked again */
	inside[me] = false
}

/* pcp_high(): 0 while lists are disabled */
inline compute_high()
{
	if
	:: !high[me] -> high[me] = (disabled == 0)
	:: else
	fi
}

/* pcp_alloc(), fetch() */
inline take_page()
{
	enter();
	word = list[me];
	interrupts();
	if
	:: word != 0 ->
		page = word & (256 - word); /* the lowest */
		d_step { list[me] = word & ~page; used[me] = used[me] | page; assert(RULES) }
	:: else ->
		compute_high();
		interrupts();
		lock();
		atomic {
			if
			:: buddy != 0 && !isolated && high[me] -> /* one to use, the rest to the list */
				page = buddy & (256 - buddy);
				word = buddy & ~page;
				buddy = 0
			:: buddy != 0 && !isolated && !high[me] ->
				page = buddy & (256 - buddy);
				word = 0;
				buddy = buddy & ~page
			:: else -> page = 0; word = 0 /* nothing, or nothing that is given out */
			fi
		};
		unlock();
		interrupts();
		d_step { list[me] = list[me] | word; used[me] = used[me] | page; assert(RULES && QUIET) }
	fi;
	leave();
	d_step { word = 0; page = 0 }
}

/* pcp_free(), pcp_give_back() */
inline free_page()
{
	page = used[me] & (256 - used[me]);
	enter();
#ifndef BUG_TYPE_READ_OUTSIDE
	type = isolated;
#endif
	interrupts();
	compute_high();
	interrupts();
	if
	:: type || !high[me] ->
		lock();
		atomic { used[me] = used[me] & ~page; buddy = buddy | page; assert(RULES) };
		unlock()
	:: else ->
		word = list[me];
		interrupts();
		d_step { used[me] = used[me] & ~page; list[me] = word | page; assert(RULES && QUIET) }
	fi;
	leave();
	d_step { word = 0; page = 0; type = false }
}

/* Something else under the lock, and zone_unlock(): what it notes is done here. */
inline turn()
{
	lock();
	interrupts();
	unlock();
	if
	:: wanted[me] -> enter(); leave()
	:: else
	fi
}

proctype owner(byte me)
{
	byte left = (me == 0 -> OPERATIONS : OPERATIONS_1), word, page, kept;
	bool type;

	do
	:: left > 0 -> take_page(); left--
	:: left > 0 -> turn(); left--
	:: used[me] != 0 -> free_page()
	:: left == 0 && used[me] == 0 -> break
	od;
	finished[me] = true;
end:	do /* idle, or busy with other things */
	:: BY(0) -> drain_request(0)
#if ASKERS > 1
	:: BY(1) -> drain_request(1)
#endif
	od
}

/* ---- the isolator: a CPU of its own, whose list is empty ---- */

/* call_cpus(), call_cpu() */
inline call_owners()
{
	d_step { pending[me] = 2; asked[me] = 1; asked[ASKERS + me] = 1 };
	pending[me] == 0
}

inline call_owner(one)
{
	d_step { pending[me] = 1; asked[one * ASKERS + me] = PATIENTLY };
	pending[me] == 0
}

/* One after the other: who was seen without a note may have another's by now. */
inline until_drained(one)
{
	do
	:: !wanted[one] -> break
#ifndef BUG_ASKED_ONCE
	:: wanted[one] -> call_owner(one)
#endif
	od
}

/* pcp_drain_all() */
inline drain_all()
{
	call_owners();
	until_drained(0);
	until_drained(1)
}

inline isolator_lock()
{
	atomic { zone_lock == NOBODY -> zone_lock = OWNERS }
}

/* isolate_range(), the drain of contig_take(), isolate_undo() */
inline isolate()
{
#ifdef BUG_DRAINED_BEFORE_ISOLATED
	drain_all();
#endif
	isolator_lock();
	isolated = true;
	zone_lock = NOBODY;
#ifndef BUG_DRAINED_BEFORE_ISOLATED
	drain_all();
#endif
	atomic { quiet_block = true; assert(QUIET) };
	d_step { assert(QUIET); quiet_block = false };
	isolator_lock();
	isolated = false;
	zone_lock = NOBODY
}

/* pcp_disable(), pcp_enable() */
inline disable()
{
#ifdef BUG_COUNT_RAISED_LATE
	drain_all();
	disabled++;
#else
	disabled++;
	drain_all();
#endif
	atomic { quiet_zone++; assert(QUIET) };
	d_step { assert(QUIET); quiet_zone-- };
	disabled--
}

proctype isolator(byte me)
{
	if
	:: me == 0 -> isolate()
	:: disable()
	fi;
	left_over--
}

/* Lists keep what they have; everything is somewhere. */
proctype judge()
{
	timeout -> assert(finished[0] && finished[1] && left_over == 0 && !wanted[0] && !wanted[1] &&
			  (buddy | list[0] | list[1]) == ALL)
}

init
{
	atomic {
		run owner(0); run owner(1); run isolator(0);
#if ASKERS > 1
		run isolator(1);
#endif
		run judge()
	}
}
