/* Lines of the monitor's `machine text`, for its reader (tests/host/replay_text.c). */
#pragma once

#include "kernel/lib/types.h"

/* The last line. Lines are numbered from 0; each ends in two blanks, ~ and its sum (%04x). */
#define MACHINE_TEXT_END "end of the machine"

/* The sum of a line, without what follows its text. One wrong byte changes it. */
static inline u16 machine_text_sum(unsigned number, const char *text, size_t len)
{
	u16 sum = (u16)number;

	for (size_t i = 0; i < len; i++)
		sum = (u16)(sum * 31 + (u8)text[i]);
	return sum;
}
