/*
 * The generation rule of kernel/shootdown.c: who may reuse a frame, and when.
 *
 *   CPU 0   unmaps page 0, gates its frame under a tag, then waits for the tag (a full round unless one has passed)
 *   CPU 1   unmaps page 1, then the same, or a ranged round of its own
 *   CPU 2   is busy, sleeps, wakes; was online from the start, or joins while all this happens
 *
 * All three end in the idle loop. Hardware: one TLB per CPU that may take in any present translation at any moment while its CPU
 * does not halt, and forgets only when told (Intel SDM vol. 3A, 4.10.2.3); one store buffer per CPU, FIFO, drained at any
 * later moment, and at once by locked instructions, fences and flushes (SDM vol. 3A, 9.2). What is stored plainly is a
 * PTE and the idle flag; G, full, done, published and the mask are changed by locked instructions only, as in the code.
 *
 * Checked: no frame is reused while a CPU that uses memory has its old writable translation (assertions); nothing gets
 * stuck (no invalid end state: both initiators reach the idle loop, both frames are reused); and no run is infinite (no
 * cycle at all: every wait below blocks instead of polling). The last two are liveness without any assumption of fairness
 * between CPUs but that a CPU that can go on does.
 *
 * -DBUG_... plants a bug; run.py has the list and requires a counterexample for each.
 */
#define CPUS 3
#define PAGES 2

#define MAX(a, b) ((a) > (b) -> (a) : (b))
#define BIT(n) (1 << (n))

/* Memory. */
byte G, last_full, done;
byte published[CPUS];
bool idle[CPUS];
bool online[CPUS];
bool mapped[PAGES] = true; /* the PTE: present and writable, or gone */
byte call_from[CPUS];      /* mailbox: bit i for a ranged request of CPU i */
byte pending[CPUS];        /* acknowledgements CPU i waits for */
byte tag[PAGES];           /* of the gated frame behind page p */
bool gated[PAGES];
bool reused[PAGES];

/* The CPUs themselves. */
byte tlb[CPUS];   /* bit p: translation of page p */
bool halted[CPUS];
bool walks[CPUS]; /* on the kernel's page tables: the TLB may fill */
bool uses[CPUS];  /* between leaving idle and setting the flag: may use what the TLB has */
bool ipi[CPUS];
bool finished[CPUS];

/* Store buffers: location (a page's PTE, or IDLE) and value. */
#define IDLE PAGES
chan buffer[CPUS] = [2] of { byte, bool };
#define drained(me) empty(buffer[me])

#define STALE(c, p) (reused[p] && uses[c] && (tlb[c] & BIT(p)))
#define SAFE (!STALE(0, 0) && !STALE(1, 0) && !STALE(2, 0) && !STALE(0, 1) && !STALE(1, 1) && !STALE(2, 1))

inline store(location, value)
{
	buffer[me]!location,value
}

inline fence()
{
	drained(me)
}

/* flush_and_publish(). `may_interrupt`: with interrupts on another flush may come between (the publishing only raises). */
inline flush_and_publish(g)
{
#ifdef BUG_LOAD_AFTER_FLUSH
	d_step { drained(me); tlb[me] = 0 };
	g = G;
#else
	g = G;
	d_step { drained(me); tlb[me] = 0 }; /* a CR4 write serialises */
#endif
	d_step { published[me] = MAX(published[me], g); g = 0 }
}

/* The initiator's own flush, with interrupts on: another one may come in between, and publishes more. */
inline flush_and_publish_interrupted(g, inner)
{
#ifdef BUG_LOAD_AFTER_FLUSH
	d_step { drained(me); tlb[me] = 0 };
	g = G;
#else
	g = G;
	d_step { drained(me); tlb[me] = 0 };
#endif
	maybe_interrupt(inner);
#ifdef BUG_PUBLISHING_LOWERS
	d_step { published[me] = g; g = 0 }
#else
	d_step { published[me] = MAX(published[me], g); g = 0 }
#endif
}

