/* Words of program.args= and program.env=: split as a shell splits them, or refused whole. */
#include "kernel/lib/string.h"
#include "kernel/program/arguments.h"
#include "kernel/run/test.h"

static struct arguments words;

static bool word_is(unsigned i, const char *expected)
{
	return i < words.count && strcmp(arguments_word(&words, i), expected) == 0;
}

/* Split a text that must be one word. */
static bool is_one(const char *text, const char *expected)
{
	arguments_clear(&words);
	return arguments_split(&words, text) == 0 && words.count == 1 && word_is(0, expected);
}

TEST(program_arguments, words_are_split_as_a_shell_splits_them)
{
	arguments_clear(&words);
	REQUIRE(arguments_split(&words, " -c  'a b'\t\"say \\\"x\\\"\" two\\ words\n") == 0);
	REQUIRE(words.count == 4);
	EXPECT(word_is(0, "-c"));
	EXPECT(word_is(1, "a b"));
	EXPECT(word_is(2, "say \"x\""));
	EXPECT(word_is(3, "two words"));
	EXPECT(is_one("a'b'\"c\"d", "abcd"));
	EXPECT(is_one("''", ""));
	EXPECT(is_one("\"\"", ""));
	EXPECT(is_one("'a\\b\"'", "a\\b\""));
	EXPECT(is_one("\"it's\"", "it's"));
	EXPECT(is_one("\"a\\b \\$x \\\\\"", "a\\b $x \\"));
	EXPECT(is_one("\\'\\\"\\\\", "'\"\\"));
	EXPECT(is_one("a\\\nb", "ab"));
	EXPECT(is_one("$HOME*#", "$HOME*#"));
}

TEST(program_arguments, what_is_left_open_is_refused)
{
	static const char *const open[] = {"a 'b", "a \"b", "a \"b\\", "a b\\", "\"\\\""};

	arguments_clear(&words);
	REQUIRE(arguments_add(&words, "first") == 0);
	for (size_t i = 0; i < ARRAY_LEN(open); i++) {
		EXPECT_EQ(arguments_split(&words, open[i]), -EINVAL);
		EXPECT(words.count == 1 && words.used == 6 && word_is(0, "first"));
	}
}
