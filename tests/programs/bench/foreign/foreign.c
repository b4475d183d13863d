/*
 * Runs a program of others once, as one operation, and prints the record. The program is linked
 * into this one, with its main() renamed to foreign_main() by the compiler.
 *
 *	NAME [THREADS [MS]]    MS is of no use here
 *
 * FOREIGN_NAME and FOREIGN_ARGS are set by the compiler. The argument "@" stands for the number of
 * threads that the program may create beside its first one. Its output is not shown, because a
 * console would be measured with it.
 */
#undef main
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../bench.h"

int foreign_main(int argc, char **argv);

static char others[16];
static char *args[] = {FOREIGN_NAME, FOREIGN_ARGS, NULL};

/* Returns the descriptor that was the output. */
static int silence(void)
{
	const int shown = dup(STDOUT_FILENO), null = open("/dev/null", O_WRONLY);

	if (shown < 0 || null < 0 || dup2(null, STDOUT_FILENO) < 0)
		bench_fail("/dev/null");
	return shown;
}

int main(int argc, char **argv)
{
	const unsigned threads = argc > 1 ? (unsigned)atoi(argv[1]) : 1;
	const int count = (int)(sizeof(args) / sizeof(args[0])) - 1, shown = silence();
	uint64_t began, ns;
	int status;

	snprintf(others, sizeof(others), "%u", threads > 1 ? threads - 1 : 1);
	for (int i = 1; i < count; i++)
		if (args[i][0] == '@')
			args[i] = others;
	began = bench_now();
	status = foreign_main(count, args);
	ns = bench_now() - began;
	fflush(stdout);
	dup2(shown, STDOUT_FILENO);
	if (status == 0)
		bench_print(FOREIGN_NAME, threads, ns, 1);
	return status;
}
