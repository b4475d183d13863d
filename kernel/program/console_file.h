/*
 * The console as a file: standard input, output and error, and /dev/tty.
 *
 * Output goes to the log and to all consoles. Input is a line at a time: the console echoes what is
 * typed, Backspace takes a character back, Ctrl-U the line. A line is read after Enter. Ctrl-D ends
 * the line without a newline; on an empty line that is the end of the file.
 *
 * Only the boot CPU can read keys, so other CPUs ask it. Nothing announces a key: a thread that
 * waits looks again every CONSOLE_LOOK_NS.
 */
#pragma once

#include "kernel/lib/types.h"

#define CONSOLE_LOOK_NS (10 * NS_PER_MS)

/* Forget what was typed. Before and after a program. */
void console_file_reset(void);

/* A key as if it were typed; for tests too. Any CPU. */
void console_file_key(u8 key);
