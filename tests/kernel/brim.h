/*
 * The brim of memory, for cases: from brim_begin() on, the nth pass of a site fails, and with
 * FAIL_AGAIN every nth one, whatever is free. CPUs keep no pages meanwhile. brim_end() says whether
 * one has failed.
 */
#pragma once

#include "kernel/core/fail.h"

void brim_begin(enum fail_site site, u32 nth, enum fail_again again);
bool brim_end(void);
