/*
 * Device interrupts and timers: tests/host/console.c; the hosted machine has none. The contract is
 * the one of the real interface.
 */
#pragma once

#include "arch/x86_64/include/arch/irq.h"
