/*
 * Texts that a program finds under /proc and /sys. The linker gathers them, so the owner of what a
 * text tells declares it beside that code:
 *
 *	static void write_maps(struct text_sink *sink) { text_print(sink, "%llx-%llx ...\n", ...); }
 *	PROC_TEXT(maps, "/proc/self/maps", write_maps);
 *
 * The function runs when the file is opened, on the CPU of the thread that opens it, and holds no
 * lock when it calls text_print(). The open file has the text that it wrote.
 */
#pragma once

#include "kernel/lib/types.h"

struct contents;

struct text_sink {
	struct contents *contents;
	int err; /* once it is not 0, nothing more is added */
};

struct proc_text {
	const char *path;
	void (*write)(struct text_sink *sink);
};

TABLE_DECLARE(const struct proc_text, proc_table);

#define PROC_TEXT(ident, where, fn)                                                                \
	static const struct proc_text proc_row_##ident TABLE_ENTRY(proc_table) = {.path = (where), \
										  .write = (fn)}

/*
 * Add to the text; text_print() adds at most TEXT_LINE_MAX - 1 characters. After an error nothing
 * more is added. Context: ordinary.
 */
enum { TEXT_LINE_MAX = 256 };
void text_add(struct text_sink *sink, const char *text, u64 length);
void text_print(struct text_sink *sink, const char *fmt, ...) __printf(2, 3);
