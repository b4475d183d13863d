/*
 * The stack with which a program starts. The cases read it as a program's start code does: from rsp
 * up, through the addresses that they find there.
 */
#include "kernel/lib/string.h"
#include "kernel/program/start_stack.h"
#include "kernel/run/test.h"

#define TOP 0x7fffffffe000ULL

enum { SIZE = 16384, GUARD = 0xa5 };

static u8 memory[SIZE] __attribute__((aligned(16)));
static struct arguments args, environment;

static const struct start_stack plain = {
	.args = &args,
	.environment = &environment,
	.entry = 0x401000,
	.phdr = 0x400040,
	.phdr_count = 10,
	.phdr_size = 56,
	.hwcap = 0xbfebfbff,
	.random = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
};

static u64 build(const struct start_stack *start, u64 size)
{
	memset(memory, GUARD, sizeof(memory));
	return start_stack_build(start, memory + SIZE - size, size, TOP);
}

static u64 word(u64 addr)
{
	u64 value = 0;

	if (addr < TOP - SIZE || addr > TOP - 8)
		test_fail(__FILE__, __LINE__, "%llx is not on the stack", addr);
	else
		memcpy(&value, memory + SIZE - (TOP - addr), sizeof(value));
	return value;
}

static const char *text(u64 addr)
{
	if (addr < TOP - SIZE || addr >= TOP) {
		test_fail(__FILE__, __LINE__, "%llx is not on the stack", addr);
		return "";
	}
	return (const char *)memory + SIZE - (TOP - addr);
}

/* The address behind the environment, where the pairs begin. */
static u64 pairs_at(u64 rsp)
{
	u64 at = rsp + 8 * (1 + word(rsp) + 1);

	while (word(at))
		at += 8;
	return at + 8;
}

/* The value of a pair; NO_PAIR: there is none. */
#define NO_PAIR (~0ULL)

static u64 pair(u64 rsp, u64 key)
{
	for (u64 at = pairs_at(rsp); word(at); at += 16)
		if (word(at) == key)
			return word(at + 8);
	return NO_PAIR;
}

static void fill(void)
{
	arguments_clear(&args);
	arguments_clear(&environment);
	arguments_add(&args, "./a.out");
	arguments_add(&args, "");
	arguments_add(&args, "two words");
	arguments_add(&environment, "A=1");
	arguments_add(&environment, "HOME=/");
}

TEST(program_start_stack, a_library_finds_its_pairs)
{
	static const u64 pairs[][2] = {
		{3, 0x400040},    {4, 56},   {5, 10}, {6, 4096}, {7, 0},        {8, 0},
		{9, 0x401000},    {11, 0},   {12, 0}, {13, 0},   {14, 0}, /* user and group */
		{16, 0xbfebfbff}, {17, 100}, {23, 0}, {26, 0},   {33, NO_PAIR}, {51, NO_PAIR}};
	struct start_stack start = plain;
	u64 rsp;

	fill();
	rsp = build(&start, SIZE);
	REQUIRE(rsp);
	for (unsigned i = 0; i < ARRAY_LEN(pairs); i++)
		if (pair(rsp, pairs[i][0]) != pairs[i][1])
			test_fail(__FILE__, __LINE__, "pair %llu is %llx", pairs[i][0],
				  pair(rsp, pairs[i][0]));
	EXPECT(strcmp(text(pair(rsp, 15)), "x86_64") == 0);
	EXPECT(strcmp(text(pair(rsp, 31)), "./a.out") == 0);
	EXPECT(memcmp(text(pair(rsp, 25)), plain.random, 16) == 0);
	start.vdso = 0x7ffff7fc0000;
	start.signal_stack_min = 3632;
	rsp = build(&start, SIZE);
	REQUIRE(rsp);
	EXPECT_EQ(pair(rsp, 33), 0x7ffff7fc0000);
	EXPECT_EQ(pair(rsp, 51), 3632);
}
