/*
 * Atomic operations: the compiler's, as everywhere. The contract is the one of the real interface.
 */
#pragma once

#include "arch/x86_64/include/arch/atomic.h"
