/* Numbers of the command line. */
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
