/*
 * Console, backtrace and the end of a run: tests/host/console.c. The contract is the one of the
 * real interface.
 */
#pragma once

#include "arch/x86_64/include/arch/console.h"
