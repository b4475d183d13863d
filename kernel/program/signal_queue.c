/* Pending signals, and the actions: see signal_queue.h. */
#include "kernel/program/signal_queue.h"

#include "kernel/lib/string.h"
#include "kernel/program/handler_lock.h"
#include "kernel/program/timers.h"

struct entry {
	const struct thread *target; /* NULL: the program */
	struct signal_info info;
};

static u32 lock;
static struct entry entries[SIGNALS_QUEUE]; /* the oldest first */
static unsigned count;
static u64 shared;
static struct signal_action actions[SIGNALS_MAX];
static u64 ignored = SIGNALS_IGNORED;

u64 signals_ignored(void)
{
	return atomic_load_relaxed(&ignored);
}

u64 signal_pending_shared(void)
{
	return atomic_load_acquire(&shared);
}

u64 signal_pending_for(const struct thread *thread)
{
	return atomic_load_acquire(&thread->pending) | signal_pending_shared();
}

/* ---- with the lock held ---- */

static u64 *pending_word(struct thread *thread)
{
	return thread ? &thread->pending : &shared;
}

static void store_action(int signal, const struct signal_action *action)
{
	const u64 bit = signal_bit(signal);
	const bool ignores =
		action->handler == SIG_IGN || (action->handler == SIG_DFL && bit & SIGNALS_IGNORED);

	actions[signal - 1] = *action;
	atomic_store_relaxed(&ignored, ignores ? ignored | bit : ignored & ~bit);
}

/* Drop the entries of a signal, or with 0 those of a thread. */
static void drop(int signal, const struct thread *target)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < count; i++)
		if (signal ? entries[i].info.signal != signal : entries[i].target != target)
			entries[kept++] = entries[i];
	count = kept;
}

static void forget(int signal)
{
	atomic_fetch_and(&shared, ~signal_bit(signal));
	for (struct thread *thread = thread_next(NULL); thread; thread = thread_next(thread))
		atomic_fetch_and(&thread->pending, ~signal_bit(signal));
	drop(signal, NULL);
}

/* If a signal of the same timer waits already, count this one as its overrun. */
static bool count_overrun(const struct thread *thread, const struct signal_info *info)
{
	for (struct entry *e = entries; info->code == SI_TIMER && e < entries + count; e++) {
		if (e->target != thread || e->info.code != SI_TIMER || e->info.pid != info->pid ||
		    e->info.signal != info->signal || e->info.value != info->value)
			continue;
		e->info.uid = (u32)MIN(1ULL + e->info.uid + info->uid, (u64)INT32_MAX);
		return true;
	}
	return false;
}

static bool take_from(struct thread *target, u64 set, struct signal_info *info)
{
	const u64 found = *pending_word(target) & set;
	struct entry *oldest = NULL;
	unsigned left = 0;

	if (!found)
		return false;
	/* without an entry: as if kill() or tgkill() had sent it */
	*info = (struct signal_info){.signal = __builtin_ctzll(found) + 1,
				     .code = target ? SI_TKILL : SI_USER,
				     .pid = (s32)program_pid()};
	for (struct entry *entry = entries; entry < entries + count; entry++) {
		if (entry->target != target || entry->info.signal != info->signal)
			continue;
		oldest = oldest ? oldest : entry;
		left++;
	}
	if (oldest) {
		*info = oldest->info;
		count--;
		memmove(oldest, oldest + 1, (u64)(entries + count - oldest) * sizeof(*oldest));
	}
	if (left <= 1)
		atomic_fetch_and(pending_word(target), ~signal_bit(info->signal));
	return true;
}

/* ---- calls of this file ---- */

void signal_queue_reset(void)
{
	const irq_flags_t flags = handler_lock(&lock);

	for (int signal = 1; signal <= SIGNALS_MAX; signal++)
		store_action(signal, &(struct signal_action){0});
	atomic_store_relaxed(&shared, 0);
	count = 0;
	handler_unlock(&lock, flags);
}

int signal_pending_add(struct thread *thread, u32 id, const struct signal_info *info)
{
	const u64 bit = signal_bit(info->signal);
	const irq_flags_t flags = handler_lock(&lock);
	int err = 0;

	/* the record's next thread begins after signal_pending_forget_thread() */
	if (id && atomic_load_acquire(&thread->id) != id) {
		err = -ESRCH;
	} else if (!count_overrun(thread, info) &&
		   (info->signal >= SIGNALS_QUEUED || !(*pending_word(thread) & bit))) {
		if (count < SIGNALS_QUEUE)
			entries[count++] = (struct entry){thread, *info};
		else if (info->code < 0 && info->code != SI_TKILL && info->code != SI_TIMER)
			err = -EAGAIN;
		if (!err)
			atomic_fetch_or(pending_word(thread), bit);
	}
	handler_unlock(&lock, flags);
	return err;
}

bool signal_pending_take(struct thread *thread, u64 set, struct signal_info *info)
{
	const irq_flags_t flags = handler_lock(&lock);
	const bool taken = take_from(thread, set, info) || take_from(NULL, set, info);

	handler_unlock(&lock, flags);
	if (taken && info->code == SI_TIMER)
		timer_signal_taken(info);
	return taken;
}

void signal_pending_forget_thread(struct thread *thread)
{
	const irq_flags_t flags = handler_lock(&lock);

	atomic_store_relaxed(&thread->pending, 0);
	drop(0, thread);
	handler_unlock(&lock, flags);
}

struct signal_action signal_action_exchange(int signal, const struct signal_action *action)
{
	const irq_flags_t flags = handler_lock(&lock);
	const struct signal_action old = actions[signal - 1];

	if (action) {
		store_action(signal, action);
		if (ignored & signal_bit(signal))
			forget(signal);
	}
	handler_unlock(&lock, flags);
	return old;
}

struct signal_action signal_action_use(int signal)
{
	const irq_flags_t flags = handler_lock(&lock);
	const struct signal_action action = actions[signal - 1];
	struct signal_action reset = action;

	reset.handler = SIG_DFL;
	if (action.handler > SIG_IGN && action.flags & SA_RESETHAND)
		store_action(signal, &reset);
	handler_unlock(&lock, flags);
	return action;
}
