/* Atomic operations: the compiler's, the same everywhere. The contract is the one of the real interface. */
#pragma once

#include "arch/x86_64/include/arch/atomic.h"
