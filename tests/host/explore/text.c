/*
 * Schedules as text: see explore.h.
 *
 *	1.37:pcp_begin>0~2,0.412:call_serve!5
 *
 * CPU 1, at its 37th point, which is in pcp_begin(): CPU 0 runs next, and the newest two stores of
 * CPU 1 stay back. CPU 0, at its point 412: an interrupt that has come waits for 5 points.
 */
#include <stdlib.h>
#include <string.h>

#include <arch/console.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "tests/host/child.h"
#include "tests/host/explore/explore.h"

enum { SHOWN = 40 };

const char *schedule_function(const void *place)
{
	u64 offset;
	const char *name = place ? symbol_lookup((virt_t)place - 1, &offset) : NULL;

	return name ? name : "?";
}

void schedule_print(const struct choice *choice, u32 count)
{
	for (const struct choice *c = choice; c < choice + count; c++) {
		child_say("%s%u.%u:%s", c > choice ? "," : "", c->cpu, c->point,
			  c->name ? c->name : schedule_function(c->place));
		if (c->hold)
			child_say("!%u", c->hold);
		else
			child_say(">%u", c->to);
		if (c->keep)
			child_say("~%u", c->keep);
	}
}

static const char *text_start;

static __noreturn void malformed(const char *at, const char *wanted)
{
	host_die("the schedule is malformed at character %llu, \"%.*s\": %s is expected there",
		 (u64)(at - text_start) + 1, (int)MIN(strlen(at), (size_t)SHOWN), at, wanted);
}

static u64 number_at(char **p, u64 max, const char *wanted)
{
	const char *at = *p;
	u64 value = 0;

	if (*at < '0' || *at > '9')
		malformed(at, wanted);
	for (; **p >= '0' && **p <= '9'; ++*p) {
		value = value * 10 + (u64)(**p - '0');
		if (value > max)
			malformed(at, wanted);
	}
	return value;
}

static void expect(char **p, char c, const char *wanted)
{
	if (**p != c)
		malformed(*p, wanted);
	++*p;
}

/* The name is cut out of the text: what ends it is returned, and a zero takes its place. */
static char end_of_name(char **p)
{
	char *const end = *p + strcspn(*p, ">!,~"), kind = *end;

	if (end == *p)
		malformed(end, "the name of a function");
	if (kind != '>' && kind != '!')
		malformed(end, "> or !");
	*end = '\0';
	*p = end + 1;
	return kind;
}

static struct choice choice_at(char **p)
{
	struct choice c = {0};

	c.cpu = (u16)number_at(p, EXPLORE_CPUS_MAX - 1, "the number of a CPU");
	expect(p, '.', "a dot");
	c.point = (u32)number_at(p, UINT32_MAX, "the number of a point");
	expect(p, ':', "a colon");
	c.name = *p;
	if (end_of_name(p) == '!') {
		c.hold = (u16)number_at(p, UINT16_MAX, "a number of points, 1 or more,");
		if (c.hold == 0)
			malformed(*p - 1, "a number of points, 1 or more,");
		return c;
	}
	c.to = (u16)number_at(p, EXPLORE_CPUS_MAX - 1, "the number of a CPU");
	if (**p == '~') {
		++*p;
		c.keep = (u16)number_at(p, UINT16_MAX, "a number of stores");
	}
	return c;
}

struct choice *schedule_parse(char *text, u32 *count)
{
	struct choice *choices = calloc(CHOICES_MAX, sizeof(*choices));
	char *p = text;

	text_start = text;
	*count = 0;
	while (choices && *p) {
		if (*count > 0)
			expect(&p, ',', "a comma");
		if (*count == CHOICES_MAX)
			malformed(p, "the end");
		choices[(*count)++] = choice_at(&p);
	}
	return choices;
}