/* call_serve() and shootdown_serve(). */
inline serve(g)
{
	d_step { ipi[me] = false; from = call_from[me]; call_from[me] = 0 };
	if
	:: from & BIT(1) ->
		atomic { drained(me); tlb[me] = tlb[me] & ~BIT(1) }; /* flush_ranges(): INVLPG */
#ifdef BUG_RANGED_PUBLISHES
		published[me] = MAX(published[me], G);
#endif
		d_step { pending[1] = pending[1] - 1; from = 0 }
	:: else
	fi;
	if
	:: published[me] < last_full -> flush_and_publish(g)
	:: else
	fi
}

#define asked (ipi[me] || call_from[me] || published[me] < last_full)

/* Interrupts may be on here, or off. */
inline maybe_interrupt(g)
{
	if
	:: ipi[me] -> serve(g)
	:: skip
	fi
}

/* round_choose_targets(): the mask in one look, then flag by flag. */
inline choose_targets(c)
{
	d_step {
		targets = (online[0] -> 1 : 0) | (online[1] -> 2 : 0) | (online[2] -> 4 : 0);
		targets = targets & ~BIT(me);
		c = 0
	};
	do
	:: atomic { c < CPUS && (targets & BIT(c)) && idle[c] -> targets = targets & ~BIT(c); c++ }
	:: c < CPUS && (targets & BIT(c)) && !idle[c] -> c++
	:: c < CPUS && !(targets & BIT(c)) -> c++
	:: c == CPUS -> c = 0; break
	od
}

inline send_ipis()
{
	d_step {
		ipi[0] = ipi[0] || (targets & 1);
		ipi[1] = ipi[1] || (targets & 2);
		ipi[2] = ipi[2] || (targets & 4)
	}
}

/* shootdown_full(SHOOTDOWN_SKIP_IDLE). */
inline full_round()
{
#ifdef BUG_IDLE_READ_EARLY
	choose_targets(c);
#endif
	d_step { drained(me); G++; mine = G };
	maybe_interrupt(g);
	d_step { drained(me); last_full = MAX(last_full, mine) };
	flush_and_publish_interrupted(g, g2);
#ifndef BUG_IDLE_READ_EARLY
	choose_targets(c);
#endif
	send_ipis();
#ifdef BUG_DONE_BEFORE_ACK
	atomic { drained(me); done = MAX(done, mine) };
#endif
	/* round_wait(): interrupts may be off, so it serves what it is asked. */
	do
	:: c < CPUS && (!(targets & BIT(c)) || published[c] >= mine || idle[c]) -> c++
#ifndef BUG_WAIT_WITHOUT_SERVING
	:: c < CPUS && asked -> serve(g)
#endif
	:: c == CPUS -> break
	od;
	atomic { drained(me); done = MAX(done, mine); c = 0; mine = 0; targets = 0 }
}

/* shootdown_ranged(), of page `me`. */
inline ranged_round()
{
	d_step { drained(me); G++; mine = G };
#ifdef BUG_RANGED_COMPLETES
	d_step { done = MAX(done, mine) };
#endif
	d_step { mine = 0; tlb[me] = tlb[me] & ~BIT(me) };
	choose_targets(c);
	/* call_post(): the count, then the bits, then the messages. */
	pending[me] = ((targets & 1) -> 1 : 0) + ((targets & 2) -> 1 : 0) + ((targets & 4) -> 1 : 0);
	do
	:: c < CPUS && (targets & BIT(c)) -> d_step { drained(me); call_from[c] = call_from[c] | BIT(me); c++ }
	:: c < CPUS && !(targets & BIT(c)) -> c++
	:: c == CPUS -> c = 0; break
	od;
	send_ipis();
	do
	:: pending[me] == 0 -> break
	:: pending[me] != 0 && asked -> serve(g)
	od;
	targets = 0
}

inline unmap_and_tag()
{
#ifdef BUG_TAG_EARLY
	tag[me] = G + 1;
#endif
	store(me, false);
	maybe_interrupt(g);
#ifndef BUG_NO_FENCE
	fence();
#endif
#ifndef BUG_TAG_EARLY
	tag[me] = G + 1;
#endif
	gated[me] = true;
	maybe_interrupt(g)
}

/* The frame behind page p gets a new owner. */
inline reuse(p)
{
	d_step { gated[p] = false; reused[p] = true; assert(SAFE) }
}

