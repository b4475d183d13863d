/* Texts that people and terminals type: words, keys, lines, screens, console=, arguments. */
#include "tests/prove/prove.h"

#include "kernel/console/console_keyboard.c"
#define ESC SCREEN_ESC
#include "kernel/console/console_screen.c"
#undef ESC
#include "kernel/console/keys.c"
#include "kernel/console/line.c"
#include "kernel/lib/words.c"

PROVE(word, "7", "a-word-as-long-as-its-room", "texts of up to 5 bytes, both rules, any room")
{
	static const struct word_rules kinds[] = {{" \t\n", "\"'", NULL, "\"\\$`\n"},
						  {" ", "\"", "\\\"'", "\\\"'"}};
	const struct word_rules *rules = &kinds[ANY_BELOW(u32, 2)];
	ANY_BYTES(text, len, 5);
	char out[4];
	const size_t size = 1 + ANY_BELOW(size_t, sizeof(out));
	const char *at = (const char *)text, *end = at + len;
	const int err = word_cut(&at, end, rules, out + sizeof(out) - size, size);

	prove(err == 0 || err == -EINVAL || err == -E2BIG);
	prove(at >= (const char *)text && at <= end);
	prove(err || at == end || *at == '\0' || is_one_of(*at, rules->ends));
	prove(strnlen(out + sizeof(out) - size, size) < size);
}

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

static size_t column;

static void terminal(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		prove(text[i] != '\b' || column > 0);
		if (text[i] == '\b')
			column--;
		else if (text[i] != '\a' && text[i] != '\n')
			column++;
	}
}

PROVE(line, "10", "70-deleted-stays-on-screen", "any key in any line of 4, any 2 old ones")
{
	static struct line line;
	enum line_event event;

	__CPROVER_havoc_object(&line);
	line.emit = terminal;
	assume(line.cursor <= line.len && line.len <= LINE_SIZE && line.entered <= 3);
	assume(line.back <= MIN(line.entered, (unsigned)LINE_HISTORY) &&
	       line.keys.state <= STATE_SS3 && line.keys.param <= 9);
	line.text[line.len] = '\0';
	line.history[0][LINE_SIZE] = line.history[1][LINE_SIZE] = line.draft[LINE_SIZE] = '\0';
	for (size_t i = 0; i < LINE_SIZE; i++)
		assume(i >= line.len || (line.text[i] >= ' ' && line.text[i] < 0x7f));
	column = line.cursor;
	event = line_key(&line, ANY(u8));
	prove(line.cursor <= line.len && line.len <= LINE_SIZE && line.text[line.len] == '\0');
	prove(event == LINE_CANCELLED || column == line.cursor);
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

	__CPROVER_havoc_object(&s);
	screen_start(&s, 1 + ANY_BELOW(unsigned, 6), 1 + ANY_BELOW(unsigned, 4));
	s.draw = draw;
	__CPROVER_havoc_object(s.want);
	s.x = ANY_BELOW(unsigned, s.columns + 1);
	s.y = ANY_BELOW(unsigned, s.rows);
	s.state = ANY_BELOW(u32, SCREEN_SEQUENCE + 1);
	s.parameter = ANY_BELOW(unsigned, 1000);
	prove(screen_write(&s.console, &byte, 1));
	prove(s.x <= s.columns && s.y < s.rows && s.parameter < 1000);
	prove(x >= s.columns || y >= s.rows || s.want[y][x] == s.have[y][x]);
}
