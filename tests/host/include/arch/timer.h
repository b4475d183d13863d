/* The CPU's timer: tests/host/console.c; the hosted machine has none. */
#pragma once

#include "arch/x86_64/include/arch/timer.h"
