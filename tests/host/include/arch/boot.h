/* Start-up hooks: tests/host/machine.c. The contract is the one of the real interface. */
#pragma once

#include "arch/x86_64/include/arch/boot.h"
