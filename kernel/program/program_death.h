/* The end of a program by a signal. */
#pragma once

/*
 * The program ends because of a signal: say which, why and where (`regs`: of the calling thread),
 * and mark all threads as ending. Returns; the calling thread leaves at its attend(). A second call
 * does nothing. Context: ordinary.
 */
struct signal_info;
struct trap_frame;
void program_die(int signal, const struct signal_info *info, struct trap_frame *regs);
