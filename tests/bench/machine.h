/*
 * The machine page: the hardware that this run found and uses, for people and as a BENCH boot
 * record.
 */
#pragma once

void machine_print(void);
