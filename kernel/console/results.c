/* Results for QR codes: see results.h. The log is read from its beginning for each piece. */
#include "kernel/console/results.h"

#include "kernel/core/printk.h"
#include "kernel/lib/format.h"
#include "kernel/lib/string.h"

enum { HEAD_MAX = 32, PIECE = QR_BYTES - HEAD_MAX, LINE_KEPT = 1024 };

bool results_wanted(const char *line, bool *rest)
{
	/* beginnings of lines, the first that fits: + wanted, - not, * with all that follows */
	static const char *const kinds[] = {
		"*This machine", "*PANIC",       "+ASHLAR-",     "+BENCH ",    "+RESULT ",
		"+1..",          "+ok ",         "+not ok ",     "+Bail out!", "+# totals ",
		"+  not ok ",    "-  # Subtest", "-  # time_ns", "+  # "};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		/* NOLINTNEXTLINE(bugprone-not-null-terminated-result): beginnings */
		if (strncmp(line, kinds[i] + 1, strlen(kinds[i] + 1)) != 0)
			continue;
		*rest |= kinds[i][0] == '*';
		return kinds[i][0] != '-' || *rest;
	}
	return *rest;
}

/* The text that is wanted, of which bytes first..first + PIECE - 1 are copied to `out`. */
struct walk {
	char line[LINE_KEPT], *out;
	size_t len;
	u64 first, size;
	u32 sum;
	bool rest;
};

static void end_line(struct walk *w)
{
	w->line[w->len] = '\0';
	if (results_wanted(w->line, &w->rest)) {
		w->line[w->len++] = '\n';
		for (size_t i = 0; i < w->len; i++, w->size++) {
			w->sum = w->sum * 31 + (u8)w->line[i];
			if (w->out && w->size - w->first < PIECE)
				w->out[w->size - w->first] = w->line[i];
		}
	}
	w->len = 0;
}

unsigned results_piece(unsigned n, char out[QR_BYTES], size_t *len)
{
	static struct walk w; /* a panic may have left little of the stack */
	char buf[256];
	unsigned pieces;
	u64 pos = 0;
	size_t got;

	w = (struct walk){.out = out ? out + HEAD_MAX : NULL, .first = (u64)(n - 1) * PIECE};
	do {
		got = log_read(&pos, buf, sizeof(buf));
		for (size_t i = 0; i < got; i++) {
			if (buf[i] == '\n')
				end_line(&w);
			else if (w.len < LINE_KEPT - 1)
				w.line[w.len++] = buf[i];
		}
	} while (got > 0);
	pieces = (unsigned)DIV_ROUND_UP(w.size, (u64)PIECE);
	*len = 0;
	if (out && n > 0 && n <= pieces) {
		const size_t body = (size_t)MIN(w.size - w.first, (u64)PIECE);
		const size_t head =
			(size_t)format(out, HEAD_MAX, "ASHLAR-QR %u/%u %08x\n", n, pieces, w.sum);

		memmove(out + head, out + HEAD_MAX, body);
		*len = head + body;
	}
	return pieces;
}
