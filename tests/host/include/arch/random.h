/* Random numbers: tests/host/cpu.c; the hosted machine has none. */
#pragma once

#include "arch/x86_64/include/arch/random.h"
