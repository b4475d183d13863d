/*
 * Runs a program of somebody else and prints a record of what it took, from fork() to the end, as
 * Ashlar prints it for the program that it runs. /measured has the program, and its arguments and
 * its environment as words with a zero byte behind each. With the C library.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* The words of a file, NULL behind the last. */
static char **words_of(const char *path)
{
	FILE *file = fopen(path, "r");
	char *word = NULL, **words = calloc(1, sizeof(*words));
	size_t room = 0, count = 0;

	while (file && getdelim(&word, &room, '\0', file) > 0) {
		words = realloc(words, (count + 2) * sizeof(*words));
		words[count++] = strdup(word);
		words[count] = NULL;
	}
	return words;
}

int main(void)
{
	char **arguments = words_of("/measured/cmdline"),
	     **environment = words_of("/measured/environ");
	const char *slash = strrchr(arguments[0], '/');
	const long long began = now();
	const pid_t child = fork();
	int status = 0;

	if (child == 0) {
		execve("/measured/program", arguments, environment);
		perror("/measured/program");
		_exit(127);
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return 1;
	printf("BENCH program_run name=%s status=%d ns=%lld\n", slash ? slash + 1 : arguments[0],
	       WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), now() - began);
	return 0;
}
