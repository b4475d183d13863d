/* RAM that firmware's MTRRs leave uncached. */
#pragma once

/*
 * Read the boot CPU's MTRRs and drop the RAM that they leave uncached (mtrr.h). Boot CPU, after
 * memory in use has been reserved and before the direct map is made.
 */
void uncached_ram_drop(void);
