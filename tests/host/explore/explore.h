/*
 * Schedules as input. One CPU runs at a time, and another may go on only at a point: just before an
 * atomic access, a fence, a message, a page-table store, a flush of the TLB or a switch of the
 * interrupt flag, and while a CPU relaxes or halts. There a schedule may choose to:
 *
 *   run another CPU           any that is not halted, and not waiting for a store of another
 *   keep stores back          the newest that the stopping CPU has made since its last fence; other
 *                             CPUs do not see them until it goes on (buffer.c)
 *   let an interrupt wait     for some points more of the CPU that it was sent to
 *   keep a translation        another CPU goes on using what a page-table store takes away, until
 *                             it flushes (stale.c)
 *
 * The default is to do none of these: a CPU runs until it waits, and then the next one in turn. A
 * schedule is the list of choices that differ from the default. Boot, the beginning of a case (as
 * long as only one CPU has work of it) and what follows the case run by default.
 *
 *   main.c      the runner: searches, compares, minimises and replays, one process for a schedule
 *   snapshot.c  memory as it was at the first choice, for the next schedule
 *   schedule.c  CPUs as stacks of one thread, points, time
 *   choose.c    strategies that draw the choices, and replay
 *   text.c      schedules as text
 *   weak.c      fences and locked instructions that are weakened on purpose
 *   buffer.c    store buffers, and the functions that the compiler calls for each access
 *   stale.c     translations that CPUs keep
 *   timer.c     each CPU's timer, by the explorer's clock
 *
 * Sources of the ideas: Musuvathi and Qadeer, "Iterative Context Bounding for Systematic Testing of
 * Multithreaded Programs", PLDI 2007; Burckhardt, Kothari, Musuvathi and Nagarakatte, "A Randomized
 * Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010 (PCT); Yuan, Yang and Gu,
 * "Partial Order Aware Concurrency Sampling", CAV 2018 (POS); Emmi, Qadeer and Rakamaric,
 * "Delay-Bounded Scheduling", POPL 2011; Sewell, Sarkar, Owens, Zappa Nardelli and Myreen,
 * "x86-TSO", CACM July 2010.
 */
#pragma once

#include "kernel/lib/types.h"
#include "tests/host/host.h"

enum {
	EXPLORE_CPUS_MAX = 16,
	CHOICES_MAX = 1 << 16,
	FINDING_MAX = 256,
	POINTS_MAX = 20000000,
	DEPTH_MAX = 8,
	PROGRAM_MAX = 1 << 23 /* bytes of the program's code */
};

/* Kinds of choices. The values are their characters in the text of a schedule (text.c). */
enum choice_kind {
	RUN = '>',  /* CPU `value` runs, and `keep` stores stay back */
	HOLD = '!', /* its interrupt waits for `value` points, 1 or more */
	STALE = '*' /* CPU `value` keeps the translation that is taken away */
};

/* One choice that differs from the default. */
struct choice {
	u32 point; /* the CPU's own, counted from the first choice */
	u16 cpu;   /* the CPU that is at the point */
	u16 value, keep;
	enum choice_kind kind;
	const void *place; /* code address; NULL if the choice was read from text */
	const char *name;  /* then the function that the place must be in; else NULL */
};

enum strategy { IN_TURN, RANDOM_WALK, PCT, POS, DFS, REPLAY };

/* What one machine is to do. Set by the runner before it forks the machine. */
struct explore_request {
	enum strategy strategy;
	bool fresh; /* no CPU keeps a translation, except as a replay says */
	u64 seed;
	unsigned depth; /* PCT: depth of the bugs to be found, 1 or more; DFS: most choices */
	u64 decisions;  /* PCT: about how many the case has */
	u64 points_max; /* a case with more points is a livelock */
	const struct choice *replay;
	u32 choices;                /* of `replay` */
	u32 left_out, left_out_end; /* choices of `replay` that are not made */
	u32 slack;   /* not strict: a choice fits its place so many points off, too */
	bool strict; /* a choice that does not fit ends the machine; else it is left out */
};
extern struct explore_request explore_request;

/* Result of one machine. Shared with the runner. */
struct explore_result {
	u64 hash;      /* of all points in their order: CPU, kind, place */
	u64 points;    /* in the case */
	u64 decisions; /* points at which more than one CPU could run */
	u64 asked;     /* DFS: questions */
	u32 taken;     /* DFS: branches that were met */
	bool misfit;
	char finding[FINDING_MAX]; /* "": none but what the case itself reports */
	u32 choices;               /* made; more than CHOICES_MAX: the rest was not written down */
	struct choice choice[CHOICES_MAX];
	/*
	 * From here on, of all schedules of the case. DFS: the questions whose answer is not 0, the
	 * default, and these answers.
	 */
	struct branch {
		u64 question, answer;
	} branch[DEPTH_MAX];
	u32 branches;
	u64 chosen_from; /* CPUs (bits) with work of the case that could run when another could */
	u64 outcomes;    /* (bits) of a litmus test */
	bool reached[PROGRAM_MAX]; /* fences and locked instructions, by offset in the program */
};
extern struct explore_result *explore_result;

