/* One program: loading it, running it, and its end. */
#pragma once

#include "kernel/lib/types.h"

/*
 * Load the ELF image, and its interpreter from `files` if it has one, and run it on the calling CPU
 * until it ends, with `args` (the first is its name) and `environment`. Returns its exit status (0
 * to 255, or 128 + signal), or a negative errno if it could not be started, with the reason in the
 * log. Afterwards every frame is free again. Context: ordinary.
 */
struct arguments;
struct program_request {
	const char *name; /* of its file; it appears in messages and in /proc/self/exe */
	const void *image;
	u64 size;
	const void *files; /* cpio image, NULL: none */
	u64 files_size;
	const struct arguments *args, *environment;
};
int program_run(const struct program_request *request);

/*
 * Run a program of the loader's modules (module.h) as program_run() does, and print how it ended
 * (PROGRAM name=... status=...) and what it took, loading and freeing included (a record).
 */
struct program_source;
int program_run_source(const struct program_source *source);

/*
 * The parts of program_run() around the run itself, for tests: afterwards the calling CPU has a
 * thread, and there is no memory mapped. program_finish() frees everything.
 */
int program_begin(const struct program_request *request);
void program_finish(void);

/* Has the program ended, or been asked to? *status receives its status. Context: handler. */
bool program_ended(int *status);

/*
 * End the program: every thread leaves. The first status counts: true if it is this one. Context:
 * ordinary.
 */
bool program_end(int status);

/*
 * Ctrl-C: SIGINT for the program. A second one within a second is SIGKILL, because a program may
 * ignore the first. Context: handler.
 */
void program_interrupt(void);
bool program_was_interrupted(void); /* the present program, or the last one */

/* A place in the program as the log names it: "main+0x12", or "" without symbols. */
void program_symbol(u64 addr, char *buf, size_t size);
