/* Payloads that hang (hang.c), and mistakes for sanitizers (san_broken.c). */
#pragma once

/*
 * Hang in the named way, or return if `name` is none of these. "hang": this CPU, with interrupts
 * off. "stuck": CPU 1, while this CPU waits for it. "patient": the same, but the wait has no limit.
 * "asked": a panic while other CPUs ask this one where it is.
 */
void payload_hang(const char *name);

/*
 * Make one mistake, named "san-shift", "san-free-frame" ... (san_broken.c). Returns if `name` is
 * none of them, or if nothing catches the mistake.
 */
void payload_sanitizers(const char *name);
