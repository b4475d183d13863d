/*
 * Stages of start-up and the time that each took, for the boot line and the BENCH boot record.
 *
 *   entry ... early | memory | map | firmware | cpus | mm | program | ready
 *
 * kernel_main() ends each stage where it has made true what the stage is named for. The stages
 * leave no gap, so their times add up to the time from entry to ready. The first stage began with
 * the loader's jump to the kernel. It contains the first measurement of the clock, and the stage
 * `cpus` contains the end of the second one.
 *
 * Boot CPU only, before anything else reads the list.
 */
#pragma once

#include "kernel/lib/types.h"

enum { BOOT_STAGES_MAX = 8 };

extern struct boot_stages {
	struct boot_stage {
		const char *name; /* a word that can be part of a record's key */
		u64 ns;           /* how long it took */
	} stage[BOOT_STAGES_MAX];
	size_t ended;
	u64 ns; /* from entry to the end of the last stage so far */
} boot_stages;

/* The stage called `name` ends now. At most BOOT_STAGES_MAX stages. */
void boot_stage_end(const char *name);
