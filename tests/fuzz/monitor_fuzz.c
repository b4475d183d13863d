/*
 * libFuzzer harness for input typed at the monitor. The bytes go through the line editor, and each
 * finished line is cut into words. It can be built alone:
 *
 *	clang -g -O1 -fsanitize=fuzzer,address,undefined \
 *		-I. tests/fuzz/monitor_fuzz.c -o monitor_fuzz
 *
 * It requires that the cursors of the terminal and of the editor always agree, that lines stay
 * terminated, that words are printable and lie in the copy, and that cutting always ends.
 */

#include "kernel/console/keys.c"
#include "kernel/console/line.c"
#include "kernel/lib/words.c"
#include "tests/fuzz/fuzz.h"

static size_t column;

static void emit_to_terminal(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\b') {
			require(column > 0);
			column--;
		} else if (text[i] == '\n') {
			column = 0;
		} else if (text[i] != '\a') {
			require(text[i] >= ' ' && text[i] < 0x7f);
			column++;
		}
	}
}

/* The text lies in a block of its exact size, so that a read of one byte too many is detected. */
static void cut_all(const char *text, size_t len)
{
	char *exact = exact_copy(text, len);
	struct words words;
	size_t at = 0, used;

	while (at < len) {
		const int err = words_cut(&words, exact + at, len - at, &used);

		require(err == 0 || err == -EINVAL || err == -E2BIG);
		require(used > 0 && used <= len - at && words.count <= WORDS_MAX);
		for (unsigned i = 0; i < words.count; i++) {
			require(words.word[i] >= words.text &&
				words.word[i] < words.text + WORDS_TEXT);
			for (const char *p = words.word[i]; *p; p++)
				require(*p >= ' ' && *p < 0x7f);
		}
		require(words_plain_count(&words) <= words.count);
		at += used;
	}
	free(exact);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct line *line = malloc(sizeof(*line));

	column = 0;
	line_init(line, emit_to_terminal);
	for (size_t i = 0; i < size; i++) {
		const enum line_event event = line_key(line, data[i]);

		require(line->cursor <= line->len && line->len <= LINE_SIZE &&
			line->text[line->len] == '\0');
		if (event == LINE_TAB)
			line_insert(line, "tab", data[i] % 4);
		if (event == LINE_READY)
			cut_all(line->text, line->len);
		if (event == LINE_READY || event == LINE_CANCELLED)
			line_begin(line);
		require(column == line->cursor);
	}
	cut_all((const char *)data, size);
	free(line);
	return 0;
}
