/* What check_event() can be told: the same everywhere. */
#pragma once

#include "arch/x86_64/include/arch/check_event.h"
