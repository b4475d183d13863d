/* PCI: the hosted machine has none (tests/host/pci.c). The contract is the real one. */
#pragma once

#include "arch/x86_64/include/arch/pci.h"
