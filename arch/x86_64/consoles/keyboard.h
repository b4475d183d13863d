/* The PS/2 keyboard as a console that is read from. */
#pragma once

struct console;

/* The PS/2 keyboard, or NULL if there is no controller. */
struct console *keyboard_probe(void);
