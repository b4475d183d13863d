#include "kernel/program/signal_action.h"

#include "kernel/core/lock.h"

#define DEFAULT_IGNORES                                                                            \
	(1ULL << (SIGCHLD - 1) | 1ULL << (SIGURG - 1) | 1ULL << (SIGWINCH - 1) |                   \
	 1ULL << (SIGCONT - 1))
#define DEFAULT_STOPS                                                                              \
	(1ULL << (SIGSTOP - 1) | 1ULL << (SIGTSTP - 1) | 1ULL << (SIGTTIN - 1) |                   \
	 1ULL << (SIGTTOU - 1))

static struct spinlock lock = SPINLOCK_INIT(LOCK_LEAF);
static struct signal_action actions[SIGNALS_MAX];
static u64 ignored = DEFAULT_IGNORES; /* atomic */

bool signal_default_ignores(int signal)
{
	return DEFAULT_IGNORES & signal_bit(signal);
}

bool signal_default_stops(int signal)
{
	return DEFAULT_STOPS & signal_bit(signal);
}

static bool ignores(int signal, const struct signal_action *action)
{
	return action->handler == SIG_IGN ||
	       (action->handler == SIG_DFL && signal_default_ignores(signal));
}

static void store(int signal, const struct signal_action *action)
{
	actions[signal - 1] = *action;
	if (ignores(signal, action))
		atomic_fetch_or(&ignored, signal_bit(signal));
	else
		atomic_fetch_and(&ignored, ~signal_bit(signal));
}

void signal_actions_reset(void)
{
	const struct signal_action none = {0};

	spin_lock(&lock);
	for (int signal = 1; signal <= SIGNALS_MAX; signal++)
		store(signal, &none);
	spin_unlock(&lock);
}

struct signal_action signal_action_of(int signal)
{
	struct signal_action action;

	spin_lock(&lock);
	action = actions[signal - 1];
	spin_unlock(&lock);
	return action;
}

struct signal_action signal_action_set(int signal, const struct signal_action *action)
{
	struct signal_action old;

	spin_lock(&lock);
	old = actions[signal - 1];
	store(signal, action);
	spin_unlock(&lock);
	return old;
}

struct signal_action signal_action_use(int signal)
{
	struct signal_action action;

	spin_lock(&lock);
	action = actions[signal - 1];
	if (action.handler > SIG_IGN && action.flags & SA_RESETHAND) {
		struct signal_action reset = action;

		reset.handler = SIG_DFL;
		store(signal, &reset);
	}
	spin_unlock(&lock);
	return action;
}

u64 signals_ignored(void)
{
	return atomic_load_relaxed(&ignored);
}
