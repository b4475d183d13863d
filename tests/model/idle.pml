/*
 * The idle task and what it is woken for: kernel/core/call.c.
 *
 *   waker    stores something to do, counts it as news, and only then looks which CPUs are idle in their idle loop; sends those a message
 *   idle     reads the count of news, looks for something to do; when there is nothing it is idle, fence, and reads the count again; halts
 *            only if the count is the same
 *
 * Hardware: plain stores wait in a buffer of their CPU (Intel SDM vol. 3A, 9.2.3.4). Those of the thing to do, of `idle` and of `claimed`
 * are plain; the count is a locked instruction. A message that comes while interrupts are off stays pending and ends the halt.
 *
 * Checked: when nothing moves any more there is nothing left to do, and the CPU is halted; no run is infinite.
 */
#ifndef WAKES
#define WAKES 2
#endif

byte to_do, stored, news;
bool idle, claimed; /* claimed: the CPU has work, in which it may be idle, too */
bool ipi;

#define TO_DO 0
#define IDLE 1
#define BUSY 2
#define FREE 3
chan buffer[2] = [4] of { byte }; /* of the waker and of the idle CPU */
#define fence(c) empty(buffer[c])

/* idle_task_wake() */
inline idle_task_wake()
{
#ifdef BUG_IDLE_READ_BEFORE_NEWS
	asleep = idle && !claimed;
#endif
	atomic { fence(0); news++ };
#ifndef BUG_IDLE_READ_BEFORE_NEWS
	asleep = !claimed; /* work_done() */
	asleep = asleep && idle;
#endif
	if
	:: asleep -> ipi = true
	:: else
	fi;
	asleep = false
}

proctype waker()
{
	byte left = WAKES;
	bool asleep;

	do
	:: left > 0 -> buffer[0]!TO_DO; idle_task_wake(); left--
	:: left == 0 -> break
	od
}

/* work_run(): the CPU had work, in which it may have waited as an idle CPU */
inline work_run()
{
	if
	:: claimed ->
		if
		:: buffer[1]!IDLE; buffer[1]!BUSY
		:: skip
		fi;
		buffer[1]!FREE;
		worked = true
	:: else
	fi
}

/* idle_task_run(): takes the lock of what there is to do, a locked instruction */
inline idle_task_run()
{
	atomic { fence(1); found = to_do > 0; if :: found -> to_do-- :: else fi }
}

/* halt_unless_news() */
inline halt_unless_news()
{
	buffer[1]!IDLE;
#ifndef BUG_NO_FENCE_WHEN_IDLE
	fence(1);
#endif
	if
#ifndef BUG_NO_SECOND_LOOK
	:: news != seen
	:: news == seen ->
#else
	:: true ->
#endif
end_halted:	atomic { ipi -> ipi = false }
	fi;
	buffer[1]!BUSY
}

/* cpu_idle_loop() */
proctype idle_cpu()
{
	byte seen;
	bool found, worked;

	do
	:: true ->
		ipi = false; /* irq_enable() */
		do
		:: true ->
#ifndef BUG_NEWS_READ_LATE
			seen = news;
#endif
			if
			:: !worked -> work_run()
			:: else
			fi;
			idle_task_run();
			if
			:: found -> found = false
			:: else -> break
			fi
		od;
#ifdef BUG_NEWS_READ_LATE
		seen = news;
#endif
		halt_unless_news()
	od
}

proctype store_buffer(byte c)
{
	byte what;

end:	do
	:: atomic {
		buffer[c]?what;
		if
		:: what == TO_DO -> to_do++; stored++
		:: what == IDLE -> idle = true
		:: what == BUSY -> idle = false
		:: what == FREE -> claimed = false
		fi;
		what = 0
	   }
	od
}

proctype judge()
{
	timeout -> assert(to_do == 0 && stored == WAKES && idle && !claimed)
}

init
{
	atomic {
		if
		:: claimed = true
		:: skip
		fi;
		run store_buffer(0); run store_buffer(1); run waker(); run idle_cpu(); run judge()
	}
}
