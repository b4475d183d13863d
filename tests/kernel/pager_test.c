/*
 * The pager shows the log's own lines in rows of the screen, wherever keys lead.
 */
#include "kernel/console/console_screen.h"
#include "kernel/console/keys.h"
#include "kernel/console/pager.h"
#include "tests/kernel/test.h"

enum { COLUMNS = 40, ROWS = 8, LINES = 20 };

static struct screen screen;

static void draw_nothing(struct screen *s, unsigned row, unsigned first, unsigned last,
			 const char *text)
{
	(void)s, (void)row, (void)first, (void)last, (void)text;
}

static void to_screen(const char *text, size_t len)
{
	screen.console.write(&screen.console, text, len);
}

/* Does the row of the page begin with this text on the screen? */
static bool shows(const struct pager *pager, unsigned row, const char *text)
{
	const size_t len = strlen(text);

	pager_paint(pager, to_screen);
	return memcmp(screen.want[row], text, len) == 0 &&
	       (len == COLUMNS || screen.want[row][len] == ' ');
}

static struct pager begin(void)
{
	screen.draw = draw_nothing;
	screen_start(&screen, COLUMNS, ROWS);
	log_line("%.50s", "a long line: 0123456789012345678901234567890123456789");
	for (unsigned i = 0; i < LINES; i++)
		log_line("line %u", i);
	return pager_begin(COLUMNS, ROWS);
}

TEST(kernel_pager, keys_lead_through_the_log)
{
	struct pager pager = begin();

	EXPECT(shows(&pager, 0, "line 13"));
	EXPECT(shows(&pager, ROWS - 2, "line 19"));
	EXPECT(pager_key(&pager, 'b'));
	EXPECT(shows(&pager, 0, "line 7")); /* one row stays visible */
	EXPECT(pager_key(&pager, KEY_UP));
	EXPECT(shows(&pager, 0, "line 6"));
	EXPECT(pager_key(&pager, KEY_PAGE_UP));
	EXPECT(shows(&pager, 0, "line 0"));
	EXPECT(pager_key(&pager, 'k') && pager_key(&pager, 'k'));
	EXPECT(shows(&pager, 0, "a long line: 012345678901234567890123456"));
	EXPECT(shows(&pager, 1, "7890123456"));
	EXPECT(pager_key(&pager, ' ') && pager_key(&pager, 'j'));
	EXPECT(shows(&pager, 0, "line 5"));
	for (unsigned i = 0; i < LINES; i++)
		EXPECT(pager_key(&pager, KEY_PAGE_DOWN));
	EXPECT(shows(&pager, ROWS - 2, "line 19"));
	EXPECT(pager_key(&pager, KEY_HOME));
	EXPECT_EQ(pager.top, 0);
	EXPECT(shows(&pager, ROWS - 1, "-- 1 to 7 of"));
	EXPECT(pager_key(&pager, 'k'));
	EXPECT_EQ(pager.top, 0);
	EXPECT(pager_key(&pager, 'G'));
	EXPECT(shows(&pager, 0, "line 13"));
	EXPECT(pager_key(&pager, '?'));
	EXPECT(!pager_key(&pager, 'q'));
	pager = pager_begin(~0u, 0); /* a screen may claim any size */
	EXPECT_EQ(pager.columns, 256);
	EXPECT_EQ(pager.rows, 3);
	EXPECT(pager_key(&pager, 'b') && pager_key(&pager, ' '));
	pager_paint(&pager, to_screen);
}

TEST(kernel_pager, sequences_are_keys)
{
	static const struct {
		const char *bytes;
		int key;
	} cases[] = {{"\033[5~", KEY_PAGE_UP}, {"\033[6~", KEY_PAGE_DOWN}, {"\033[A", KEY_UP},
		     {"\033OH", KEY_HOME},     {"\033[4~", KEY_END},       {"\033[99~", KEY_NONE},
		     {"\033[5\r", '\r'},       {"\033\033[B", KEY_DOWN},   {"x", 'x'}};

	for (unsigned i = 0; i < ARRAY_LEN(cases); i++) {
		struct keys keys = {0};
		int key = KEY_NONE;

		for (const char *c = cases[i].bytes; *c; c++)
			key = keys_feed(&keys, (u8)*c);
		EXPECT_EQ((u64)key, (u64)cases[i].key);
		EXPECT_EQ(keys_feed(&keys, 'y'), 'y');
	}
}

TEST(kernel_pager, without_keys_codes_follow_the_end_and_pages_the_codes)
{
	struct pager pager = begin();
	const u64 end = pager.top;

	pager.codes = 2;
	for (unsigned n = 1; n <= 2; n++) {
		pager_step(&pager);
		EXPECT_EQ(pager.code, n);
	}
	pager_step(&pager);
	EXPECT_EQ(pager.top + pager.code, 0);
	pager_step(&pager);
	EXPECT_EQ(pager.top, ROWS - 2); /* one row stays visible */
	EXPECT(pager_key(&pager, 'G') && pager_key(&pager, 'b') && pager_key(&pager, 'k'));
	pager_step(&pager);
	EXPECT_EQ(pager.top, end - 1);
	pager_step(&pager);
	EXPECT(pager.top == end && pager.code == 0);
	pager_step(&pager);
	EXPECT_EQ(pager.code, 1);
	EXPECT(pager_key(&pager, 'g')); /* a key leads back to the text */
	EXPECT_EQ(pager.top + pager.code, 0);
}

/* On the line, a dot is a pause. */
static const char *typed;

static int read_typed(struct console *console)
{
	return *typed && *typed++ != '.' ? typed[-1] : -1;
}

TEST(kernel_pager, a_key_whose_bytes_come_with_pauses_is_one_key)
{
	struct console *const others = consoles;

	begin();
	screen.console.read = read_typed;
	typed = "..\033.[.5~.q";
	consoles = &screen.console;
	pager_run(false);
	consoles = others;
	EXPECT(memcmp(screen.want[0], "line 7 ", 7) == 0);
}
