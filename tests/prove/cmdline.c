/* Numbers and flags of the command line. */
#include "tests/prove/prove.h"

#include "kernel/core/cmdline.c"
#include "kernel/lib/words.c"

PROVE(hexadecimal, "20", "a-digit-in-another-base",
      "any number of up to 68 bits, in any case of letters")
{
	char text[20] = "0x";
	const u64 number = ANY(u64);
	const u8 more = ANY_BELOW(u8, 16);
	const char *at = text;
	u64 value;
	int err;

	for (unsigned i = 0; i < 17; i++) {
		const unsigned digit = i ? number >> (64 - 4 * i) & 15 : more;

		text[2 + i] = (ANY_BOOL ? "0123456789abcdef" : "0123456789ABCDEF")[digit];
	}
	text[19] = '\0';
	err = parse_u64(&at, &value);
	prove(err == (more ? -ERANGE : 0));
	prove(err || (value == number && *at == '\0'));
}

static bool is(const char *text, const char *word)
{
	return strcmp(text, word) == 0;
}

static unsigned digit_of(char c)
{
	const unsigned decimal = (unsigned)c - '0', letter = ((unsigned)c | 0x20) - 'a';

	return decimal < 10 ? decimal : letter < 6 ? letter + 10 : 16;
}

/* Is the text a number as option.h describes them? If so, *value receives it. */
static bool says(const char *text, unsigned __int128 *value)
{
	static const char suffixes[] = "kmgtKMGT";
	const bool hex = text[0] == '0' && (text[1] | 0x20) == 'x';
	unsigned at = hex ? 2 : 0;
	const unsigned first = at;

	*value = 0;
	for (unsigned digit; (digit = digit_of(text[at])) < (hex ? 16 : 10); at++)
		*value = (hex ? *value << 4 : *value * 10) + digit;
	for (unsigned i = 0; i < 8; i++)
		if (at > first && text[at] == suffixes[i] && !text[at + 1]) {
			*value <<= 10 * (i % 4 + 1);
			return true;
		}
	return at > first && !text[at];
}

/* These digits and any 4 bytes. */
static void check_number(const char *digits)
{
	char text[24];
	const size_t n = strlen(digits);
	u64 target = ANY(u64);
	const u64 was = target;
	const struct option opt = {.target = &target, .min = ANY(u64), .max = ANY(u64)};
	unsigned __int128 value;
	bool formed;
	int err;

	for (size_t i = 0; i < n + 4; i++)
		text[i] = i < n ? digits[i] : ANY(char);
	text[n + 4] = '\0';
	formed = says(text, &value);
	err = option_parse_u64(&opt, text);
	prove(formed ? err == (value < opt.min || value > opt.max ? -ERANGE : 0)
		     : err == -EINVAL || (n && err == -ERANGE));
	prove(target == (err ? was : (u64)value));
}

PROVE(option_number, "9", "the-upper-limit-is-not-looked-at", "texts of up to 4 bytes, any limits")
{
	check_number("");
}

PROVE(option_large, "25", "beyond-64-bits-by-its-suffix",
      "17 digits of 2^64 - 1 or 15 of 2^54 - 1, then any 4 bytes")
{
	check_number("18446744073709551");
	check_number("180143985094819");
}

PROVE(option_flag, "6", "a-flag-cleared-by-what-begins-with-0", "texts of up to 4 bytes")
{
	char text[5];
	bool target = ANY_BOOL;
	const bool was = target;
	const struct option opt = {.target = &target};
	int err;

	text[4] = '\0';
	err = option_parse_bool(&opt, text);
	prove((err == 0) == (is(text, "on") || is(text, "1") || is(text, "off") || is(text, "0")));
	prove(err ? err == -EINVAL && target == was : target == (is(text, "on") || is(text, "1")));
}
