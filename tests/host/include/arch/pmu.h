/* Performance counters: tests/host/pmu.c. The contract is the one of the real interface. */
#pragma once

#include "arch/x86_64/include/arch/pmu.h"
