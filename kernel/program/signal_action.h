/*
 * The action that a program wants for each signal: one table for all threads.
 *
 * Locks: the table has a lock of its own. Which signals are ignored is also kept in one word, which
 * interrupt handlers read.
 */
#pragma once

#include "kernel/program/signal_abi.h"

/* All actions become the default. Before a program starts. */
void signal_actions_reset(void);

struct signal_action signal_action_of(int signal);

/* Replace an action. Returns the old one. Context: locked. */
struct signal_action signal_action_set(int signal, const struct signal_action *action);

/*
 * The action for a signal that is to be delivered now. With SA_RESETHAND the action becomes the
 * default, once for each setting. Context: locked.
 */
struct signal_action signal_action_use(int signal);

/* Signals that do nothing, by request or because this is their default. Context: handler. */
u64 signals_ignored(void);

/* Does the default action of a signal do nothing, or stop (which programs here cannot)? */
bool signal_default_ignores(int signal);
bool signal_default_stops(int signal);
