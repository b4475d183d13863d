/*
 * eventfds: a count of 64 bits. A write adds to it, a read takes it (or 1 of it, if the file was
 * made with EVENT_SEMAPHORE) and waits while it is 0.
 */
#pragma once

#include "kernel/lib/types.h"

enum { EVENT_SEMAPHORE = 1 };

struct file;

/* A new file with one reference, or NULL if there is no memory. Context: ordinary. */
struct file *event_new(u64 count, bool semaphore, u32 flags);
