/*
 * Paging the log: see pager.h. The log does not change any more. It is at most 1 MiB, and reading
 * all of it takes milliseconds.
 */
#include "kernel/console/pager.h"

#include <arch/clock.h>

#include "kernel/console/console.h"
#include "kernel/console/keys.h"
#include "kernel/console/results.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"

enum { COLUMNS_MIN = 20, COLUMNS_MAX = 256, ROWS_MIN = 3, ROWS_MAX = 128 };
#define LOOK_NS (5 * NS_PER_MS)

static u64 cycle_s = 5;
OPTION_U64(end.cycle, cycle_s, 1, 3600, "seconds for each page and QR code of end=cycle");

/* Rows first..end - 1 are sent to `out`; `row` counts all rows. */
struct walk {
	u64 first, end, row;
	void (*out)(const char *text, size_t len);
	unsigned columns, x;
	char text[COLUMNS_MAX];
};

static void end_row(struct walk *w)
{
	static const char end[] = "\033[K\n";

	if (w->row >= w->first && w->row < w->end) {
		w->out(w->text, w->x);
		w->out(end, sizeof(end) - 1);
	}
	w->row++;
	w->x = 0;
}

static void put(struct walk *w, char c)
{
	if (c == '\n') {
		end_row(w);
		return;
	}
	if (w->x == w->columns)
		end_row(w);
	w->text[w->x++] = c >= ' ' && c < 0x7f ? c : ' ';
}

/*
 * Go through the log from `pos`, where w->row begins, to where row w->end begins or the log ends.
 * Returns that place.
 */
static u64 walk_log(struct walk *w, u64 pos)
{
	char buf[256];

	while (w->row < w->end) {
		u64 next = pos;
		const size_t len = log_read(&next, buf, sizeof(buf));

		pos = next - len;
		for (size_t i = 0; i < len && w->row < w->end; i++, pos++)
			put(w, buf[i]);
		if (len == 0 && w->x > 0)
			end_row(w);
		if (len == 0)
			break;
	}
	return pos - w->x;
}

/* Forwards only the rows between are read, backwards all from the first. */
static void go_to(struct pager *pager, u64 row)
{
	const bool back = row < pager->top;
	struct walk w = {
		.columns = pager->columns, .first = row, .end = row, .row = back ? 0 : pager->top};

	pager->at = walk_log(&w, back ? 0 : pager->at);
	pager->top = row;
}

struct pager pager_begin(unsigned columns, unsigned rows)
{
	struct pager pager = {.top = 0};
	struct walk all = {.first = ~0ULL, .end = ~0ULL};

	pager.columns = MIN(MAX(columns, (unsigned)COLUMNS_MIN), (unsigned)COLUMNS_MAX);
	pager.rows = MIN(MAX(rows, (unsigned)ROWS_MIN), (unsigned)ROWS_MAX);
	all.columns = pager.columns;
	walk_log(&all, 0);
	pager.total = all.row;
	pager.last = saturating_sub(pager.total, pager.rows - 1);
	go_to(&pager, pager.last);
	return pager;
}

static void move(struct pager *pager, s64 rows)
{
	if (rows < 0)
		go_to(pager, saturating_sub(pager->top, (u64)-rows));
	else
		go_to(pager, MIN(pager->top + (u64)rows, pager->last));
}

bool pager_key(struct pager *pager, int key)
{
	const s64 page = (s64)pager->rows - 2; /* one row of the old page stays */

	pager->code = 0;
	switch (key) {
	case ' ':
	case 'f':
	case KEY_PAGE_DOWN:
		move(pager, page);
		break;
	case 'b':
	case KEY_PAGE_UP:
		move(pager, -page);
		break;
	case '\r':
	case '\n':
	case 'j':
	case KEY_DOWN:
		move(pager, 1);
		break;
	case 'k':
	case KEY_UP:
		move(pager, -1);
		break;
	case 'g':
	case KEY_HOME:
		go_to(pager, 0);
		break;
	case 'G':
	case KEY_END:
		go_to(pager, pager->last);
		break;
	case 'q':
		return false;
	}
	return true;
}

void pager_step(struct pager *pager)
{
	const bool at_end = pager->top == pager->last;

	if (at_end && pager->code < pager->codes) {
		pager->code++;
		return;
	}
	pager->code = 0;
	if (at_end)
		go_to(pager, 0);
	else
		move(pager, (s64)pager->rows - 2);
}

void pager_paint(const struct pager *pager, void (*out)(const char *text, size_t len))
{
	struct walk w = {.first = pager->top,
			 .end = pager->top + pager->rows - 1,
			 .row = pager->top,
			 .columns = pager->columns,
			 .out = out};
	char line[128];
	int len;

	out("\033[H", 3);
	walk_log(&w, pager->at);
	len = format(line, sizeof(line),
		     "-- %llu to %llu of %llu -- Space, b, Enter, k, g, G; q leaves",
		     pager->top + 1, w.row, pager->total);
	/* on some terminals, writing the last cell would scroll the screen */
	out(line, MIN((size_t)len, pager->columns - 1));
	out("\033[J", 3);
}

/* The code that is on show has its turn, or the text has. */
static void show(const struct pager *pager, bool code_before)
{
	static char piece[QR_BYTES]; /* one user pages */
	static struct qr qr;
	size_t len;

	if (pager->code == 0) {
		if (code_before)
			console_show(NULL);
		pager_paint(pager, echo);
		return;
	}
	results_piece(pager->code, piece, &len);
	qr_encode(piece, len, &qr);
	console_show(&qr);
}

void pager_run(bool cycle)
{
	struct keys keys = {0};
	struct pager pager;
	unsigned columns, rows;
	u64 shown_at = clock_ns();
	size_t len;

	console_size(&columns, &rows);
	pager = pager_begin(columns, rows);
	cycle = cycle && console_screens_only();
	if (cycle) {
		pager.codes = console_show(NULL) ? results_piece(0, NULL, &len) : 0;
		pager_paint(&pager, echo);
	}
	for (;;) {
		const int byte = console_read();
		const int key = byte < 0 ? KEY_NONE : keys_feed(&keys, (u8)byte);
		const bool due = cycle && clock_ns() - shown_at >= cycle_s * NS_PER_S;
		const bool code_before = pager.code > 0;

		if (byte < 0)
			clock_delay_ns(LOOK_NS);
		if (key == KEY_NONE && !due)
			continue;
		if (key == KEY_NONE)
			pager_step(&pager);
		else if (!pager_key(&pager, key))
			return;
		show(&pager, code_before);
		shown_at = clock_ns();
	}
}
