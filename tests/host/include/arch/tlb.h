/* The TLB, simulated: tests/host/check.c. The contract is the one of the real interface. */
#pragma once

#include "arch/x86_64/include/arch/tlb.h"