/* cpu_idle_loop(): sleep until interrupted; a few wake-ups come from elsewhere (devices, work). */
inline idle_loop()
{
	do
	:: ipi[me] -> serve(g)
	:: !ipi[me] ->
#ifdef BUG_IDLE_SET_EARLY
		store(IDLE, true);
		maybe_interrupt(g);
		d_step { uses[me] = false; halted[me] = true };
#else
		uses[me] = false;
		store(IDLE, true);
		halted[me] = true;
#endif
end_asleep:	if
		:: ipi[me] -> halted[me] = false
		:: wakeups > 0 -> d_step { wakeups--; halted[me] = false }
		fi;
		/* cpu_leave_idle() */
		store(IDLE, false);
#ifndef BUG_NO_FENCE_ON_WAKE
		fence();
#endif
		if
#ifdef BUG_NO_FLUSH_ON_WAKE
		:: skip
#elif defined(BUG_WAKE_LOOKS_AT_FULL_ONLY)
		:: published[me] < last_full -> flush_and_publish(g)
		:: else
#else
		:: published[me] != G -> flush_and_publish(g)
		:: else
#endif
		fi;
		d_step { uses[me] = true; assert(SAFE) }
	od
}

proctype cpu(byte me)
{
	byte g, g2, mine, c, targets, from, wakeups;

	d_step { wakeups = (me == 2 -> 2 : 0); uses[me] = true };
	if
	:: me == 0 ->
		unmap_and_tag();
		if
		:: done < tag[me] -> full_round()
		:: done >= tag[me]
		fi;
		assert(done >= tag[me])
	:: me == 1 ->
		if
		:: unmap_and_tag();
		   if
		   :: done < tag[me] -> full_round()
		   :: done >= tag[me]
		   fi;
		   assert(done >= tag[me])
		:: store(me, false); ranged_round(); reuse(me) /* satisfies its caller only */
		fi
	:: me == 2
	fi;
	finished[me] = true;
	idle_loop()
}

/* shootdown_join() on CPU 2, then its idle loop. */
proctype joining_cpu()
{
	byte me = 2, g, g2, mine, c, targets, from, wakeups;

#ifdef BUG_JOIN_LOADS_G_FIRST
	g = G;
#endif
#ifdef BUG_JOIN_WALKS_EARLY
	walks[me] = true;
#endif
	online[me] = true; /* a locked instruction */
#ifndef BUG_JOIN_LOADS_G_FIRST
	g = G;
#endif
#ifndef BUG_JOIN_WALKS_EARLY
	d_step { walks[me] = true; tlb[me] = 0 }; /* the kernel's CR3, PGE toggled */
#endif
	d_step { published[me] = MAX(published[me], g); g = 0 };
	d_step { uses[me] = true; wakeups = 1; finished[me] = true; assert(SAFE) };
	idle_loop()
}

/* Store buffer and page walker of one CPU. */
proctype hardware(byte c)
{
	byte location;
	bool value;

end:	do
	:: atomic {
		buffer[c]?location,value;
		if
		:: location == IDLE -> idle[c] = value
		:: else -> mapped[location] = value
		fi;
		location = 0;
		value = false
	   }
	:: atomic { walks[c] && !halted[c] && mapped[0] && !(tlb[c] & 1) -> tlb[c] = tlb[c] | 1 }
	:: atomic { walks[c] && !halted[c] && mapped[1] && !(tlb[c] & 2) -> tlb[c] = tlb[c] | 2 }
	od
}

/* META: gated frames are released to whoever asks once done >= tag (block_release_gated()). */
proctype allocator()
{
end:	do
#ifdef BUG_GATE_IGNORED
	:: gated[0] -> reuse(0)
	:: gated[1] -> reuse(1)
#else
	:: gated[0] && done >= tag[0] -> reuse(0)
	:: gated[1] && done >= tag[1] -> reuse(1)
#endif
	od
}

/* When nothing moves any more, both initiators must be through and both frames in new hands. */
proctype judge()
{
	finished[0] && finished[1] && finished[2] && reused[0] && reused[1]
}

init
{
	atomic {
		online[0] = true; online[1] = true;
		walks[0] = true; walks[1] = true;
		run hardware(0); run hardware(1); run hardware(2);
		run allocator();
		run cpu(0); run cpu(1);
		if
		:: online[2] = true; walks[2] = true; run cpu(2)
		:: run joining_cpu()
		fi;
		run judge()
	}
}
