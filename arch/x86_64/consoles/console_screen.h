/* The screen as a console: a framebuffer or VGA text. */
#pragma once

#include "kernel/lib/types.h"

/*
 * The screen is first written through the boot page tables (below 4 GiB). Once the kernel's tables
 * are loaded it gets a mapping of its own, write-combining for a framebuffer. Between
 * console_screen_leave() and console_screen_map() nothing is drawn.
 */
void console_screen_reserve(void); /* keeps its memory from being used as RAM */
void console_screen_leave(void);
void console_screen_map(void);

/*
 * Start the framebuffer or VGA text that the loader described, else VGA text if the card is in that
 * mode. False if there is no screen.
 */
bool console_screen_init(void);
