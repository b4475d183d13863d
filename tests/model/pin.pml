/*
 * A touch against a call that changes the area: mm/vm/space.c, touch.c, pages.c. See mm/vm/space.h for BUSY and pin.
 *
 *   toucher  pins the page, fence, looks for the area; if it is busy, unpins, waits and looks again; brings a page with the area's rights
 *            if there is none; unpins
 *   caller   sets BUSY, fence, waits until the page is not pinned; then takes page and tables away and removes the area, or (-DPROTECT)
 *            changes the entry, stores the rights and clears BUSY
 *
 * Hardware: plain stores wait in a buffer of their CPU (Intel SDM vol. 3A, 9.2.3.4): those of the pin, of the tree, and of the caller to
 * the entry. The toucher claims the entry by a locked instruction. A look at the area is one step: the tree's sequence lock gives a
 * consistent copy.
 *
 * Checked: nobody works on tables that are gone; no page is left behind, or brought, by then; when writing was taken away no entry allows
 * it; all come to an end.
 */
#define TOUCHES 2

bool pinned;       /* the toucher's pin is this page */
bool area = true;  /* it is in the tree */
bool busy, read_only;
bool tables = true;
bool present, writable;
bool gone, protected;
bool finished[2];

#define PIN 1
#define UNPIN 2
#define BUSY 3
#define TAKE_PAGE 4
#define TAKE_WRITING 5
#define REMOVE 6
#define PUT_BACK 7
chan buffer[2] = [2] of { byte };
#define fence(c) empty(buffer[c])

/* space_pin() */
inline pin()
{
	do
	:: buffer[0]!PIN;
#ifndef BUG_PINNED_WITHOUT_FENCE
	   fence(0);
#endif
	   d_step { found = area; waits = area && busy; allowed = !read_only };
#ifdef BUG_BUSY_NOT_LOOKED_AT
	   waits = false;
#endif
	   if
	   :: waits -> buffer[0]!UNPIN; !busy /* wait_settled() */
	   :: else -> break
	   fi
	od
}

/* pages_touch() */
inline touch()
{
	assert(tables);
	if
	:: present /* there already */
	:: !present ->
		fence(0);
		d_step { /* compare and swap */
			assert(tables);
			if
			:: !present -> present = true; writable = allowed
			:: else /* somebody was first */
			fi;
			assert(!gone && (!protected || !writable))
		}
	fi;
	assert(tables)
}

proctype toucher()
{
	byte left = TOUCHES;
	bool found, waits, allowed;

	do
	:: left > 0 ->
		pin();
		if
		:: found -> touch()
		:: else
		fi;
		buffer[0]!UNPIN;
		d_step { left--; found = false; waits = false; allowed = false }
	:: left == 0 -> break
	od;
	finished[0] = true
}

/* space_claim(), space_take() */
inline take()
{
	buffer[1]!BUSY;
#ifndef BUG_BUSY_WITHOUT_FENCE
	fence(1);
#endif
#ifndef BUG_NOT_WAITED_UNPINNED
	!pinned; /* wait_unpinned() */
#endif
}

/* mapping_remove() */
inline unmap()
{
	if
	:: present -> buffer[1]!TAKE_PAGE
	:: else
	fi;
	fence(1); /* the round */
	d_step { tables = false; gone = true; assert(!present) };
	buffer[1]!REMOVE
}

/* pages_protect(), space_put_back() */
inline protect()
{
	if
	:: present -> buffer[1]!TAKE_WRITING; fence(1) /* the round */
	:: else
	fi;
	d_step { protected = true; assert(!(present && writable)) };
	buffer[1]!PUT_BACK
}

proctype caller()
{
	take();
#ifdef PROTECT
	protect();
#else
	unmap();
#endif
	finished[1] = true
}

proctype store_buffer(byte c)
{
	byte what;

end:	do
	:: atomic {
		buffer[c]?what;
		if
		:: what == PIN -> pinned = true
		:: what == UNPIN -> pinned = false
		:: what == BUSY -> busy = true
		:: what == TAKE_PAGE -> present = false
		:: what == TAKE_WRITING -> writable = false
		:: what == REMOVE -> area = false; busy = false
		:: what == PUT_BACK -> read_only = true; busy = false
		fi;
		what = 0
	   }
	od
}

proctype judge()
{
	timeout -> assert(finished[0] && finished[1] && (!protected || !(present && writable)) && (!gone || !present))
}

init
{
	atomic { run store_buffer(0); run store_buffer(1); run toucher(); run caller(); run judge() }
}
