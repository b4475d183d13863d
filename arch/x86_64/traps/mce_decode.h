/* Decoding of a machine-check bank. Pure. */
#pragma once

#include "arch/x86_64/traps/mce.h"

#define STATUS_VALID       (1ULL << 63)
#define STATUS_OVERFLOW    (1ULL << 62)
#define STATUS_UNCORRECTED (1ULL << 61)
#define STATUS_ENABLED     (1ULL << 60)
#define STATUS_MISC_VALID  (1ULL << 59)
#define STATUS_ADDR_VALID  (1ULL << 58)
#define STATUS_CONTEXT     (1ULL << 57) /* processor context corrupt */
#define STATUS_SIGNALED    (1ULL << 56) /* of CPUs that recover (MCG_SER_P) */
#define STATUS_ACTION      (1ULL << 55) /* of these: a CPU would read the bad page again */

/* Was the error of this status corrected? Pure. */
bool mce_corrected(u64 status);

/*
 * Does the error of this status interrupt (#MC)? `recovers`: the CPU says of uncorrected errors
 * whether they do (SDM vol. 3B, 15.6.3). Pure.
 */
bool mce_interrupts(u64 status, bool recovers);

/*
 * True if the address register names a page of memory that the error made unusable. Never on AMD:
 * the addresses of its memory controllers count from the start of a channel, and are not those of
 * the system.
 */
bool mce_names_page(const struct mce_error *error);

/*
 * Corrected errors that the bank's status stands for, 1 at least: Intel's banks count those that
 * came until they are read.
 */
u64 mce_corrected_count(const struct mce_error *error);

/* Describe the error in words: kind, unit, and the loss to the CPU. Always terminated. Pure. */
void mce_describe(const struct mce_error *error, char *buf, size_t size);
