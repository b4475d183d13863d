/* Results for QR codes: which lines, and that the pieces are the text. */
#include "kernel/console/results.h"
#include "tests/kernel/test.h"

TEST(kernel_results, lines_that_programs_read_are_wanted)
{
	static const struct {
		const char *line;
		bool wanted;
	} lines[] = {{"ok 1 mm.buddy", true},
		     {"not ok 2 mm.hvo", true},
		     {"  ok 1 merge", false},
		     {"  # Subtest: mm.buddy", false},
		     {"  # time_ns 15", false},
		     {"  # mm.buddy.split: mm/buddy_test.c:40: order is 3, want is 2", true},
		     {"  not ok 2 split", true},
		     {"[    0.012345] clock: TSC at 2000 MHz", false},
		     {"BENCH own ns=5", true},
		     {"mode  op  pages", false},
		     {"", false},
		     {"This machine", true},
		     {"  clock    TSC at 2000 MHz", true},
		     {"  # time_ns 15", true}, /* all the rest */
		     {"ASHLAR-END verdict=fail code=0x11", true}};
	bool rest = false;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		EXPECT_EQ(results_wanted(lines[i].line, &rest), lines[i].wanted);
}

enum { RUNS = 60, TAIL = 4096 };

/* Add the text of a piece, without its head, which must be this. */
static size_t add_piece(unsigned n, unsigned pieces, char *text)
{
	static char out[QR_BYTES];
	const char *body;
	char head[32];
	size_t len;

	EXPECT_EQ(results_piece(n, out, &len), pieces);
	format(head, sizeof(head), "ASHLAR-QR %u/%u ", n, pieces);
	body = strchr(out, '\n');
	EXPECT(strncmp(out, head, strlen(head)) == 0);
	if (!body || test_failed())
		return 0;
	EXPECT_EQ(body - out, strlen(head) + 8);
	body++;
	memcpy(text, body, len - (size_t)(body - out));
	return len - (size_t)(body - out);
}

TEST(kernel_results, pieces_in_turn_are_the_text)
{
	static char text[TAIL + QR_BYTES], want[TAIL];
	size_t size = 0, len, tail = 0;
	unsigned pieces;

	for (unsigned i = 0; i < RUNS; i++) {
		log_line("[    1.000000] something else");
		log_line("BENCH own run=%u ns=%u", i, i * 1000);
		tail += (size_t)format(want + tail, sizeof(want) - tail, "BENCH own run=%u ns=%u\n",
				       i, i * 1000);
	}
	pieces = results_piece(0, NULL, &len);
	EXPECT_EQ(len, 0);
	REQUIRE(pieces > 4); /* more than one code for less than what was printed here */
	for (unsigned n = pieces - 4; n <= pieces; n++)
		size += add_piece(n, pieces, text + size);
	len = MIN(size, tail);
	EXPECT(size > 4 * (QR_BYTES - 32) && tail > 3 * QR_BYTES);
	EXPECT(memcmp(text + size - len, want + tail - len, len) == 0);
	results_piece(pieces + 1, text, &len);
	EXPECT_EQ(len, 0);
	/* nothing is left of an earlier call */
	results_piece(pieces, text, &len);
	results_piece(pieces, want, &size);
	EXPECT(len > 0 && len == size && memcmp(text, want, len) == 0);
}
