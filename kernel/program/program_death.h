/* The end of a program by a signal. */
#pragma once

#include <arch/user.h>

#include "kernel/lib/types.h"
#include "kernel/program/signal_abi.h"

/*
 * The program ends because of a signal: say which, why and where (`regs`: of the calling thread),
 * and mark all threads as ending. Returns; the calling thread leaves at its attend(). A second call
 * does nothing. Context: ordinary.
 */
void program_die(int signal, const struct signal_info *info, struct trap_frame *regs);
