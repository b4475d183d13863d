/* The word in front of return addresses that reveals an overrun of the stack. */
#pragma once

/* Replace the build's word by a random one. Boot CPU, before anything else. */
void stack_guard_choose(void);
