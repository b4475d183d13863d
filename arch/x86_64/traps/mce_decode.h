/* Decoding of a machine-check bank. Pure. */
#pragma once

#include "arch/x86_64/traps/mce.h"

/* Is an error recorded in this status, and was it corrected? Pure. */
bool mce_valid(u64 status);
bool mce_corrected(u64 status);

/* True if the address register names a page of memory that the error made unusable. */
bool mce_names_page(const struct mce_error *error);

/* Describe the error in words: kind, unit, and the loss to the CPU. Always terminated. Pure. */
void mce_describe(const struct mce_error *error, char *buf, size_t size);
