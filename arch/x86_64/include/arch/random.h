/* Random numbers from the CPU. */
#pragma once

#include "kernel/lib/types.h"

/*
 * 64 random bits of the CPU's own generator. Returns false if it has none or it gave none just now.
 * Context: any.
 */
bool random_hardware(u64 *value);
