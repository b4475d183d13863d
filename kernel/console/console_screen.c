/* The text screen: see console_screen.h. */
#include "kernel/console/console_screen.h"

#include "kernel/lib/string.h"

enum { TAB = 8, SCROLL_PART = 8, ESC = 0x1b, BLANK = ' ', UNKNOWN = '?' };

static void touch(struct screen *s, unsigned row)
{
	s->dirty_first = MIN(s->dirty_first, row);
	s->dirty_end = MAX(s->dirty_end, row + 1);
}

static void erase(struct screen *s, unsigned row, unsigned from)
{
	if (from >= s->columns)
		return;
	memset(&s->want[row][from], BLANK, s->columns - from);
	touch(s, row);
}

static void scroll(struct screen *s)
{
	const unsigned by = MAX(s->rows / SCROLL_PART, 1u);

	memmove(s->want[0], s->want[by], (size_t)(s->rows - by) * SCREEN_COLUMNS_MAX);
	for (unsigned row = s->rows - by; row < s->rows; row++)
		erase(s, row, 0);
	s->dirty_first = 0;
	s->dirty_end = s->rows;
	s->y = s->rows - by;
}

static void new_line(struct screen *s)
{
	s->x = 0;
	if (++s->y == s->rows)
		scroll(s);
}

static void put(struct screen *s, char c)
{
	if (s->x == s->columns)
		new_line(s);
	s->want[s->y][s->x++] = c;
	touch(s, s->y);
}

static void put_text(struct screen *s, char c)
{
	switch (c) {
	case '\n':
		new_line(s);
		break;
	case '\r':
		s->x = 0;
		break;
	case '\b':
		s->x -= s->x > 0;
		break;
	case '\t':
		s->x = MIN(ALIGN_DOWN(s->x, (unsigned)TAB) + TAB, s->columns);
		break;
	case ESC:
		s->state = SCREEN_ESCAPE;
		break;
	case '\a':
	case '\0':
		break;
	default:
		put(s, c >= ' ' && c < 0x7f ? c : UNKNOWN);
	}
}

static void end_sequence(struct screen *s, char c)
{
	s->state = SCREEN_TEXT;
	if (c == 'H' && s->parameter == 0)
		s->x = s->y = 0;
	if ((c != 'K' && c != 'J') || s->parameter > 0)
		return;
	erase(s, s->y, s->x);
	for (unsigned row = s->y + 1; c == 'J' && row < s->rows; row++)
		erase(s, row, 0);
}

static void feed(struct screen *s, char c)
{
	if (s->state == SCREEN_TEXT) {
		put_text(s, c);
	} else if (s->state == SCREEN_ESCAPE) {
		s->state = c == '[' ? SCREEN_SEQUENCE : SCREEN_TEXT;
		s->parameter = 0;
	} else if (c >= '0' && c <= '9') {
		s->parameter = MIN(s->parameter * 10 + (unsigned)(c - '0'), 999u);
	} else if (c >= '@' && c <= '~') {
		end_sequence(s, c);
	} else if (c < ' ') {
		s->state = SCREEN_TEXT; /* a sequence that was broken off */
	}
}

static void show_row(struct screen *s, unsigned row)
{
	const char *want = s->want[row];
	char *have = s->have[row];
	unsigned first = 0, last = s->columns;

	while (first < s->columns && want[first] == have[first])
		first++;
	if (first == s->columns)
		return;
	while (want[last - 1] == have[last - 1])
		last--;
	s->draw(s, row, first, last - 1, want);
	memcpy(&have[first], &want[first], last - first);
}

static void show(struct screen *s)
{
	for (unsigned row = s->dirty_first; row < s->dirty_end; row++)
		show_row(s, row);
	s->dirty_first = s->rows;
	s->dirty_end = 0;
}

static bool screen_write(struct console *console, const char *text, size_t len)
{
	struct screen *s = container_of(console, struct screen, console);

	for (size_t i = 0; i < len; i++)
		feed(s, text[i]);
	show(s);
	return true;
}

void screen_forget(struct screen *s)
{
	memset(s->have, BLANK, sizeof(s->have));
	s->dirty_first = 0;
	s->dirty_end = s->rows;
}

void screen_start(struct screen *s, unsigned columns, unsigned rows)
{
	s->columns = MIN(columns, (unsigned)SCREEN_COLUMNS_MAX);
	s->rows = MIN(rows, (unsigned)SCREEN_ROWS_MAX);
	s->x = s->y = 0;
	s->state = SCREEN_TEXT;
	s->console.name = "screen";
	s->console.write = screen_write;
	s->console.columns = s->columns;
	s->console.rows = s->rows;
	memset(s->want, BLANK, sizeof(s->want));
	screen_forget(s);
}
