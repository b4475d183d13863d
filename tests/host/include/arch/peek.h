/* Loads that may fail: tests/host/fault.c. The contract is the one of the real interface. */
#pragma once

#include "arch/x86_64/include/arch/peek.h"
