/*
 * One mistake for each tool of `make lint`: it must be reported, or the tool looks at nothing and its silence means nothing.
 * Compiled by nothing else.
 */
struct thing {
	int value;
};

void *malloc(unsigned long size);

/* gcc -fanalyzer, clang-tidy: nobody has asked whether there is one. */
int unchecked(int wanted)
{
	struct thing *thing = 0;

	if (wanted > 3)
		thing = malloc(sizeof(*thing));
	return thing->value;
}

/* cppcheck: read before it is written. */
int unwritten(void)
{
	struct thing thing;

	return thing.value;
}

/* The bound on frames. */
int large(int at)
{
	volatile int room[4096];

	room[at] = at;
	return room[at / 2];
}
