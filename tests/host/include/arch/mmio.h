/* Device registers: the hosted machine has none. The contract is the one of the real interface. */
#pragma once

#include "arch/x86_64/include/arch/mmio.h"
