/* The PS/2 keyboard as a console that is read from. */
#pragma once

#include "arch/x86_64/consoles/consoles.h"

/* The PS/2 keyboard, or NULL if there is no controller. */
struct console *keyboard_probe(void);
