/* Texts that people and terminals type: words, keys, lines, screens. */
#include "tests/prove/prove.h"

#include "kernel/console/console_keyboard.c"
#define ESC SCREEN_ESC
#include "kernel/console/console_screen.c"
#undef ESC
#include "kernel/console/keys.c"
#include "kernel/console/line.c"
#include "kernel/lib/words.c"

PROVE(words, "6", "a-bell-is-a-word", "lines of up to 4 bytes, room for 2 words of 4")
{
	static struct words words;
	ANY_BYTES(text, len, 4);
	const unsigned n = ANY_BELOW(unsigned, 2), c = ANY_BELOW(unsigned, 4);
	size_t used;
	const int err = words_cut(&words, (const char *)text, len, &used);

	prove(err == 0 || err == -EINVAL || err == -E2BIG);
	prove(used <= len && (len == 0 || used > 0) && words.count <= 2);
	prove(words_plain_count(&words) <= words.count);
	if (n < words.count) {
		const char *word = words.word[n];

		prove(word >= words.text && strnlen(word, WORDS_TEXT) < WORDS_TEXT);
		prove(c >= strnlen(word, 5) || (word[c] >= ' ' && word[c] < 0x7f));
	}
}

PROVE(keys, "9", "a-number-is-a-place-in-the-table", "any state, any byte")
{
	struct keys keys = {.state = ANY_BELOW(u8, STATE_SS3 + 1),
			    .param = ANY_BELOW(unsigned, PARAM_MAX + 1)};
	const u8 byte = ANY(u8);
	const int key = keys_feed(&keys, byte);

	prove(key == KEY_NONE || key == byte || (key >= KEY_UP && key <= KEY_PAGE_DOWN));
	prove(keys.state <= STATE_SS3 && keys.param <= PARAM_MAX);
	prove((byte >= ' ' && byte < BYTE_DEL) || keys.state <= STATE_ESC);
}

PROVE(keyboard, "12", "a-key-behind-the-table", "any state, any code")
{
	struct keyboard keyboard = {ANY_BOOL, ANY_BOOL, ANY_BOOL, ANY_BOOL};
	char out[KEY_BYTES_MAX];
	const unsigned n = keyboard_decode(&keyboard, ANY(u8), out),
		       i = ANY_BELOW(unsigned, KEY_BYTES_MAX);

	prove(n <= KEY_BYTES_MAX);
	prove(i >= n || (out[i] > 0 && out[i] < BYTE_DEL));
}

/* The row of a terminal. */
static char shown[LINE_SIZE + 4];
static size_t column;

static void terminal(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		prove(text[i] == '\b' ? column > 0 : column < sizeof(shown));
		if (text[i] == '\b')
			column--;
		else if (text[i] != '\a')
			shown[column++] = text[i];
	}
}

static void assume_typed(const char text[LINE_SIZE + 1])
{
	assume(text[LINE_SIZE] == '\0');
	for (size_t i = 0; i < LINE_SIZE; i++)
		assume(!text[i] || (text[i] >= ' ' && text[i] < 0x7f));
}

PROVE(line, "10", "70-deleted-stays-on-screen", "any key in any line of 4, any 2 old ones")
{
	static struct line line;
	const size_t at = ANY_BELOW(size_t, LINE_SIZE);
	enum line_event event;

	line = ANY(struct line);
	line.emit = terminal;
	line.len = strnlen(line.text, LINE_SIZE);
	assume_typed(line.text);
	assume_typed(line.draft);
	for (unsigned i = 0; i < LINE_HISTORY; i++)
		assume_typed(line.history[i]);
	assume(line.cursor <= line.len && line.entered <= 3);
	assume(line.back <= MIN(line.entered, (unsigned)LINE_HISTORY) &&
	       line.keys.state <= STATE_SS3 && line.keys.param <= PARAM_MAX);
	for (size_t i = 0; i < LINE_SIZE; i++)
		shown[i] = i < line.len ? line.text[i] : ' ';
	column = line.cursor;
	event = line_key(&line, ANY(u8));
	prove(line.cursor <= line.len && line.len <= LINE_SIZE && line.text[line.len] == '\0');
	if (event == LINE_MORE)
		prove(column == line.cursor &&
		      shown[at] == (at < line.len ? line.text[at] : ' '));
}

static void draw(struct screen *s, unsigned row, unsigned first, unsigned last, const char *text)
{
	prove(row < s->rows && first <= last && last < s->columns && text == s->want[row]);
}

PROVE(screen, "8", "a-line-below-the-screen", "any byte in any state of 4 rows of 6, any texts")
{
	static struct screen s;
	const char byte = ANY(char);
	const unsigned x = ANY_BELOW(unsigned, 6), y = ANY_BELOW(unsigned, 4);

	screen_start(&s, 1 + ANY_BELOW(unsigned, 6), 1 + ANY_BELOW(unsigned, 4));
	s.draw = draw;
	for (unsigned row = 0; row < SCREEN_ROWS_MAX; row++)
		for (unsigned i = 0; i < SCREEN_COLUMNS_MAX; i++)
			s.want[row][i] = ANY(char);
	s.x = ANY_BELOW(unsigned, s.columns + 1);
	s.y = ANY_BELOW(unsigned, s.rows);
	s.state = ANY_BELOW(u32, SCREEN_SEQUENCE + 1);
	s.parameter = ANY_BELOW(unsigned, 1000);
	prove(screen_write(&s.console, &byte, 1));
	prove(s.x <= s.columns && s.y < s.rows && s.parameter < 1000);
	prove(x >= s.columns || y >= s.rows || s.want[y][x] == s.have[y][x]);
}
