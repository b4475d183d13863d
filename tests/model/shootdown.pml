/*
 * The generation rule of kernel/core/shootdown.c: who may reuse a frame, and when.
 *
 *   CPU 0   unmaps page 0, gates its frame under a tag, then waits for the tag: for a full round that serves it, its own or not
 *   CPU 1   unmaps page 1, then the same, or a ranged round of its own
 *   CPU 2   is busy, sleeps, wakes; was online from the start, or joins while all this happens
 *
 * All three end in the idle loop. Hardware:
 *
 *   TLB     one per CPU. It may take in any present translation at any moment while its CPU does not halt and forgets
 *           only when told (Intel SDM vol. 3A, 4.10.2.3). What is in it decides nothing but the assertions, so the worst
 *           case is the only one that need be looked at: it takes in everything at once.
 *   stores  one buffer per CPU, FIFO, drained at any later moment, and at once by locked instructions, fences and flushes
 *           (SDM vol. 3A, 9.2). Stored plainly are the PTE and the idle flag; G, last_full, done, published, the mask and
 *           the mailbox are changed by locked instructions, as in the code.
 *   reuse   of a gated frame happens as soon as META may: the worst case again.
 *
 * Checked: no frame is reused while a CPU that uses memory has its old writable translation (assertions); nothing gets
 * stuck (when nothing moves any more, all are in the idle loop and both frames were reused); no run is infinite (no cycle
 * at all: every wait below blocks instead of polling). The last two are liveness, without any assumption of fairness
 * between CPUs but that one that can go on does.
 *
 * -DBUG_... plants a bug; run.py has the list and requires a counterexample for each. -DONLY_RANGED, -DONLY_JOINING leave out
 * the other choice of CPU 1 or 2, to be quicker where a bug is known to need this one.
 */
#define CPUS 3
#define PAGES 2

#ifndef WAKEUPS
#define WAKEUPS 1 /* of CPU 2, by devices or work, beside those by rounds */
#endif

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define BIT(n) (1 << (n))

/* Memory. */
byte G, last_full, done;
bool claimed;         /* round_claim: the right to start a round for those who wait for a tag */
byte published[CPUS];
bool idle[CPUS];
bool online[CPUS];
byte mapped = 3;      /* bit p: the PTE of page p is present and writable */
byte call_from[CPUS]; /* mailbox: bit i for a ranged request of CPU i */
byte pending[CPUS];   /* acknowledgements CPU i waits for */
byte tag[PAGES];      /* of the frame behind page p, once gated */
byte gated, reused;   /* bit p */

/* The CPUs themselves. */
byte tlb[CPUS];       /* bit p: translation of page p */
bool walks[CPUS];     /* on the kernel's page tables */
bool uses[CPUS];      /* between leaving idle and setting the flag: may use what the TLB has */
bool ipi[CPUS];
bool finished[CPUS];

/* Store buffers: location (0, 1: PTE of that page goes; SET_IDLE, CLEAR_IDLE). */
#define SET_IDLE 2
#define CLEAR_IDLE 3
chan buffer[CPUS] = [2] of { byte };
#define drained(me) empty(buffer[me])
#define locked(me) drained(me) /* a locked instruction follows */
#define fence() drained(me)

#define STALE(c) (uses[c] && (tlb[c] & reused))
#define SAFE (!STALE(0) && !STALE(1) && !STALE(2))

/* The frames that may be, get a new owner. */
inline reuse_what_may()
{
#ifdef BUG_GATE_IGNORED
	reused = reused | gated;
#else
	if
	:: (gated & 1) && done >= tag[0] -> reused = reused | 1
	:: else
	fi;
	if
	:: (gated & 2) && done >= tag[1] -> reused = reused | 2
	:: else
	fi;
#endif
	assert(SAFE)
}

inline flush_all()
{
	d_step { drained(me); tlb[me] = mapped; assert(SAFE) } /* a CR4 write serialises */
}

/* flush_and_publish() */
inline flush_and_publish()
{
#ifdef BUG_LOAD_AFTER_FLUSH
	flush_all();
	g = G;
#else
	g = G;
	flush_all();
#endif
	d_step { locked(me); published[me] = MAX(published[me], g); g = 0 }
}

/* The initiator's own, with interrupts on: another flush may come between, and publish more. */
inline flush_and_publish_interrupted()
{
#ifdef BUG_LOAD_AFTER_FLUSH
	flush_all();
	outer = G;
#else
	outer = G;
	flush_all();
#endif
	maybe_interrupt();
	d_step { locked(me); published[me] = MAX(published[me], outer); outer = 0 }
}

