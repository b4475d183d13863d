/*
 * Random calls on a window of a program's space, and the reference of a space (space_model.h). Only
 * one thread changes the window, so each answer is known in advance; areas, page tables and
 * contents are compared with the model.
 *
 * Calls are made by the caller's function: as a thread of a box (program_area_test.c), or as one of
 * many threads, with signals in between (tests/host/fuzz_calls.h).
 */
#pragma once

#include "tests/kernel/random.h"
#include "tests/kernel/space_model.h"

enum { WINDOW_PAGES = 1536, WINDOW_FILE_PAGES = 16 };

struct program_window {
	u64 start, buffer; /* addresses of the window, and of one page more for the calls */
	u64 file;          /* descriptor of its own file, until program_window_end() */
	bool may_fail;     /* allocations do, or other threads have the memory */
	struct random_source *random;
	s64 (*call)(struct program_window *w, unsigned number, const u64 arg[6]);
	void (*fail)(struct program_window *w, const char *text);

	struct space_model model;
	struct space_page page[WINDOW_PAGES];
	u64 word[WINDOW_FILE_PAGES][3], line[512];
};

/* Before the first step: nothing is mapped, and the file is full of zeros. False: no memory. */
bool program_window_begin(struct program_window *w);

/* Change the window, or touch some of it. */
void program_window_step(struct program_window *w);

/* Unmap all of the window: what is there is not known. */
void program_window_clear(struct program_window *w);

/* Close the file, which stays while it is mapped, and compare all of the window. */
void program_window_end(struct program_window *w);
