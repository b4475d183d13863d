#include "kernel/program/signal_pending.h"

#include <arch/atomic.h>

#include "kernel/lib/string.h"
#include "kernel/program/thread.h"
#include "kernel/program/timers.h"

enum { NOTE_FREE, NOTE_HELD, NOTE_READY };

struct note {
	u32 state;             /* NOTE_HELD: only the CPU that made it so may look further */
	int signal;            /* atomic; a hint unless the note is held */
	struct thread *target; /* likewise; NULL: the program */
	u64 order;             /* likewise; lower is older */
	struct signal_info info;
};

static struct note notes[SIGNAL_NOTES];
static u32 notes_used; /* notes that are not free, or a few more */
static u64 next_order, shared, shared_unnoted;

void signal_pending_reset(void)
{
	for (size_t i = 0; i < SIGNAL_NOTES; i++)
		atomic_store_relaxed(&notes[i].state, NOTE_FREE);
	atomic_store_relaxed(&notes_used, 0);
	atomic_store_relaxed(&shared, 0);
	atomic_store_relaxed(&shared_unnoted, 0);
}

static u64 *pending_word(struct thread *thread)
{
	return thread ? &thread->pending : &shared;
}

/* Queued signals that were sent while there was no free note. */
static u64 *unnoted_word(struct thread *thread)
{
	return thread ? &thread->unnoted : &shared_unnoted;
}

u64 signal_pending_shared(void)
{
	return atomic_load_acquire(&shared);
}

u64 signal_pending_for(const struct thread *thread)
{
	return atomic_load_acquire(&thread->pending) | signal_pending_shared();
}

/* A signal of kill() and tgkill(), which needs no note. */
static struct signal_info plain_info(const struct thread *thread, int signal)
{
	return (struct signal_info){
		.signal = signal, .code = thread ? SI_TKILL : SI_USER, .pid = (s32)program_pid()};
}

static struct note *note_claim(void)
{
	atomic_fetch_add(&notes_used, 1);
	for (size_t i = 0; i < SIGNAL_NOTES; i++) {
		if (atomic_load_relaxed(&notes[i].state) == NOTE_FREE &&
		    atomic_cas(&notes[i].state, NOTE_FREE, NOTE_HELD))
			return &notes[i];
	}
	atomic_fetch_sub(&notes_used, 1);
	return NULL;
}

static void note_free(struct note *note)
{
	atomic_store_release(&note->state, NOTE_FREE);
	atomic_fetch_sub(&notes_used, 1);
}

static struct note *note_make(struct thread *target, const struct signal_info *info)
{
	struct note *note = note_claim();

	if (!note)
		return NULL;
	note->info = *info;
	atomic_store_relaxed(&note->target, target);
	atomic_store_relaxed(&note->signal, info->signal);
	atomic_store_relaxed(&note->order, atomic_fetch_add(&next_order, 1));
	atomic_store_release(&note->state, NOTE_READY);
	return note;
}

int signal_pending_add(struct thread *thread, const struct signal_info *info)
{
	const int signal = info->signal;
	const u64 bit = signal_bit(signal);
	const struct signal_info plain = plain_info(thread, signal);
	const bool queued = signal >= SIGNALS_QUEUED;
	const bool carries = info->code < 0 && info->code != SI_TKILL;
	u64 *word = pending_word(thread);
	struct note *note = NULL;

	if (!queued && atomic_load_acquire(word) & bit)
		return 0;
	if (queued || memcmp(info, &plain, sizeof(plain)) != 0)
		note = note_make(thread, info);
	if (carries && !note)
		return -EAGAIN;
	if (queued && !note)
		atomic_fetch_or(unnoted_word(thread), bit);
	/* Another sender was faster: its note stays, unless the receiver has taken this one. */
	if (atomic_fetch_or(word, bit) & bit && !queued && note &&
	    atomic_cas(&note->state, NOTE_READY, NOTE_HELD))
		note_free(note);
	return 0;
}

static bool note_is_of(struct note *note, const struct thread *target, int signal)
{
	return atomic_load_acquire(&note->state) == NOTE_READY &&
	       atomic_load_relaxed(&note->target) == target &&
	       atomic_load_relaxed(&note->signal) == signal;
}

/* The oldest note of a signal, or NULL. *count: how many there are. */
static struct note *note_oldest(const struct thread *target, int signal, unsigned *count)
{
	struct note *oldest = NULL;