/* call_serve() and shootdown_serve(). Only CPU 1 makes ranged requests. */
inline serve()
{
	d_step { ipi[me] = false; from = call_from[me]; call_from[me] = 0 };
	if
	:: from != 0 ->
		atomic {
			drained(me);
			tlb[me] = (tlb[me] & ~2) | (mapped & 2); /* flush_ranges(): INVLPG */
#ifdef BUG_RANGED_PUBLISHES
			published[me] = MAX(published[me], G);
#endif
			from = 0
		};
		pending[1] = pending[1] - 1
	:: else
	fi;
	if
	:: published[me] < last_full -> flush_and_publish()
	:: else
	fi
}

#define asked (ipi[me] || call_from[me] || published[me] < last_full)

/* Interrupts may be on here, or off. */
inline maybe_interrupt()
{
	if
	:: ipi[me] -> serve()
	:: skip
	fi
}

/* round_choose_targets(): the mask in one look, then flag by flag. */
inline choose_targets()
{
	targets = ((online[0] -> 1 : 0) | (online[1] -> 2 : 0) | (online[2] -> 4 : 0)) & ~BIT(me);
	targets = targets & ~(idle[(me + 1) % CPUS] -> BIT((me + 1) % CPUS) : 0);
	targets = targets & ~(idle[(me + 2) % CPUS] -> BIT((me + 2) % CPUS) : 0)
}

inline send_ipis()
{
	d_step {
		ipi[0] = ipi[0] || (targets & 1);
		ipi[1] = ipi[1] || (targets & 2);
		ipi[2] = ipi[2] || (targets & 4)
	}
}

/* One turn of round_wait(). Interrupts may be off, so it serves what it is asked. */
inline wait_for(c)
{
	do
	:: !(targets & BIT(c)) || published[c] >= mine || idle[c] -> break
#ifndef BUG_WAIT_WITHOUT_SERVING
	:: (targets & BIT(c)) && asked -> serve()
#endif
	od
}

inline complete_round()
{
	atomic { locked(me); done = MAX(done, mine); reuse_what_may() }
}

/* shootdown_full(SHOOTDOWN_SKIP_IDLE) */
inline full_round()
{
#ifdef BUG_IDLE_READ_EARLY
	choose_targets();
#endif
	d_step { locked(me); G++; mine = G };
	d_step { locked(me); last_full = MAX(last_full, mine) };
	flush_and_publish_interrupted();
#ifndef BUG_IDLE_READ_EARLY
	choose_targets();
#endif
	send_ipis();
#ifdef BUG_DONE_BEFORE_ACK
	complete_round();
#endif
	wait_for((me + 1) % CPUS);
	wait_for((me + 2) % CPUS);
	complete_round();
	d_step { mine = 0; targets = 0 }
}

/* shootdown_ranged(), of page 1. */
inline ranged_round()
{
	d_step { locked(me); G++; mine = G };
#ifdef BUG_RANGED_COMPLETES
	complete_round();
#endif
	d_step { drained(me); mine = 0; tlb[me] = (tlb[me] & ~2) | (mapped & 2) };
	choose_targets();
	/* call_post() */
	d_step {
		locked(me);
		pending[1] = (targets & 1) + ((targets & 4) -> 1 : 0);
		call_from[0] = call_from[0] | (targets & 1);
		call_from[2] = call_from[2] | ((targets & 4) -> 1 : 0)
	};
	send_ipis();
	do
	:: pending[1] == 0 -> break
#ifndef BUG_WAIT_WITHOUT_SERVING
	:: pending[1] != 0 && asked -> serve()
#endif
	od;
	targets = 0
}

/* pte_store(), shootdown_tag(), meta_give(). */
inline unmap_and_gate()
{
#ifdef BUG_TAG_EARLY
	tag[me] = G + 1;
#endif
	buffer[me]!me;
	maybe_interrupt();
#ifndef BUG_NO_FENCE
	fence();
#endif
#ifndef BUG_TAG_EARLY
	tag[me] = G + 1;
#endif
	d_step { locked(me); gated = gated | BIT(me); reuse_what_may() }
}

#ifdef BUG_JOINS_TOO_EARLY
#define no_round_serves(me) (last_full + 1 < tag[me])
#else
#define no_round_serves(me) (last_full < tag[me])
#endif

