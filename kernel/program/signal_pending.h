/*
 * Signals that wait for a thread, or for any thread of the program.
 *
 * A pending signal is a bit: in struct thread for one thread, in a word of this file for the whole
 * program. What the bit does not say (who sent it, sigqueue()'s value) is in a note. There are
 * SIGNAL_NOTES notes, claimed by compare-and-swap, because interrupt handlers send signals and take
 * no locks.
 *
 *   sender     fills a note, marks it ready, then sets the bit
 *   receiver   clears the bit, then takes the oldest ready note of that signal, and sets the bit
 *              again if another note of it is left
 *
 * Signals below 32 are pending once. The others queue, one note each.
 */
#pragma once

#include "kernel/program/signal_abi.h"
#include "kernel/program/thread.h"

enum { SIGNAL_NOTES = 256 };

/* Nothing is pending. Before a program starts. */
void signal_pending_reset(void);

/*
 * Make a signal pending for a thread, or with NULL for the program. Returns 0, or -EAGAIN if no
 * note is left for a signal of sigqueue(). Other signals are then pending without their note, as if
 * kill() or tgkill() had sent them. Context: handler.
 */
int signal_pending_add(struct thread *thread, const struct signal_info *info);

/* Signals pending for the thread itself or for the program; for the program. Context: handler. */
u64 signal_pending_for(const struct thread *thread);
u64 signal_pending_shared(void);

/*
 * Take the lowest signal of the set that is pending for the calling thread, its own signals first.
 * Returns false if there is none, or other threads took it. Context: handler.
 */
bool signal_pending_take(struct thread *thread, u64 set, struct signal_info *info);

/* Forget a signal, wherever it is pending. Context: handler. */
void signal_pending_forget(int signal);
/* Forget what is pending for a thread that has ended. Context: handler. */
void signal_pending_forget_thread(struct thread *thread);
