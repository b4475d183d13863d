/*
 * The signals that wait for a thread, or for any thread of the program, and the action that the
 * program wants for each signal.
 *
 * A signal that waits is a bit, in struct thread or in a word of signal_queue.c for the whole
 * program, and in most cases an entry of one queue, which says who sent it and sigqueue()'s value.
 * Signals below 32 are pending once. The others queue, an entry each.
 *
 * One lock guards all of it, because interrupt handlers send signals (handler_lock.h). The bits and
 * signals_ignored() are also read without it.
 */
#pragma once

#include "kernel/program/signal_abi.h"
#include "kernel/program/thread.h"

enum { SIGNALS_QUEUE = 256 };

/* Before a program starts: default actions, nothing pending. */
void signal_queue_reset(void);

/*
 * Make a signal pending for a thread, or with NULL for the program. Returns 0, -ESRCH if the CPU's
 * thread has another id than `id` (0: whichever it has), or -EAGAIN if there is no room for a
 * signal of sigqueue(). Other signals are then pending without an entry, as if kill() or tgkill()
 * had sent them. Context: handler.
 */
int signal_pending_add(struct thread *thread, u32 id, const struct signal_info *info);

/* Signals pending for the thread itself or for the program; for the program. Context: handler. */
u64 signal_pending_for(const struct thread *thread);
u64 signal_pending_shared(void);

/*
 * Take the lowest signal of the set that is pending for the calling thread, its own signals first,
 * the oldest entry of it. False if there is none. Context: handler.
 */
bool signal_pending_take(struct thread *thread, u64 set, struct signal_info *info);

/* Forget the signals that are pending for a thread that has ended. Context: handler. */
void signal_pending_forget_thread(struct thread *thread);

/*
 * The action for a signal; with `action` not NULL that is the next one. A signal that is then
 * ignored is forgotten where it is pending. Context: handler.
 */
struct signal_action signal_action_exchange(int signal, const struct signal_action *action);

/*
 * The action for a signal that is to be delivered now. With SA_RESETHAND the action becomes the
 * default, once for each setting. Context: handler.
 */
struct signal_action signal_action_use(int signal);

/* Signals that do nothing, by request or because this is their default. Context: handler. */
u64 signals_ignored(void);
