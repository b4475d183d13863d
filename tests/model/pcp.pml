/*
 * Per-CPU lists against drains, disabling and isolation: mm/page/pcp.c, pcp_drain.c, page_fast.h, isolate.c, kernel/core/call.c.
 *
 *   owner      takes and frees pages of one block: from its list and to it, or under the zone's lock. Between any two steps its
 *              interrupt may come: the drain that another CPU asks for. Or has a turn at the lock for something else (zone_unlock())
 *   isolator   sets the block's isolation bit under the zone's lock, drains all, looks, takes the bit back; or disables lists,
 *              which raises a count and drains all, looks, enables them
 *   second     (-DASKERS=2) disables lists at the same time: it joins a drain of the other's that began after it came, or begins
 *              the next
 *
 * A list is a word of bits that its owner reads and writes plainly, in two steps, as the code does: no lock, no locked instruction.
 * Each CPU calls itself through its own interrupt only, so the flag `inside` needs no order but program order. `holding` does: what
 * the fence after it keeps from happening is here a read that comes before it (BUG_HOLDS_UNFENCED).
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
byte drains;           /* mm->drains, drains_done, drain_claim */
byte done;
bool claimed;
byte drained[OWNERS];
bool wanted[OWNERS];   /* drain_wanted */
bool holding[OWNERS];
bool inside[OWNERS];
bool high[OWNERS];     /* mine->high is computed, and not 0 */
bool isolated;         /* BLOCK_ISOLATED */
byte disabled;         /* zone->pcp_disabled */
#define NOBODY 9
byte zone_lock = NOBODY;

bool quiet_block;      /* what the isolators rely on */
byte quiet_zone;
#define PATIENTLY 2
byte asked[OWNERS];    /* call_from, and its message: drain_request(), or drain_request_again(). Of the one that has the claim */
bool at_lock[OWNERS];  /* CONTEXT_LOCKS: has a lock, or queues for one */
byte pending;          /* acknowledgements that call_cpus() waits for */
bool finished[OWNERS];
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

/* say_drained() */
inline say_drained(g)
{
	holding[me] = false;
	drained[me] = g
}

inline give_back_all()
{
	FORGET_HIGH;
	buddy = buddy | list[me];
	list[me] = 0;
	say_drained(drains);
	wanted[me] = false;
	assert(RULES)
}

/* One step: nothing of this CPU runs meanwhile, and the lock is had or not. While it queues for a lock itself, either may be. */
inline drain_at_once()
{
	if
	:: d_step { MAY_DRAIN && (list[me] == 0 || zone_lock == NOBODY) ->
		asked[me] = 0;
		give_back_all();
		pending-- }
	:: d_step { !MAY_DRAIN || (list[me] != 0 && (zone_lock != NOBODY || at_lock[me])) ->
		asked[me] = 0;
		if
		:: MAY_DRAIN -> FORGET_HIGH
		:: else
		fi;
#ifdef BUG_LATE_COUNTS_AS_DRAINED
		if
		:: !inside[me] -> say_drained(drains)
		:: else
		fi;
#endif
		wanted[me] = holding[me] && drained[me] < drains;
		pending-- }
	fi
}

/* The lock is waited for. Who waits serves, but nobody else asks: one CPU has the claim. */
inline drain_patiently()
{
	d_step { asked[me] = 0; at_lock[me] = true; FORGET_HIGH };
	atomic { zone_lock == NOBODY -> zone_lock = me };
	skip;
	d_step { give_back_all(); zone_lock = NOBODY; at_lock[me] = false; pending-- }
}

inline drain_request()
{
	if
	:: asked[me] == PATIENTLY && MAY_WAIT && list[me] != 0 -> drain_patiently()
	:: else -> drain_at_once()
	fi
}

/* Interrupts are on, or the wait serves what is asked: between any two steps. */
inline interrupts()
{
	if
	:: asked[me] -> drain_request()
	:: true
	fi
}

/* ---- the owner ---- */

inline lock()
{
	at_lock[me] = true;
	do
	:: atomic { zone_lock == NOBODY -> zone_lock = me }; break
	:: asked[me] -> drain_request() /* wait_spin() serves */
	od
}

inline unlock()
{
	zone_lock = NOBODY;
	at_lock[me] = false
}

