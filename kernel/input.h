/*
 * What people type: bytes of the consoles, queued while something else runs, and Ctrl-C asked for meanwhile.
 *
 * Polled: by whoever waits for a key, and by long operations whenever they could stop. The consoles' own buffers hold the
 * bytes between two looks (16 in a UART).
 */
#pragma once

#include "kernel/types.h"

/* From now on input is looked at: before, and in runs that nobody steers, noise on the line means nothing. Boot CPU. */
void input_enable(void);

/* Next byte, or -1 if there is none. Boot CPU. */
int input_key(void);

/*
 * Was Ctrl-C typed since input_stop_clear()? Looks at the consoles; other keys are kept for input_key() (64 of them, later ones
 * are lost). Boot CPU; on other CPUs it tells what is known.
 */
bool input_stop_asked(void);
void input_stop_clear(void);
