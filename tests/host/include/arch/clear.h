/* Clearing memory: tests/host/clear.c. The contract is the one of the real interface. */
#pragma once

#include "arch/x86_64/include/arch/clear.h"
