/* The memory of the program: one space, whose areas show files. */
#pragma once

#include "mm/vm/space.h"

extern struct space program_space;
