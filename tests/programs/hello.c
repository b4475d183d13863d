/*
 * The smallest program of a user: it says with what it was started, and ends with status 7.
 *
 *	gcc -static tests/programs/hello.c -o a.out
 *	make run PROGRAM="./a.out one 'two three'"
 */
#include <stdio.h>

int main(int argc, char **argv, char **envp)
{
	printf("hello from ring 3\n");
	printf("argc %d\n", argc);
	for (int i = 0; i < argc; i++)
		printf("argv[%d] %s\n", i, argv[i]);
	for (int i = 0; envp[i]; i++)
		printf("env %s\n", envp[i]);
	return 7;
}
