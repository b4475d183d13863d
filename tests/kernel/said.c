/*
 * Reading back what cases print: see said.h.
 */
#include "kernel/console/command.h"
#include "tests/kernel/test.h"

char said_text[32768];

static u64 read_so_far;

void said_begin(void)
{
	read_so_far = 0;
	while (log_read(&read_so_far, said_text, sizeof(said_text)) > 0)
		;
}

void said_end(void)
{
	said_text[log_read(&read_so_far, said_text, sizeof(said_text) - 1)] = '\0';
}

unsigned said_run(const char *text)
{
	unsigned failed;

	said_begin();
	failed = commands_run(text, strlen(text), NULL);
	said_end();
	return failed;
}

bool text_has(const char *text, const char *what)
{
	char glob[256];

	format(glob, sizeof(glob), "*%s*", what);
	return glob_match(glob, text);
}

bool said_says(const char *what)
{
	return text_has(said_text, what);
}
