/*
 * Schedules as text: see explore.h.
 *
 *	1.37:pcp_begin>0~2,0.412:call_serve!5,0.430:vmap_clear*1
 *
 * CPU 1, at its 37th point, which is in pcp_begin(): CPU 0 runs next, and the newest two stores of
 * CPU 1 stay back. CPU 0, at its point 412: an interrupt that has come waits for 5 points. At its
 * point 430 it stores a page-table entry, and CPU 1 keeps the translation that was there.
 */
#include <stdio.h>

#include "kernel/core/cmdline.h"
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
		child_say("%s%u.%u:%s%c%u", c > choice ? "," : "", c->cpu, c->point,
			  c->name ? c->name : schedule_function(c->place), c->kind, c->value);
		if (c->keep)
			child_say("~%u", c->keep);
	}
}

static struct choice choice_at(char **p)
{
	struct choice c = {0};
	int name = 0, name_end = 0, end = 0;
	char kind = 0;

	sscanf(*p, "%hu.%u:%n%*[^>!*,~]%n%c%hu%n~%hu%n", &c.cpu, &c.point, &name, &name_end, &kind,
	       &c.value, &end, &c.keep, &end);
	if (end == 0 || !strchr(">!*", kind) || (kind == HOLD && c.value == 0) ||
	    !strchr(",", (*p)[end]) || c.cpu >= EXPLORE_CPUS_MAX ||
	    c.value >= (kind == HOLD ? UINT16_MAX : EXPLORE_CPUS_MAX))
		host_die("the schedule is malformed at \"%.*s\": CPU.POINT:FUNCTION>CPU~STORES, "
			 "CPU.POINT:FUNCTION!POINTS or CPU.POINT:FUNCTION*CPU is expected there",
			 SHOWN, *p);
	c.kind = (enum choice_kind)kind;
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
