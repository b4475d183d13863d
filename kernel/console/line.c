/*
 * Line editing: see line.h.
 *
 * The terminal's cursor is always at line->cursor. Every function that moves one also moves the
 * other, by sending characters (right) or backspaces (left).
 */
#include "kernel/console/line.h"

#include "kernel/lib/string.h"

#define CONTROL(letter) ((letter)&0x1f)

static void move_left(struct line *line, size_t n)
{
	static const char backspaces[] = "\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b\b";

	line->cursor -= n;
	for (; n > 0; n -= MIN(n, sizeof(backspaces) - 1))
		line->emit(backspaces, MIN(n, sizeof(backspaces) - 1));
}

static void move_right(struct line *line, size_t n)
{
	line->emit(line->text + line->cursor, n);
	line->cursor += n;
}

/* Send the text right of the cursor and `blanks` more blanks, and move the cursor back. */
static void show_rest(struct line *line, size_t blanks)
{
	const size_t at = line->cursor, rest = line->len - at;

	line->emit(line->text + at, rest);
	for (size_t i = 0; i < blanks; i++)
		line->emit(" ", 1);
	line->cursor += rest + blanks;
	move_left(line, rest + blanks);
}

bool line_insert(struct line *line, const char *text, size_t len)
{
	if (len > LINE_SIZE - line->len) {
		line->emit("\a", 1);
		return false;
	}
	memmove(line->text + line->cursor + len, line->text + line->cursor,
		line->len - line->cursor + 1);
	memcpy(line->text + line->cursor, text, len);
	line->len += len;
	move_right(line, len);
	if (line->cursor < line->len)
		show_rest(line, 0);
	return true;
}

/* Delete `n` characters right of the cursor. */
static void delete_right(struct line *line, size_t n)
{
	if (n == 0)
		return;
	memmove(line->text + line->cursor, line->text + line->cursor + n,
		line->len - line->cursor - n + 1);
	line->len -= n;
	show_rest(line, n);
}

static void delete_left(struct line *line, size_t n)
{
	move_left(line, n);
	delete_right(line, n);
}

static void replace(struct line *line, const char *text)
{
	move_left(line, line->cursor);
	delete_right(line, line->len);
	line_insert(line, text, strlen(text));
}

static size_t word_left(const struct line *line)
{
	size_t at = line->cursor;

	while (at > 0 && line->text[at - 1] == ' ')
		at--;
	while (at > 0 && line->text[at - 1] != ' ')
		at--;
	return line->cursor - at;
}

/* ---- history ---- */

static void history_add(struct line *line)
{
	const char *newest = line->entered ? line->history[(line->entered - 1) % LINE_HISTORY] : "";

	if (line->len == 0 || strcmp(newest, line->text) == 0)
		return;
	memcpy(line->history[line->entered % LINE_HISTORY], line->text, line->len + 1);
	line->entered++;
}

static void history_go(struct line *line, unsigned back)
{
	/* one newer than the line being typed is beyond all of them */
	if (back > MIN(line->entered, (unsigned)LINE_HISTORY)) {
		line->emit("\a", 1);
		return;
	}
	if (line->back == 0)
		memcpy(line->draft, line->text, line->len + 1);
	line->back = back;
	replace(line, back ? line->history[(line->entered - back) % LINE_HISTORY] : line->draft);
}

/* ---- keys ---- */

static enum line_event finish(struct line *line, enum line_event event)
{
	move_right(line, line->len - line->cursor);
	line->emit(event == LINE_CANCELLED ? "^C\n" : "\n", event == LINE_CANCELLED ? 3 : 1);
	if (event == LINE_READY)
		history_add(line);
	return event;
}

/* A key that edits, as a control key or as a key of its own. */
static enum line_event edit_key(struct line *line, int key)
{
	const bool right = line->cursor < line->len;

	switch (key) {
	case KEY_HOME:
	case CONTROL('A'):
		move_left(line, line->cursor);
		break;
	case KEY_END:
	case CONTROL('E'):
		move_right(line, line->len - line->cursor);
		break;
	case KEY_LEFT:
	case CONTROL('B'):
		move_left(line, line->cursor > 0);
		break;
	case KEY_RIGHT:
	case CONTROL('F'):
		move_right(line, right);
		break;
	case KEY_DELETE:
	case CONTROL('D'):
		delete_right(line, right);
		break;
	case CONTROL('H'):
	case BYTE_DEL:
		delete_left(line, line->cursor > 0);
		break;
	case CONTROL('K'):
		delete_right(line, line->len - line->cursor);
		break;
	case CONTROL('U'):
		delete_left(line, line->cursor);
		break;
	case CONTROL('W'):
		delete_left(line, word_left(line));
		break;
	case KEY_UP:
	case CONTROL('P'):
		history_go(line, line->back + 1);
		break;
	case KEY_DOWN:
	case CONTROL('N'):
		history_go(line, line->back - 1);
		break;
	case 0: /* line noise, or a break */
	case KEY_NONE:
	case KEY_PAGE_UP:
	case KEY_PAGE_DOWN:
		break;
	default:
		line->emit("\a", 1);
	}
	return LINE_MORE;
}

enum line_event line_key(struct line *line, u8 byte)
{
	const bool after_cr = line->after_cr;
	const int key = keys_feed(&line->keys, byte);
	const char c = (char)byte;

	line->after_cr = key == '\r';
	if (key == '\n' && after_cr)
		return LINE_MORE;
	if (key == '\r' || key == '\n')
		return finish(line, LINE_READY);
	if (key == '\t')
		return LINE_TAB;
	if (key == CONTROL('C'))
		return finish(line, LINE_CANCELLED);
	if (key == CONTROL('D') && line->len == 0)
		return LINE_END;
	if (key < ' ' || key >= BYTE_DEL)
		return edit_key(line, key);
	line_insert(line, &c, 1);
	return LINE_MORE;
}

void line_begin(struct line *line)
{
	line->text[0] = '\0';
	line->len = line->cursor = 0;
	line->back = 0;
	line->keys = (struct keys){0};
}

void line_init(struct line *line, void (*emit_fn)(const char *text, size_t len))
{
	memset(line, 0, sizeof(*line));
	line->emit = emit_fn;
}

void line_show(struct line *line)
{
	const size_t at = line->cursor;

	line->cursor = 0;
	move_right(line, line->len);
	move_left(line, line->len - at);
}