	*count = 0;
	if (!atomic_load_acquire(&notes_used))
		return NULL;
	for (size_t i = 0; i < SIGNAL_NOTES; i++) {
		if (!note_is_of(&notes[i], target, signal))
			continue;
		(*count)++;
		if (!oldest ||
		    atomic_load_relaxed(&notes[i].order) < atomic_load_relaxed(&oldest->order))
			oldest = &notes[i];
	}
	return oldest;
}

/*
 * Take the oldest note of a signal. A note that changed hands between the look and the claim was
 * taken by another receiver, and the search starts again; each round, somebody has advanced.
 */
static bool note_take(const struct thread *target, int signal, struct signal_info *info,
		      unsigned *left)
{
	for (;;) {
		struct note *note = note_oldest(target, signal, left);

		if (!note)
			return false;
		if (!atomic_cas(&note->state, NOTE_READY, NOTE_HELD))
			continue;
		if (atomic_load_relaxed(&note->target) == target &&
		    atomic_load_relaxed(&note->signal) == signal) {
			*info = note->info;
			note_free(note);
			(*left)--;
			return true;
		}
		atomic_store_release(&note->state, NOTE_READY);
	}
}

static void notes_drop(const struct thread *target, int signal)
{
	struct signal_info dropped;
	unsigned left = 1;

	while (left && note_take(target, signal, &dropped, &left))
		;
}

static bool take_unnoted(struct thread *target, int signal)
{
	const u64 bit = signal_bit(signal);

	return atomic_fetch_and(unnoted_word(target), ~bit) & bit;
}

static bool take_from(struct thread *target, u64 set, struct signal_info *info)
{
	u64 *word = pending_word(target);

	for (;;) {
		const u64 found = atomic_load_acquire(word) & set;
		unsigned left = 0;
		int signal;

		if (!found)
			return false;
		signal = __builtin_ctzll(found) + 1;
		if (!(atomic_fetch_and(word, ~signal_bit(signal)) & signal_bit(signal)))
			continue;
		if (!note_take(target, signal, info, &left)) {
			/* a queued signal may be taken before its sender sets the bit */
			if (signal >= SIGNALS_QUEUED && !take_unnoted(target, signal))
				continue;
			*info = plain_info(target, signal);
		}
		if (left && signal >= SIGNALS_QUEUED)
			atomic_fetch_or(word, signal_bit(signal));
		else if (left) /* senders raced; their signals have become one */
			notes_drop(target, signal);
		return true;
	}
}

bool signal_pending_take(struct thread *thread, u64 set, struct signal_info *info)
{
	if (!take_from(thread, set, info) && !take_from(NULL, set, info))
		return false;
	if (info->code == SI_TIMER)
		interval_timer_signal_taken(info);
	return true;
}

/*
 * Looks before it claims a note, so that the notes of other threads are never out of their reach.
 */
static void notes_forget(bool (*match)(const struct note *note, const void *key), const void *key)
{
	for (size_t i = 0; i < SIGNAL_NOTES && atomic_load_acquire(&notes_used); i++) {
		struct note *note = &notes[i];

		if (atomic_load_acquire(&note->state) != NOTE_READY || !match(note, key) ||
		    !atomic_cas(&note->state, NOTE_READY, NOTE_HELD))
			continue;
		if (match(note, key))
			note_free(note);
		else
			atomic_store_release(&note->state, NOTE_READY);
	}
}

static bool is_of_signal(const struct note *note, const void *key)
{
	return atomic_load_relaxed(&note->signal) == *(const int *)key;
}

static bool is_of_thread(const struct note *note, const void *key)
{
	return atomic_load_relaxed(&note->target) == key;
}

void signal_pending_forget(int signal)
{
	struct thread *thread;

	atomic_fetch_and(&shared, ~signal_bit(signal));
	take_unnoted(NULL, signal);
	for (thread = thread_next(NULL); thread; thread = thread_next(thread)) {
		atomic_fetch_and(&thread->pending, ~signal_bit(signal));
		take_unnoted(thread, signal);
	}
	notes_forget(is_of_signal, &signal);
}

void signal_pending_forget_thread(struct thread *thread)
{
	atomic_exchange(&thread->pending, 0);
	atomic_exchange(&thread->unnoted, 0);
	notes_forget(is_of_thread, thread);
}