/*
 * main.c: the case has come to a choice, and the machine becomes the runner. Returns true in the
 * child of each schedule. Returns false in the runner if the search is to begin later; with `last`
 * it begins now, and the runner does not return.
 */
bool explore_search(bool last);

/* snapshot.c */
void snapshot_take(void);
u64 snapshot_restore(void); /* undo what a child has written; returns how many pages */

/* schedule.c */
extern bool exploring;  /* the case runs, and choices are made */
extern u64 explore_now; /* the clock; reading it takes no time, unlike clock_ns() */
/*
 * This CPU is about to do something to `object` (NULL: to nothing that another CPU could access),
 * at the place to which `frame` returns. Delivers interrupts and runs other CPUs, as chosen.
 */
void explore_point(enum host_point kind, const void *object, const virt_t *frame);
void explore_stored(cpu_t cpu);           /* the CPU has changed memory that others may wait for */
bool explore_own_stack(const void *addr); /* is it on the stack of the CPU that runs? */
extern cpu_t explore_here;                /* the CPU that runs */
u32 explore_points(cpu_t cpu);            /* points of the CPU since the first choice */
/* Are these CPUs at points that access one object, and does one of them write to it? */
bool explore_race(cpu_t a, cpu_t b);
struct choice explore_choice(void);     /* the default, at the point of this CPU */
void explore_outcome(unsigned outcome); /* of a litmus test */
/* Print what was found, with the place of every CPU, and end the machine. */
__noreturn void explore_found(const char *fmt, ...) __printf(1, 2);

/* choose.c: each writes down what it chooses if that is not the default */
void choose_begin(void);
/*
 * The CPU to run next, of those in the set `ready` (bits); and in *keep how many of the `buffered`
 * stores of this CPU stay back. By default `usual` runs and none stays.
 */
cpu_t choose_cpu(u64 ready, cpu_t usual, u32 buffered, u32 *keep);
u32 choose_hold(void);          /* points for which a new interrupt waits; usually 0 */
u64 choose_stale(u64 others);   /* which of these CPUs keep a translation; usually none */
void choose_relaxed(cpu_t cpu); /* this CPU waits: others go first from now on */
/*
 * Strict replay: ends the machine if a choice was not made at its point, or is left when the case
 * is over.
 */
void choose_passed(bool over);

/* timer.c */
void timers_fire(void);    /* timers whose time has come become interrupts */
u64 timers_earliest(void); /* time at which the next one fires; 0: none is set */

/* buffer.c */
extern u32 buffer_count[EXPLORE_CPUS_MAX]; /* stores of each CPU that may not be final */
/* The CPU has just loaded something atomic, and stores of its own are buffered. */
bool buffer_overtaken(cpu_t cpu);
/* Number of buffered stores from the newest atomic one but n on; all if there are not so many. */
u32 buffer_atomic(cpu_t cpu, u32 n);
u32 buffer_atomics(cpu_t cpu); /* number of atomic stores that are buffered */
void buffer_drain(cpu_t cpu);  /* all stores of that CPU are final now */
/* The CPU stops: all but the newest `keep` stores are final. Its stack is in use above `live`. */
void buffer_take_back(cpu_t cpu, u32 keep, const void *live);
void buffer_lay_over(cpu_t cpu); /* the CPU goes on: memory has its stores again */

/* stale.c */
/* CPUs (bits) that keep the translation that this page-table store takes away. */
u64 stale_choose(const struct host_pte *pte, u64 value);
/* The store is final: the keepers use the old entry from now on. */
void stale_keep(u64 keepers, const struct host_pte *pte, u64 old);
void stale_show(bool shown);           /* map what this CPU keeps, or what the tables say now */
void stale_drop(virt_t at, u64 bytes); /* this CPU drops the translations that it keeps there */
void *stale_alias(void *addr);         /* as host_alias(), for this CPU */

/*
 * weak.c: for fences.py, which asks whether each fence and each locked instruction is needed. True
 * at the places whose offsets in the program stand in -w. There a fence does nothing, and a locked
 * instruction is a load and a store. Places that are reached are noted.
 */
bool explore_weak(const void *place);
void weak_parse(const char *text); /* offsets, in hexadecimal, separated by commas */
void weak_print(void);             /* the places that schedules of this case have reached */

/* text.c: "CPU.POINT:FUNCTION", then ">CPU~STORES", "!POINTS" or "*CPU"; separated by commas */
void schedule_print(const struct choice *choice, u32 count);
/*
 * Returns the choices and their number, or ends the process and names the place of the mistake. The
 * choices keep pointers to the text, which is cut into pieces.
 */
struct choice *schedule_parse(char *text, u32 *count);
const char *schedule_function(const void *place); /* name of the function, or "?" */
