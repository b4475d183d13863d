/* The PS/2 keyboard as a console that is read from. */
#pragma once

#include "kernel/lib/types.h"

/* Register the PS/2 keyboard. False if there is no controller. */
bool keyboard_start(void);
