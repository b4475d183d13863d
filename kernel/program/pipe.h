/*
 * Pipes and pairs of sockets: rings of 64 KiB, written at one end and read at the other.
 *
 *	tail          head
 *	  | bytes ... |            both only rise; the place of a byte is its number % 64 KiB
 *
 *	pipe            ring 0: from end 1 to end 0
 *	socketpair      ring 0: from end 1 to end 0, ring 1: from end 0 to end 1
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
 * The two ends, with one reference each; of a pipe the reader's first. `flags`: OPEN_NONBLOCK or
 * 0. Returns 0 or -ENOMEM. Context: ordinary.
 */
enum pipe_kind { PIPE_ONE_WAY, PIPE_SOCKETS };
int pipe_new(enum pipe_kind kind, u32 flags, struct file *ends[2]);

bool pipe_is_socket(const struct file *file);

/* As shutdown(2): bit 0, nothing is read any more; bit 1, nothing is written. */
void pipe_shut(struct file *socket, unsigned how);
