/* The events that check_event() records, the same everywhere. */
#pragma once

#include "arch/x86_64/include/arch/check_event.h"
