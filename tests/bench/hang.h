/* Payloads that hang: hang.c; mistakes for sanitizers: san_broken.c. */
#pragma once

/*
 * Hang as named: "hang", this CPU with interrupts off; "stuck", CPU 1 while this one waits for it; "patient", the same
 * without an end to its patience; "asked", a panic while others ask this CPU where it is. Else returns.
 */
void payload_hang(const char *name);

/* "san-shift", "san-free-frame" ... (san_broken.c): one such mistake. Else, and if nobody notices, returns. */
void payload_sanitizers(const char *name);
