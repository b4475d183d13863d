/*
 * The lines of the log that programs read, cut into pieces for QR codes: plans and results of
 * suites, cases that failed and why, records, the machine page, a panic, the verdict.
 *
 *   ASHLAR-QR 2/3 5d1f20c7          number of the piece, how many there are, sum of the whole text
 *   BENCH hvo mode=on ...           its part of the text; it may begin and end inside of a line
 *
 * tests/run joins pictures of all pieces, in any order.
 */
#pragma once

#include "kernel/lib/qr.h"
#include "kernel/lib/types.h"

/*
 * Write piece `n` (from 1) to `out` and its length to *len (0 if there is no such piece); `out` may
 * be NULL. Returns the number of pieces. Needs no memory. One caller at a time, and the log must
 * not change meanwhile.
 */
unsigned results_piece(unsigned n, char out[QR_BYTES], size_t *len);

/* True if this line, without its newline, is one of those. *rest: all lines after it are, too. */
bool results_wanted(const char *line, bool *rest);
