/*
 * Keyboard input: bytes from the consoles are queued while a command runs, and Ctrl-C is noticed
 * meanwhile.
 *
 * The consoles are polled by code that waits for a key, and by long operations at points where they
 * could stop. The consoles' own buffers hold the bytes between two polls (16 in a UART).
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Set when input is wanted. Before that, and in runs without a user, noise on the line has no
 * effect. Boot CPU.
 */
extern bool input_enabled;

/* Next byte, or -1 if there is none. Boot CPU. */
int input_key(void);

/*
 * True if Ctrl-C was typed since input_stop_clear(). Polls the consoles; other keys are kept for
 * input_key() (64 of them, later ones are lost). Boot CPU; on other CPUs it returns what is known
 * without polling.
 */
bool input_stop_asked(void);
void input_stop_clear(void);

/*
 * True if Ctrl-C was typed, for an interrupt that looks while something else runs: the look is no
 * sign that the run makes progress (watchdog.h). Boot CPU, interrupts off.
 */
bool input_stop_typed(void);

/* As if Ctrl-C had been typed: the rest of the command line is stopped, too. Context: handler. */
void input_stop_ask(void);
