/* Commands run by cases: see said.h. */
#include "tests/kernel/said.h"

#include "kernel/command.h"
#include "kernel/printk.h"
#include "kernel/string.h"

char said_text[32768];

unsigned said_run(const char *text)
{
	u64 end = 0;
	size_t n;
	unsigned failed;

	while (log_read(&end, said_text, sizeof(said_text)) > 0)
		;
	failed = commands_run(text, strlen(text), NULL);
	n = log_read(&end, said_text, sizeof(said_text) - 1);
	said_text[n] = '\0';
	return failed;
}

bool said_says(const char *what)
{
	char glob[256];

	format(glob, sizeof(glob), "*%s*", what);
	return glob_match(glob, said_text);
}