/* claim_round() and round_for(): the look, the compare-and-swap, a second look. A round that serves the tag is only waited for. */
inline claim_and_start()
{
	d_step {
		locked(me);
		if
		:: !claimed -> claimed = true; has_claim = true
		:: else
		fi
	};
	if
	:: has_claim ->
		if
		:: no_round_serves(me) -> full_round()
		:: else
		fi;
#ifndef BUG_CLAIM_KEPT
		claimed = false;
#endif
		has_claim = false
	:: else
	fi
}

/* shootdown_wait() */
inline wait_for_tag()
{
	do
	:: done >= tag[me] -> break
	:: done < tag[me] && no_round_serves(me) && !claimed -> claim_and_start()
	:: done < tag[me] && asked -> serve()
	od;
	assert(done >= tag[me])
}

/* cpu_idle_loop(): sleep until interrupted; a few wake-ups come from elsewhere (devices, work). */
inline idle_loop()
{
	do
	:: ipi[me] -> serve()
	:: !ipi[me] ->
#ifdef BUG_IDLE_SET_EARLY
		buffer[me]!SET_IDLE; /* and goes on using memory */
		uses[me] = false;
#else
		uses[me] = false;
		buffer[me]!SET_IDLE;
#endif
end_asleep:	if
		:: ipi[me]
		:: wakeups > 0 -> wakeups--
		fi;
		tlb[me] = tlb[me] | mapped;
		/* cpu_leave_rest() */
		buffer[me]!CLEAR_IDLE;
#ifndef BUG_NO_FENCE_ON_WAKE
		fence();
#endif
		if
#ifdef BUG_NO_FLUSH_ON_WAKE
		:: skip
#elif defined(BUG_WAKE_LOOKS_AT_FULL_ONLY)
		:: published[me] < last_full -> flush_and_publish()
		:: else
#else
		:: published[me] != G -> flush_and_publish()
		:: else
#endif
		fi;
		d_step { uses[me] = true; assert(SAFE) }
	od
}

proctype cpu(byte me)
{
	byte g, outer, mine, targets, from, wakeups;
	bool has_claim;

	if
	:: me == 0 -> unmap_and_gate(); wait_for_tag()
#ifndef ONLY_RANGED
	:: me == 1 -> unmap_and_gate(); wait_for_tag()
#endif
	:: me == 1 -> buffer[me]!1; ranged_round();
		d_step { reused = reused | 2; assert(SAFE) } /* it satisfies its own caller */
	:: me == 2 -> wakeups = WAKEUPS
	fi;
	finished[me] = true;
	idle_loop()
}

/* shootdown_join() on CPU 2, then its idle loop. */
proctype joining_cpu(byte me)
{
	byte g, outer, mine, targets, from, wakeups;

#ifdef BUG_JOIN_LOADS_G_LATE
	online[me] = true;
	d_step { walks[me] = true; tlb[me] = mapped };
	g = G;
#elif defined(BUG_JOIN_ONLINE_LATE)
	g = G;
	d_step { walks[me] = true; tlb[me] = mapped };
	online[me] = true;
#else
	online[me] = true; /* a locked instruction */
	g = G;
	d_step { walks[me] = true; tlb[me] = mapped }; /* the kernel's CR3, PGE toggled */
#endif
	d_step { published[me] = MAX(published[me], g); g = 0 };
	d_step { uses[me] = true; wakeups = WAKEUPS; finished[me] = true; assert(SAFE) };
	idle_loop()
}

/* Store buffers drain when they like. */
proctype store_buffer(byte c)
{
	byte what;

end:	do
	:: atomic {
		buffer[c]?what;
		if
		:: what == SET_IDLE -> idle[c] = true
		:: what == CLEAR_IDLE -> idle[c] = false
		:: else -> mapped = mapped & ~BIT(what)
		fi;
		what = 0
	   }
	od
}

/* When nothing moves any more. */
proctype judge()
{
	timeout -> assert(finished[0] && finished[1] && finished[2] && reused == 3)
}

init
{
	atomic {
		online[0] = true; walks[0] = true; uses[0] = true; tlb[0] = mapped;
		online[1] = true; walks[1] = true; uses[1] = true; tlb[1] = mapped;
		run store_buffer(0); run store_buffer(1); run store_buffer(2);
		run cpu(0); run cpu(1);
		if
#ifndef ONLY_JOINING
		:: online[2] = true; walks[2] = true; uses[2] = true; tlb[2] = mapped; run cpu(2)
#endif
		:: run joining_cpu(2)
		fi;
		run judge()
	}
}
