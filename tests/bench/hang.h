/* Payloads that hang: hang.c. */
#pragma once

/*
 * Hang as named: "hang", this CPU with interrupts off; "stuck", CPU 1 while this one waits for it; "patient", the same
 * without an end to its patience; "asked", a panic while others ask this CPU where it is. Else returns.
 */
void payload_hang(const char *name);
