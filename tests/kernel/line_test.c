/*
 * Words and line editing, the part of the monitor that needs no device. The row of a terminal is
 * reconstructed from the editor's output.
 */
#include "kernel/console/line.h"
#include "kernel/lib/words.h"
#include "tests/kernel/test.h"

/* ---- words ---- */

static int cut(struct words *words, const char *text, size_t *used)
{
	return words_cut(words, text, strlen(text), used);
}

TEST(kernel_words, blanks_and_quotes_separate_words)
{
	struct words words;
	size_t used;

	REQUIRE(cut(&words, "  pool 2M\t\"a b;c\" node=1", &used) == 0);
	REQUIRE(words.count == 4);
	EXPECT(strcmp(words.word[0], "pool") == 0);
	EXPECT(strcmp(words.word[2], "a b;c") == 0);
	EXPECT(strcmp(words_value(&words, "node"), "1") == 0);
	EXPECT(strcmp(words_plain(&words, 1), "2M") == 0);
	EXPECT(!words_plain(&words, 3));
	EXPECT_EQ(words_plain_count(&words), 3);
	EXPECT(!words_value(&words, "nod"));
}

TEST(kernel_words, bytes_that_upset_a_terminal_become_question_marks)
{
	static const char text[] = {'a', 27, '[', 'J', (char)0xff, 'b'};
	struct words words;
	size_t used;

	REQUIRE(words_cut(&words, text, sizeof(text), &used) == 0);
	REQUIRE(words.count == 1);
	EXPECT(strcmp(words.word[0], "a?[J?b") == 0);
}

/* ---- a terminal of one row ---- */

enum { SCREEN = 2 * LINE_SIZE };

struct screen {
	char row[SCREEN + 1];
	size_t cursor;
};

static struct screen screen;

static void screen_emit(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\b')
			screen.cursor -= screen.cursor > 0;
		else if (text[i] >= ' ' && screen.cursor < SCREEN)
			screen.row[screen.cursor++] = text[i];
	}
}

/* Do the row, without blanks at its end, and the cursor match the editor's state? */
static bool screen_agrees(const struct screen *s, const struct line *line)
{
	size_t shown = strlen(s->row);

	while (shown > 0 && s->row[shown - 1] == ' ' && shown > line->len)
		shown--;
	return shown == line->len && strncmp(s->row, line->text, line->len) == 0 &&
	       s->cursor == line->cursor;
}

static enum line_event type(struct line *line, const char *keys)
{
	enum line_event event = LINE_MORE;

	for (; *keys; keys++)
		event = line_key(line, (u8)*keys);
	return event;
}

static struct line line; /* too large for the stack */

static void fresh(void)
{
	memset(&screen, 0, sizeof(screen));
	line_init(&line, screen_emit);
}

#define LEFT  "\033[D"
#define RIGHT "\033[C"

TEST(kernel_line, keys_edit_where_the_cursor_stands)
{
	static const struct {
		const char *keys, *text;
	} table[] = {
		{"abd" LEFT "c", "abcd"},
		{"abc\001x", "xabc"},
		{"abc\001\005x", "abcx"},
		{"abc\010", "ab"},
		{"abc\177\177", "a"},
		{"abc" LEFT LEFT "\033[3~", "ac"},
		{"abc" LEFT LEFT "\004", "ac"},
		{"abc def\027", "abc "},
		{"abc def" LEFT LEFT "\025", "ef"},
		{"abc def" LEFT LEFT "\013", "abc d"},
		{"abc\033[Hx\033[Fy", "xabcy"},
		{"abc\033[1~x\033[4~y", "xabcy"},
		{"abc\033OHx", "xabc"},
		{"ab" LEFT LEFT LEFT RIGHT "x", "axb"},
		{"a\033[99999999999999999Cb", "ab"},
		{"a\033[1;5Cb", "ab"},
		{"a\033\003", "a"},
	};

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		fresh();
		type(&line, table[i].keys);
		if (strcmp(line.text, table[i].text) != 0)
			test_fail(__FILE__, __LINE__, "keys %zu make \"%s\", not \"%s\"", i,
				  line.text, table[i].text);
		if (line.text[0] && table[i].keys[strlen(table[i].keys) - 1] != 3 &&
		    !screen_agrees(&screen, &line))
			test_fail(__FILE__, __LINE__, "keys %zu: the screen shows \"%s\"", i,
				  screen.row);
	}
}
