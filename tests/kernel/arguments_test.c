/* Words of a program: split as a shell splits them, or refused whole; and as they lie in a file. */
#include "kernel/program/arguments.h"
#include "tests/kernel/test.h"

static struct arguments words;
static char buffer[64];

static int split(const char *text)
{
	return arguments_split(&words, text, buffer, sizeof(buffer));
}

/* These words, each with a zero byte behind it. */
static bool are(const char *expected, size_t bytes, u64 count)
{
	return words.bytes == bytes && words.count == count &&
	       memcmp(words.text, expected, bytes) == 0;
}

/* Split a text that must be one word. */
static bool is_one(const char *text, const char *expected)
{
	return split(text) == 0 && are(expected, strlen(expected) + 1, 1);
}

TEST(program_arguments, words_are_split_as_a_shell_splits_them)
{
	EXPECT_EQ(split(" -c  'a b'\t\"say \\\"x\\\"\" two\\ words\n"), 0);
	EXPECT(are("-c\0a b\0say \"x\"\0two words", 25, 4));
	EXPECT(split("") == 0 && words.count == 0 && !arguments_next(&words, NULL));
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

	for (size_t i = 0; i < ARRAY_LEN(open); i++) {
		EXPECT_EQ(split(open[i]), -EINVAL);
		EXPECT(words.count == 0 && words.bytes == 0);
	}
	EXPECT_EQ(arguments_split(&words, "one two", buffer, 8), 0);
	EXPECT_EQ(arguments_split(&words, "one two", buffer, 7), -E2BIG);
	EXPECT_EQ(arguments_split(&words, "one two", buffer, 4), -E2BIG);
	EXPECT(words.count == 0 && words.bytes == 0);
}

TEST(program_arguments, a_file_has_words_that_end_with_zero_bytes)
{
	const char *word = NULL;

	EXPECT_EQ(arguments_of(&words, "one\0\0two", 9), 0);
	EXPECT_EQ(words.count, 3);
	word = arguments_next(&words, word);
	EXPECT(strcmp(word, "one") == 0);
	word = arguments_next(&words, word);
	EXPECT(strcmp(word, "") == 0);
	word = arguments_next(&words, word);
	EXPECT(strcmp(word, "two") == 0);
	EXPECT(!arguments_next(&words, word));
	EXPECT_EQ(arguments_of(&words, "one", 3), -EINVAL);
	EXPECT(words.count == 0 && !arguments_next(&words, NULL));
}
