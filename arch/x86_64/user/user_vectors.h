/* The vector registers of a program, arch-internal part; the rest is <arch/user.h>. */
#pragma once

/* Put the vector and x87 registers of this CPU into the state in which a program begins. */
void user_vectors_reset(void);
