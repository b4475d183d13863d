/* Which instruction clears memory fastest on this machine, measured at boot. */
#pragma once

#include "mm/clear/clear.h"

/*
 * Measure every variant for each class on memory of this machine and use the fastest
 * (clear_calibrate=on). A class for which there is no memory keeps the choice by CPUID. Prints what
 * was chosen. Boot CPU, once, when pages can be allocated.
 */
void clear_calibrate(void);
