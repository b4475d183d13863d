/* The words of a program: see arguments.h. */
#include "kernel/program/arguments.h"

#include "kernel/lib/string.h"
#include "kernel/lib/words.h"

const char *arguments_next(const struct arguments *arguments, const char *word)
{
	word = word ? word + strlen(word) + 1 : arguments->text;
	return (u64)(word - arguments->text) < arguments->bytes ? word : NULL;
}

int arguments_of(struct arguments *arguments, const char *text, u64 bytes)
{
	*arguments = (struct arguments){.text = text};
	if (bytes > 0 && text[bytes - 1] != '\0')
		return -EINVAL;
	arguments->bytes = bytes;
	for (const char *word = arguments_next(arguments, NULL); word;
	     word = arguments_next(arguments, word))
		arguments->count++;
	return 0;
}

int arguments_split(struct arguments *arguments, const char *text, char *buffer, size_t size)
{
	static const struct word_rules shell = {
		.ends = " \t\n", .quotes = "\"'", .escaped_in_quotes = "\"\\$`\n"};
	const char *end = text + strlen(text);
	size_t used = 0;

	*arguments = (struct arguments){.text = buffer};
	while (text < end) {
		int err;

		if (strchr(shell.ends, *text)) {
			text++;
			continue;
		}
		err = used < size ? word_cut(&text, end, &shell, buffer + used, size - used)
				  : -E2BIG;
		if (err)
			return err;
		used += strlen(buffer + used) + 1;
	}
	return arguments_of(arguments, buffer, used);
}
