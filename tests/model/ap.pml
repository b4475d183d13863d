/*
 * Starting CPUs: arch/x86_64/smp/smp.c, trampoline.S, kernel/core/shootdown.c's shootdown_join().
 *
 *   boot CPU   stacks and IDs, then the messages; waits until all have come or it has waited enough; gives up who has not come by
 *              compare-and-swap of its stage, or sees it through if it joins this very moment; returns
 *   AP         one process for each CPU there is: finds its index by its APIC ID, claims it, runs on that index's stack through
 *              the stages, joins, idles. Two of the three here have the same ID (firmware may lie). Each may be slow, for any time
 *              and at any step, or stop for ever
 *
 * A deadline passes whenever it likes: how long is long enough is not modelled, only that being wrong about it is safe.
 *
 * Checked: one CPU at most on a stack, and none on one that has been given away; when arch_cpus_start() has returned every index is
 * online or given up, and stays so; online are exactly those counted in rounds; who was given up never walks the kernel's tables; the
 * boot CPU always returns. -DHANG: a CPU may stop for ever between two stages (debug.ap_hangs=N).
 *
 * Stacks are never given back, because a CPU that was given up may be anywhere before its next stage: BUG_STACK_GIVEN_BACK.
 */
#define INDICES 2 /* beside the boot CPU */
#define CPUS 3    /* that answer: 0 is index 0; 1 and 2 are both index 1 */
#define INDEX_OF(c) (c == 0 -> 0 : 1)

/* enum ap_stage, fewer of those that only count */
#define SILENT 0
#define CLAIMED 1
#define APIC 2
#define JOINING 3
#define ONLINE 4
#define GIVEN_UP 5

byte stage[INDICES] = SILENT;
bool prepared;            /* ap_ids, ap_stacks, ap_root: written before any message, by a CPU whose messages wait for its stores */
bool asked[CPUS];         /* a start-up message has come */
bool online[INDICES];     /* in cpus_online */
bool walks[CPUS];         /* on the kernel's page tables */
byte on_stack[INDICES];   /* CPUs on this stack */
bool stack_reused[INDICES];
bool returned;

#define SETTLED(i) (stage[i] == GIVEN_UP || (stage[i] == ONLINE && online[i]))

/* After the return nothing changes any more. */
#define RULES (!returned || (SETTLED(0) && SETTLED(1)))

inline use_stack()
{
	assert(on_stack[me] == 1 && !stack_reused[me])
}

/* reach(): on, or parked. */
inline reach(from, to)
{
#ifdef BUG_STAGE_STORED
	use_stack();
	stage[me] = to;
	assert(RULES)
#else
	use_stack();
	if
	:: d_step { stage[me] == from -> stage[me] = to }
	:: stage[me] != from -> goto park_me
	fi
#endif
}

proctype ap(byte c)
{
	byte me = INDEX_OF(c);

end_halted:
	asked[c];
	/* trampoline.S: ap_entry64 */
	assert(prepared);
#ifdef BUG_CLAIM_NOT_ATOMIC
	if
	:: stage[me] == SILENT -> skip
	:: else -> goto parked
	fi;
	stage[me] = CLAIMED;
#else
	if
	:: d_step { stage[me] == SILENT -> stage[me] = CLAIMED }
	:: stage[me] != SILENT -> goto parked /* "cli; hlt" */
	fi;
#endif
	on_stack[me]++;
	use_stack();
#ifdef HANG
	if
	:: stage[me] == GIVEN_UP -> goto park_me /* hang_if_asked() */
	:: true
	fi;
#endif
	reach(CLAIMED, APIC);
#ifdef BUG_JOINS_UNANNOUNCED
	skip;
#else
	reach(APIC, JOINING);
#endif
	/* shootdown_join() */
	use_stack();
	online[me] = true;
	d_step { walks[c] = true; assert(stage[me] != GIVEN_UP) };
	d_step { stage[me] = ONLINE; assert(RULES) };
	use_stack();
end_idle:
	false;
park_me:
	on_stack[me]--;
parked:
end_parked:
	false
}

/* Stage by stage, while one passes the other may change. */
inline send_to_silent()
{
	if
	:: stage[0] == SILENT -> asked[0] = true
	:: else
	fi;
	if /* the message for an ID reaches whoever has it; one of them may be deaf */
	:: stage[1] == SILENT ->
		if
		:: asked[1] = true
		:: asked[2] = true
		:: d_step { asked[1] = true; asked[2] = true }
		fi
	:: else
	fi
}

inline give_up(i)
{
	do
	:: true ->
		seen = stage[i];
		if
#ifdef BUG_GIVES_UP_WHO_JOINS
		:: seen < ONLINE ->
#else
		:: seen < JOINING ->
#endif
#ifdef BUG_GIVEN_UP_BY_STORE
			stage[i] = GIVEN_UP;
			break
#else
			if
			:: d_step { stage[i] == seen -> stage[i] = GIVEN_UP } -> break
			:: stage[i] != seen
			fi
#endif
		:: else ->
#ifndef BUG_NOT_SEEN_THROUGH
			stage[i] == ONLINE;
#endif
			break
		fi
	od;
#ifdef BUG_STACK_GIVEN_BACK
	if
	:: stage[i] == GIVEN_UP -> stack_reused[i] = true
	:: else
	fi;
#endif
	seen = 0
}

/* next_underway(): "has it come?", asked once more after any time. */
inline wait_underway(i)
{
	if
	:: stage[i] >= ONLINE
	:: true /* waited enough */
	fi
}

active proctype boot_cpu()
{
	byte seen;

#ifdef BUG_ASKED_BEFORE_PREPARED
	send_to_silent();
	prepared = true;
#else
	prepared = true;
	send_to_silent();
#endif
	wait_underway(0); wait_underway(1);
	send_to_silent();
	wait_underway(0); wait_underway(1);
	if
	:: stage[0] < ONLINE -> give_up(0)
	:: else
	fi;
	if
	:: stage[1] < ONLINE -> give_up(1)
	:: else
	fi;
	d_step { returned = true; assert(RULES) }
}

proctype judge()
{
	timeout -> assert(returned && (online[0] == (stage[0] == ONLINE)) && (online[1] == (stage[1] == ONLINE)) &&
			  !(walks[1] && walks[2]))
}

init
{
	atomic { run ap(0); run ap(1); run ap(2); run judge() }
}
