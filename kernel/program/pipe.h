/*
 * Pipes: a ring of 64 KiB, written at one end and read at the other.
 *
 *	tail          head
 *	  | bytes ... |            both only rise; the place of a byte is its number % 64 KiB
 *
 * Bytes are copied straight between the ring and the program, without a lock. One writer and one
 * reader have the turn to do so at a time: the writer fills free room and then moves `head`, the
 * reader empties and then moves `tail`. A thread gives its turn back before it waits for room or
 * for bytes. A write of at most PIPE_ATOMIC bytes begins when all of it fits.
 */
#pragma once

#include "kernel/lib/types.h"

enum { PIPE_SIZE = 65536, PIPE_ATOMIC = 4096 };

struct file;

/*
 * The two ends of a new pipe, with one reference each. `flags`: OPEN_NONBLOCK or 0. Returns 0 or
 * -ENOMEM. Context: ordinary.
 */
int pipe_new(u32 flags, struct file **read_end, struct file **write_end);
