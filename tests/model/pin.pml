/*
 * A touch of a huge mapping against its unmapping and against taking writing away: mm/mapping/huge_map.c, huge_fault.c, huge_unmap.c.
 *
 *   toucher    pins the mapping that it finds in the slot: notes it, fence, looks again; brings a page if there is none, with the rights
 *              that it reads after it has claimed the entry; unpins
 *   unmapper   empties the slot, fence, waits until no CPU has the mapping pinned, takes pages and tables away
 *   protector  (-DPROTECT, in place of the unmapper) writes the rights, fence, then walks the entries and changes those that are there
 *
 * Hardware: plain stores wait in a buffer of their CPU (Intel SDM vol. 3A, 9.2.3.4): those of the slot, of `pinned` and of the rights are
 * plain. Claiming an entry is a locked instruction.
 *
 * Checked: nobody works on the tables of a mapping that is gone; no page is left behind, or brought into it, by then; when writing was
 * taken away no entry allows it; all come to an end.
 */
#define TOUCHES 2

bool slot = true;    /* the mapping is in it */
bool pinned;         /* this_cpu()->pinned == map, of the toucher */
bool read_only;
bool tables = true;  /* the mapping's tables exist */
bool present, writable, claimed;
bool gone, protected;
bool finished[2];

#define SLOT 0
#define PIN 1
#define UNPIN 2
#define RIGHTS 3
chan buffer[2] = [2] of { byte };
#define fence(c) empty(buffer[c])

/* huge_pin() */
inline pin()
{
	mine = slot;
	if
	:: mine ->
		buffer[0]!PIN;
#ifndef BUG_PINNED_WITHOUT_FENCE
		fence(0);
#endif
#ifndef BUG_NOT_LOOKED_AGAIN
		mine = slot;
#endif
	:: else
	fi
}

/* huge_touch(), bring_page() */
inline touch()
{
	assert(tables);
	if
	:: present /* there already */
	:: !present ->
#ifdef BUG_RIGHTS_READ_EARLY
		allowed = !read_only;
#endif
		atomic { fence(0); !claimed -> claimed = true }; /* compare and swap */
		if
		:: present -> claimed = false /* somebody was first */
		:: else ->
			assert(tables);
#ifndef BUG_RIGHTS_READ_EARLY
			allowed = !read_only;
#endif
			d_step { present = true; writable = allowed; claimed = false; assert(tables && !gone && (!protected || !writable)) }
		fi
	fi;
	assert(tables)
}

proctype toucher()
{
	byte left = TOUCHES;
	bool mine, allowed;

	do
	:: left > 0 ->
		pin();
		if
		:: mine -> touch()
		:: else
		fi;
		buffer[0]!UNPIN;
		d_step { left--; mine = false; allowed = false }
	:: left == 0 -> break
	od;
	finished[0] = true
}

/* huge_unmap() */
inline unmap()
{
	buffer[1]!SLOT;
#ifndef BUG_EMPTIED_WITHOUT_FENCE
	fence(1);
#endif
#ifndef BUG_NOT_WAITED_UNPINNED
	!pinned; /* wait_unpinned() */
#endif
	atomic { fence(1); !claimed -> claimed = true }; /* claim_leaf() */
	d_step { present = false; claimed = false };
	d_step { tables = false; gone = true; assert(!present) }
}

/* huge_protect() */
inline protect()
{
	buffer[1]!RIGHTS;
#ifndef BUG_RIGHTS_WITHOUT_FENCE
	fence(1);
#endif
	do
	:: claimed /* huge_settled() */ -> !claimed
	:: !claimed && !present -> break
	:: d_step { !claimed && present -> writable = false }; break
	od;
	skip;
	d_step { protected = true; assert(!(present && writable)) }
}

proctype other()
{
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
		:: what == SLOT -> slot = false
		:: what == PIN -> pinned = true
		:: what == UNPIN -> pinned = false
		:: what == RIGHTS -> read_only = true
		fi;
		what = 0;
		assert(!protected || !(present && writable))
	   }
	od
}

proctype judge()
{
	timeout -> assert(finished[0] && finished[1] && (!protected || !(present && writable)) && (!gone || !present))
}

init
{
	atomic { run store_buffer(0); run store_buffer(1); run toucher(); run other(); run judge() }
}