inline enter()
{
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
		g = drains;
		interrupts();
#ifdef BUG_SAID_BEFORE_DRAINED
		d_step { say_drained(g); g = 0 };
		interrupts();
		drain_mine();
		wanted[me] = false;
#else
		drain_mine();
		interrupts();
		d_step { say_drained(g); g = 0 };
		interrupts();
		wanted[me] = false;
#endif
	:: else
	fi;
	interrupts(); /* a note that is left here is found when it is asked again */
	inside[me] = false
}

/* begin_to_hold(): the fence keeps in front of it what stands in front of it. Drains begun so far have nothing to find here. */
inline begin_to_hold()
{
	if
	:: !holding[me] ->
		holding[me] = true;
		drained[me] = drains /* inside: no interrupt does anything */
	:: else
	fi
}

/* pcp_high(): 0 while lists are disabled */
inline compute_high()
{
	if
	:: !high[me] ->
#ifdef BUG_HOLDS_UNFENCED
		may_hold = (disabled == 0);
		interrupts();
		begin_to_hold();
#else
		begin_to_hold();
		may_hold = (disabled == 0);
#endif
		d_step { high[me] = may_hold; may_hold = false }
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
#ifdef BUG_TYPE_READ_OUTSIDE
	type = isolated;
	interrupts();
#endif
	enter();
#ifdef BUG_TYPE_READ_EARLY
	type = isolated;
	interrupts();
#endif
	compute_high();
	interrupts();
#if !defined(BUG_TYPE_READ_OUTSIDE) && !defined(BUG_TYPE_READ_EARLY)
	type = isolated;
	interrupts();
#endif
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

/* Something else under the lock, and zone_unlock(): what is asked for meanwhile is done here. */
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
	byte left = (me == 0 -> OPERATIONS : OPERATIONS_1), word, page, kept, g;
	bool type, may_hold;

	do
	:: left > 0 -> take_page(); left--
	:: left > 0 -> turn(); left--
	:: used[me] != 0 -> free_page()
	:: left == 0 && used[me] == 0 -> break
	od;
	finished[me] = true;
end:	do /* idle, or busy with other things */
	:: asked[me] -> drain_request()
	od
}

/* ---- the isolator: a CPU of its own, whose list is empty ---- */

#define HAS_DRAINED(one, g) (!holding[one] || drained[one] >= (g))

/* choose_holders(): one after the other, then call_cpus() */
inline call_holders()
{
	targets = (HAS_DRAINED(0, g) -> 0 : BIT(0));
	targets = targets | (HAS_DRAINED(1, g) -> 0 : BIT(1));
	d_step {
		pending = (targets & BIT(0)) + ((targets & BIT(1)) -> 1 : 0);
		asked[0] = (targets & BIT(0));
		asked[1] = ((targets & BIT(1)) -> 1 : 0)
	};
	pending == 0
}

inline call_owner(one)
{
	d_step { pending = 1; asked[one] = PATIENTLY };
	pending == 0
}

inline until_drained(one)
{
	do
	:: !(targets & BIT(one)) || HAS_DRAINED(one, g) -> break
#ifndef BUG_ASKED_ONCE
	:: (targets & BIT(one)) && !HAS_DRAINED(one, g) -> call_owner(one)
#endif
	od
}

/* drain_all() */
inline drain_from_begin_to_end()
{
	d_step { drains++; g = drains };
	call_holders();
	until_drained(0);
	until_drained(1);
	done = g
}

/* pcp_drain_all(): joins a drain that began after it came, else claims the next. */
inline drain_all()
{
#ifdef BUG_JOINS_WHAT_BEGAN_BEFORE
	tag = (drains > done -> drains : drains + 1);
#else
	tag = drains + 1;
#endif
	do
	:: done >= tag -> break
	:: atomic { done < tag && !claimed -> claimed = true };
		if
		:: done < tag -> drain_from_begin_to_end()
		:: else
		fi;
		d_step { claimed = false; g = 0; targets = 0 }
	od;
	tag = 0
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
	byte tag, g, targets;

	if
	:: me == 0 -> isolate()
	:: disable()
	fi;
	left_over--
}

/* Lists keep what they have; everything is somewhere. */
proctype judge()
{
	timeout -> assert(finished[0] && finished[1] && left_over == 0 && !claimed && !wanted[0] && !wanted[1] &&
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
