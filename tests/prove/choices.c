/* Choices of the command line. */
#include "tests/prove/prove.h"

#include "kernel/core/cmdline.c"
#include "kernel/lib/format.c"
#include "kernel/lib/words.c"

PROVE(option_choice, "9", "a-choice-that-is-counted-from-1",
      "lists of up to 3 bytes without rows, texts of up to 2")
{
	char list[4], text[3];
	unsigned target = ANY(unsigned), at = 0, piece = 0;
	const unsigned was = target;
	const struct option opt = {.name = "o", .values = list, .target = &target};
	int err, index = -EINVAL;

	list[3] = text[2] = '\0';
	err = option_parse_choice(&opt, text);
	for (unsigned i = 0; i <= strlen(list); i++) { /* the first piece that is the text */
		if (list[i] != '|' && list[i])
			continue;
		if (index < 0 && i - at == strlen(text) && strncmp(list + at, text, i - at) == 0)
			index = (int)piece;
		piece++;
		at = i + 1;
	}
	prove(err == (index < 0 ? -EINVAL : 0));
	prove(target == (err ? was : (unsigned)index));
}
