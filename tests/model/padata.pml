/*
 * One job over many CPUs: kernel/core/padata.c, and of kernel/core/call.c the work that is given to an idle CPU.
 *
 *   caller   makes a run on its stack, deals its chunks into shares, gives padata_help() to every CPU whose work slot is free, takes
 *            the chunks of share 0 and then of the others, waits until no helper is left, returns: the stack is somebody else's from then on. Does it JOBS times, so that helpers of the job
 *            before may still be on their way out
 *   helper   idle loop: runs the work in its slot, which begins with the share of its number; with interrupts off looks once more, halts
 *
 * Hardware: the caller's plain store of the slot's function waits in a store buffer until a locked instruction or a fence
 * (Intel SDM vol. 3A, 9.2.3.4); the message that wakes a CPU is sent by a register write that waits for no store (x2APIC:
 * SDM vol. 3A, 11.12.3), so it may overtake. A message that comes while interrupts are off stays pending and ends the halt.
 *
 * Checked: each chunk is done exactly once and before padata_run() returns; nobody touches a run that is gone; who takes part is
 * counted exactly; when nothing moves any more the caller is through (no lost wake-up, no lost work); no run is infinite.
 */
#ifndef HELPERS
#define HELPERS 2
#endif
#ifndef JOBS
#define JOBS 2
#endif
#define CHUNKS 3
#define SHARES 2 /* chunks 0 and 1, chunk 2; a third participant begins with the first share again */
#define IDLE_CPUS 2

/* struct padata_run, on the caller's stack, and struct padata_mt_job. */
bool alive;
byte run_number; /* which job the stack holds: a helper of the one before must not find itself here */
byte next[SHARES], bound[SHARES], joined, helpers, threads;
bool run_lock;
byte times[CHUNKS]; /* chunk n was done so often */

/* struct work_slot. fn and arg are the number of the run, 0: NULL. */
bool claimed[IDLE_CPUS];
byte fn[IDLE_CPUS];
chan fn_stored[IDLE_CPUS] = [1] of { byte }; /* the caller's store buffer */
bool ipi[IDLE_CPUS];

byte took_part; /* what `threads` should say */
bool returned;

#define touches(n) assert(alive && run_number == n)

/* padata_take_chunks(); a look costs nothing and decides nothing, so the model has none */
inline take_chunks(number)
{
	do
	:: true ->
#ifdef BUG_CURSOR_NOT_ATOMIC
		touches(number); chunk = next[share];
		d_step { touches(number); next[share] = chunk + 1 };
#else
		d_step { touches(number); chunk = next[share]; next[share] = chunk + 1 };
#endif
		if
		:: chunk < bound[share] -> d_step { touches(number); times[chunk]++; assert(times[chunk] == 1) }
		:: else -> break
		fi
	od;
	chunk = 0
}

/* padata_take_shares(): `share` is the one to begin with, any number. */
inline take_shares(number)
{
	share = share % SHARES;
	take_chunks(number);
#ifndef BUG_OTHERS_SHARES_LEFT
	share = (share + 1) % SHARES;
	take_chunks(number);
#endif
	share = 0
}

/* padata_count() */
inline count(number)
{
#ifndef BUG_COUNTED_WITHOUT_LOCK
	atomic { touches(number); !run_lock -> run_lock = true };
#endif
	before = threads;
	d_step { touches(number); threads = before + 1; took_part++; before = 0 };
#ifndef BUG_COUNTED_WITHOUT_LOCK
	run_lock = false
#endif
}

/* padata_help() */
inline help(number)
{
	d_step { touches(number); share = joined; joined++ };
	take_shares(number);
#ifdef BUG_LEFT_BEFORE_COUNTED
	d_step { touches(number); helpers-- };
	count(number)
#else
	count(number);
	d_step { touches(number); helpers-- }
#endif
}

/* work_run() */
inline work_run()
{
	mine = fn[me];
	if
	:: mine != 0 ->
		help(mine);
#ifdef BUG_CLAIM_ENDS_FIRST
		claimed[me] = false;
		fn[me] = 0;
#else
		fn[me] = 0;
		claimed[me] = false; /* a release store: after the other */
#endif
		mine = 0;
		ran = true
	:: else -> ran = false
	fi
}

/* cpu_idle_loop(); an interrupt changes nothing but that the loop turns once more. */
proctype idle_cpu(byte me)
{
	byte mine, chunk, share, before;
	bool ran;

	do
	:: true ->
		do
		:: work_run();
			if
			:: !ran -> break
			:: else
			fi
		od;
		ipi[me] = false; /* irq_disable(): what came before was served, what comes now stays pending */
#ifndef BUG_HALT_WITHOUT_A_LOOK
		if
		:: fn[me] != 0 -> goto again
		:: else
		fi;
#endif
end_halted:	ipi[me];
again:		skip
	od
}

/* The buffer drains when it likes. */
proctype drain(byte c)
{
	byte number;

end:	do
	:: atomic { fn_stored[c]?number; fn[c] = number; number = 0 }
	od
}

/* work_start() and its part of padata_start_helpers() */
inline start_helper(c, number)
{
	helpers++;
	if
	:: d_step { !claimed[c] -> claimed[c] = true }; /* compare and swap */
		fn_stored[c]!number;
#ifndef BUG_NO_FENCE_BEFORE_MESSAGE
		empty(fn_stored[c]);
#endif
		ipi[c] = true;
	:: claimed[c] -> /* busy */
		helpers--
	fi
}

/* padata_run() */
inline padata_run(number)
{
	d_step {
		alive = true; run_number = number;
		next[0] = 0; bound[0] = 2; next[1] = 2; bound[1] = CHUNKS; joined = 1;
		helpers = 0; threads = 0; took_part = 0;
		times[0] = 0; times[1] = 0; times[2] = 0
	};
	start_helper(0, number);
#if HELPERS > 1
	start_helper(1, number);
#endif
	take_shares(number);
	count(number);
#ifndef BUG_NOT_WAITED_FOR
	helpers == 0;
#endif
	d_step {
		assert(times[0] == 1 && times[1] == 1 && times[2] == 1);
		assert(threads == took_part);
		alive = false
	}
}

proctype caller()
{
	byte chunk, share, before;

	padata_run(1);
#if JOBS > 1
	padata_run(2);
#endif
	returned = true
}

proctype judge()
{
	timeout -> assert(returned && !claimed[0] && !claimed[1])
}

init
{
	atomic {
		run drain(0); run idle_cpu(0);
#if HELPERS > 1
		run drain(1); run idle_cpu(1);
#endif
		run caller();
		run judge()
	}
}
