/* Payloads that hang: hang.c. */
#pragma once

/* Hang as named: "hang", this CPU with interrupts off; "stuck", CPU 1 while this one waits for it. Else returns. */
void payload_hang(const char *name);
