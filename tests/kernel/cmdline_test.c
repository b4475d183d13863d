/*
 * The command line: numbers and values are parsed as documented, a refused value changes nothing,
 * and no text from a loader is read beyond its length. The options used here exist for these cases
 * only.
 */
#include "tests/kernel/test.h"

static u64 a_number = 7;
static unsigned a_choice;
static bool a_flag;
static const char *a_text;

OPTION_U64(selftest_number, a_number, 5, MIB(1), "used by the tests of the command line");
OPTION_CHOICE(selftest_choice, a_choice, "red|green|greener",
	      "used by the tests of the command line");
OPTION_BOOL(selftest_flag, a_flag, "used by the tests of the command line");
static const struct {
	const char *name;
	u64 other;
} a_table[] = {{"one", 1}, {"two", 2}, {NULL, 0}};
static unsigned a_row;
OPTION_ROW(selftest_row, a_row, a_table, "used by the tests of the command line",
	   .values = "none|any");
OPTION_TEXT(selftest_text, a_text, "used by the tests of the command line");

/* The machine's own command line stays as it is, because the values of options point into it. */
static struct cmdline own;

static unsigned apply(const char *text)
{
	return cmdline_apply(&own, text, strlen(text));
}

static int parse_all(const char *text, u64 *value)
{
	int ret = parse_u64(&text, value);

	return ret ? ret : *text ? -E2BIG : 0;
}

TEST(kernel_cmdline, numbers_refused)
{
	u64 v = 42;

	EXPECT_EQ(parse_all("", &v), -EINVAL);
	EXPECT_EQ(parse_all("0x", &v), -EINVAL);
	EXPECT_EQ(parse_all("-1", &v), -EINVAL);
	EXPECT_EQ(parse_all("M", &v), -EINVAL);
	EXPECT_EQ(parse_all("18446744073709551616", &v), -ERANGE);
	EXPECT_EQ(parse_all("0x10000000000000000", &v), -ERANGE);
	EXPECT_EQ(parse_all("16777216T", &v), -ERANGE);
	EXPECT_EQ(v, 42);
	EXPECT_EQ(parse_all("2MB", &v), -E2BIG);
}

TEST(kernel_cmdline, refused_values_change_nothing)
{
	char shown[8];

	a_number = 7;
	a_choice = 1;
	a_flag = true;
	EXPECT_EQ(apply("selftest_number=4 selftest_number=1048577 selftest_number=9x "
			"selftest_number"),
		  4);
	EXPECT_EQ(a_number, 7);
	EXPECT_EQ(apply("selftest_choice=gree selftest_choice= selftest_choice=red|green"), 3);
	EXPECT_EQ(a_choice, 1);
	EXPECT_EQ(apply("selftest_flag=maybe selftest_flag="), 2);
	EXPECT(a_flag);
	EXPECT(option_show(option_find("selftest_flag"), shown, sizeof(shown)));
	EXPECT(strcmp(shown, "on") == 0);
}

/* GRUB passes \, ' and " inside a word with a backslash before them. */
TEST(kernel_cmdline, quotes_backslashes_and_control_bytes)
{
	static const struct {
		const char *words, *text;
		unsigned refused;
	} rows[] = {
		{"selftest_text=\"pool 2M 4096\" selftest_flag=off", "pool 2M 4096", 0},
		{"\"selftest_text=a b\"", "a b", 0},
		{"selftest_text=x \"selftest_text=never closed", "x", 1},
		{"selftest_text=\"-c \\\"a b\\\" \\'c\\' \\\\ \\n\"", "-c \"a b\" 'c' \\ \\n", 0},
		{"selftest_text=a\\\"b selftest_flag=off", "a\"b", 0},
		{"selftest_text=a\\", "a\\", 0},
		{"selftest_text=a\033[2Jb\377", "a?[2Jb?", 0}, /* no console gets those */
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		EXPECT_EQ(apply(rows[i].words), rows[i].refused);
		if (strcmp(a_text, rows[i].text) != 0)
			test_fail(__FILE__, __LINE__, "%s is %s", rows[i].words, a_text);
	}
}

TEST(kernel_cmdline, unknown_and_impossible_are_named)
{
	said_begin();
	EXPECT_EQ(apply("selftest_nonsense=1 selftest_number=3 selftest_choice=blue \"open"), 4);
	said_end();
	EXPECT(said_says("ignored: selftest_nonsense=1 is not known"));
	EXPECT(said_says("selftest_number=3 is out of range (5 to 1048576)"));
	EXPECT(said_says("selftest_choice=blue is malformed (expected red|green|greener)"));
	EXPECT(said_says("ignored: unfinished quote in \"open\""));
	EXPECT(strcmp(own.first_refused, "selftest_nonsense=1 is not known") == 0);
}

TEST(kernel_cmdline, words_of_loaders_are_passed_over)
{
	said_begin();
	EXPECT_EQ(apply("BOOT_IMAGE=/boot/ashlar root=/dev/sda1 ro rw splash BOOTIF=01-02 "
			"initrd=x selftest_number=9"),
		  0);
	said_end();
	EXPECT_EQ(a_number, 9);
	EXPECT(!said_says("command line"));
}

TEST(kernel_cmdline, every_option_takes_some_value)
{
	const struct option *opt;

	TABLE_FOREACH(opt, option_table)
	if (opt->min > opt->max)
		test_fail(__FILE__, __LINE__, "%s takes no number", opt->name);
}

TEST(kernel_cmdline, too_long_is_cut_and_said)
{
	static char text[CMDLINE_MAX + 100];

	memset(text, ' ', sizeof(text));
	memcpy(text + CMDLINE_MAX + 10, "selftest_text=lost", 18);
	a_text = "kept";
	said_begin();
	EXPECT_EQ(cmdline_apply(&own, text, sizeof(text)), 1);
	said_end();
	EXPECT(strcmp(a_text, "kept") == 0);
	EXPECT(said_says("longer than 4095 bytes"));
}
