/*
 * Provokers: cases in which several CPUs try to make a race happen until their time is up. Each run
 * of the suite gives them a little (test.provoke_ms=); a soak gives them a minute each
 * (test.provoke_ms=60000).
 *
 *	const struct provoke p = provoke_begin();
 *	while (provoke_goes_on(&p) && !test_failed())
 *		one_round();
 */
#pragma once

#include "kernel/lib/types.h"

struct provoke {
	u64 end; /* as clock_ns() counts */
};

struct provoke provoke_begin(void);

/* Is there time for another round? Any CPU. */
bool provoke_goes_on(const struct provoke *p);
