/*
 * A machine in a child process: started, read until its end or its time is up, and judged. The
 * runner (main.c) and the explorer of schedules (explore/main.c) share this.
 */
#pragma once

#include <sys/types.h>

#include "kernel/lib/types.h"

enum { REASON_MAX = 256 };

/* Outcome of a case, from its verdict or from a failure of the machine itself. */
enum outcome { OUTCOME_PASS, OUTCOME_FAIL, OUTCOME_SKIP };

struct child {
	pid_t pid;
	int out;    /* its stdout and stderr */
	char *text; /* what it printed; the caller of child_start() frees it */
	size_t len;
	bool timed_out;
	int status;
};

/* fork(), with the child's output to be read by child_finish(). In the child, .pid is 0. */
struct child child_fork(void);

/* Boot a machine with this command line in a child process. */
struct child child_start(const char *cmdline);

/* Read the child's output until it ends, or kill it when its time is up (host_config.limit_s). */
void child_finish(struct child *child);

/* Outcome of the child; *reason (REASON_MAX) gets the reason for a failure or a skip. */
enum outcome child_outcome(const struct child *child, char *reason);

/*
 * Show the child's output. Diagnostics are always shown. The rest is shown if the case failed,
 * quoted so that no KTAP in it counts. The middle of a long text (a backtrace of a runaway
 * recursion) is left out.
 */
void child_show(char *text, bool all);

/* Print for people, as printf() does; not through the consoles, which a case may have replaced. */
void child_say(const char *fmt, ...) __printf(1, 2);

/*
 * Take an option that all runners have: -c CPUs (at most `cpus_most`), -m RAM, -t seconds. False if
 * it is none of these.
 */
bool child_option(int option, const char *value, u64 cpus_most);

/* Print the names of the cases that would run. Returns 0, for main(). */
struct test_run;
int child_list(const struct test_run *run);

/* A number of the command line; one that is malformed or out of bounds ends the process. */
u64 host_number(const char *text, u64 min, u64 max, const char *what);
