/* The command line and the words of a program: numbers, options, console=, splitting. */
#define OWN_MESSAGES
#include "tests/prove/prove.h"

#include "kernel/core/option.h"
#undef TABLE_FOREACH
#define TABLE_FOREACH(entry, table)                                                                \
	for (entry = options; entry < options + ARRAY_LEN(options); entry++)
static const struct option options[3];

#include "kernel/console/console_wish.c"
#define take_word words_take_word
#include "kernel/lib/words.c"
#undef take_word
#include "kernel/core/cmdline.c"
#include "kernel/program/arguments.c"

void printk(enum log_level level, const char *fmt, ...)
{
}

void print(const char *fmt, ...)
{
}

/* Stands in for the formatter: writes some text, ended, and nothing behind the room. */
int format(char *buf, size_t size, const char *fmt, ...)
{
	const size_t len = ANY_BELOW(size_t, 4);

	for (size_t i = 0; i < 4 && i < size; i++)
		buf[i] = i < len ? 'x' : '\0';
	if (size)
		buf[size - 1] = '\0';
	return (int)len;
}

PROVE(numbers, "11", "a-suffix-that-overflows", "decimal texts of up to 5 characters")
{
	char text[6];
	const char *at = text;
	unsigned __int128 wanted = 0;
	size_t n = 0;
	u64 value;
	int err;

	text[5] = '\0';
	assume(text[0] != '0' || (text[1] | 0x20) != 'x');
	err = parse_u64(&at, &value);
	for (; n < 5 && text[n] >= '0' && text[n] <= '9'; n++)
		wanted = wanted * 10 + (unsigned)(text[n] - '0');
	for (unsigned i = 0; i < 4; i++)
		if ((text[n] | 0x20) == "kmgt"[i])
			wanted <<= 10 * (i + 1);
	prove(err == (n == 0 ? -EINVAL : wanted >> 64 ? -ERANGE : 0));
	prove(err || (value == wanted && (at == text + n || at == text + n + 1)));
}

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

static u64 target = 5;
static bool flag;
static const char *text_of = "";
static const struct option options[] = {
	{.name = "n", .parse = option_parse_u64, .target = &target, .min = 5, .max = 900},
	{.name = "f_", .parse = option_parse_bool, .target = &flag},
	{.name = "t", .parse = option_parse_text, .target = &text_of}};

PROVE(cmdline, "8 --unwindset apply_words.0:6,strchr.0:10", "a-number-out-of-range-is-stored",
      "texts of up to 5 bytes, a command line of 5")
{
	static struct cmdline cmdline;
	ANY_BYTES(text, len, 5);
	const unsigned refused = cmdline_apply(&cmdline, (const char *)text, len);

	prove(refused <= 3 && target >= 5 && target <= 900);
	prove(!*text_of || (text_of >= cmdline.words && text_of < cmdline.words + CMDLINE_MAX));
	prove(strnlen(cmdline.words, CMDLINE_MAX) < CMDLINE_MAX);
}

PROVE(wishes, "8 --unwindset take_word.0:13,console_wishes_parse.0:3,strchr.0:10", "an-address-without-a-number", "console= of up to 7 characters")
{
	struct console_wish wish[CONSOLE_WISHES_MAX];
	char text[8];
	int n, i = (int)ANY_BELOW(u32, CONSOLE_WISHES_MAX);

	text[7] = '\0';
	n = console_wishes_parse(text, wish);
	prove(n == -EINVAL || n == -E2BIG || (n > 0 && n <= CONSOLE_WISHES_MAX));
	if (i < n) {
		prove(wish[i].stride == 1 || wish[i].stride == 2 || wish[i].stride == 4);
		prove(wish[i].baud <= BAUD_MAX && wish[i].kind <= CON_PCI);
		prove(wish[i].kind != CON_PORT || (wish[i].addr > 0 && wish[i].addr <= PORT_LAST));
		prove(wish[i].kind != CON_MMIO || wish[i].addr > 0);
	}
}

PROVE(arguments, "8", "a-byte-more-than-the-room", "texts of up to 4 characters, rooms of up to 5")
{
	char text[5], buffer[5];
	const size_t size = ANY_BELOW(size_t, sizeof(buffer) + 1);
	struct arguments words;
	u64 end = 0, count = 0;
	int err;

	text[4] = '\0';
	err = arguments_split(&words, text, buffer + sizeof(buffer) - size, size);
	prove(err == 0 || err == -EINVAL || (err == -E2BIG && size <= strlen(text)));
	for (const char *word = arguments_next(&words, NULL); word;
	     count++, word = arguments_next(&words, word)) {
		prove(word == words.text + end);
		end += strlen(word) + 1;
	}
	prove(end == words.bytes && count == words.count && (err == 0 || count == 0));
}
