/*
 * Schedules as text: see explore.h.
 *
 *	1.37:pcp_begin>0~2,0.412:call_serve!5
 *
 * CPU 1, at its 37th point, which is in pcp_begin(): CPU 0 runs next, and the newest two stores of
 * CPU 1 stay back. CPU 0, at its point 412: an interrupt that has come waits for 5 points.
 */
#include <stdio.h>
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

static struct choice choice_at(char **p)
{
	struct choice c = {0};
	int name = 0, name_end = 0, end = 0;
	char kind = 0;

	sscanf(*p, "%hu.%u:%n%*[^>!,~]%n%c%hu%n~%hu%n", &c.cpu, &c.point, &name, &name_end, &kind,
	       &c.to, &end, &c.keep, &end);
	if (end == 0 || (kind != '>' && !(kind == '!' && c.to > 0)) || !strchr(",", (*p)[end]) ||
	    c.cpu >= EXPLORE_CPUS_MAX || c.to >= (kind == '>' ? EXPLORE_CPUS_MAX : UINT16_MAX))
		host_die("the schedule is malformed at \"%.*s\": CPU.POINT:FUNCTION>CPU~STORES or "
			 "CPU.POINT:FUNCTION!POINTS is expected there",
			 SHOWN, *p);
	if (kind == '!') {
		c.hold = c.to;
		c.to = 0;
	}
	c.name = *p + name;
	(*p)[name_end] = '\0';
	*p += end + ((*p)[end] == ',');
	return c;
}

struct choice *schedule_parse(char *text, u32 *count)
{
	static struct choice choices[CHOICES_MAX];

	for (*count = 0; *text && *count < CHOICES_MAX; ++*count)
		choices[*count] = choice_at(&text);
	return choices;
}
