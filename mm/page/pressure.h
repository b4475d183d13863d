/*
 * Asking programs for memory before a request fails: pressure_register() of mm.h.
 *
 * A request that may ask has found nothing and holds nothing of the kernel's: no lock, no claimed
 * entry, no pin, no range. So only the calls of mm.h ask, at their outermost level, and the same
 * work done inside of mm never does (mm_page_alloc()).
 */
#pragma once

#include "mm/mm.h"

/*
 * Ask the functions from the *next-th on (0 at first) until one has freed something, and move *next
 * behind it. Returns false if there is none left to ask, or if this CPU is being asked already.
 * Context: ordinary.
 */
bool pressure_ask(unsigned *next, unsigned order);
