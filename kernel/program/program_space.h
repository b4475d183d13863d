/* The memory of the program: one space, whose areas show files. */
#pragma once

#include "mm/vm/space.h"

extern struct space program_space;

/* A program starts. Returns 0 or -ENOMEM. Context: ordinary. */
int program_space_begin(void);
