/*
 * Machines as child processes of a runner: see child.h.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "kernel/core/verdict.h"
#include "tests/host/child.h"
#include "tests/host/host.h"
#include "tests/kernel/test.h"

enum {
	OUTPUT_KEPT = 1 << 20,
	LINE_MAX = 1400,
	SHOWN_FIRST = 60,
	SHOWN_LAST = 60,
	ASLEEP_FACTOR = 5
};

void child_say(const char *fmt, ...)
{
	char line[LINE_MAX];
	int n;

	n = FORMAT_ARGS(line, sizeof(line), fmt);
	host_write(line, MIN((size_t)n, sizeof(line) - 1));
}

struct child child_fork(void)
{
	struct child child = {.text = malloc(OUTPUT_KEPT)};
	int ends[2];

	if (!child.text || pipe(ends) < 0)
		host_die("no memory or no pipe for a child");
	child.pid = fork();
	if (child.pid < 0)
		host_die("no child process");
	if (child.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* nobody else limits its time */
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
	}
	close(ends[1]);
	child.out = ends[0];
	return child;
}

struct child child_start(const char *cmdline)
{
	struct child child = child_fork();

	if (child.pid == 0) {
		host_machine_init();
		host_machine_run(cmdline);
	}
	return child;
}

/*
 * Is its time up? What counts is the time that processors spent on it, which a busy host does not
 * change. Of the clock's time it gets more, for a machine whose CPUs are all asleep.
 */
static bool child_is_late(const struct child *child, u64 began)
{
	struct timespec used;
	clockid_t clock;

	if (clock_ns() - began >= ASLEEP_FACTOR * host_config.limit_s * NS_PER_S)
		return true;
	return clock_getcpuclockid(child->pid, &clock) == 0 && clock_gettime(clock, &used) == 0 &&
	       used.tv_sec >= host_config.limit_s;
}

/*
 * Read output until the child closes it or time is up. Output that exceeds the buffer is dropped.
 */
static void child_read(struct child *child)
{
	const u64 began = clock_ns();
	char spill[4096];

	for (;;) {
		struct pollfd in = {.fd = child->out, .events = POLLIN};
		size_t room = OUTPUT_KEPT - 1 - child->len;
		ssize_t n;

		if (child_is_late(child, began)) {
			child->timed_out = true;
			return;
		}
		if (poll(&in, 1, 1000) == 0)
			continue;
		n = room ? read(child->out, child->text + child->len, room)
			 : read(child->out, spill, sizeof(spill));
		if (n <= 0)
			return;
		if (room)
			child->len += (size_t)n;
	}
}

void child_finish(struct child *child)
{
	child_read(child);
	if (child->timed_out)
		kill(child->pid, SIGKILL);
	waitpid(child->pid, &child->status, 0);
	close(child->out);
	child->text[child->len] = '\0';
}

/* Next line of the child's output, or NULL at the end. Cuts the text into terminated lines. */
static char *next_line(char **rest)
{
	char *line = *rest, *end;

	if (!*line)
		return NULL;
	end = strchr(line, '\n');
	*rest = end ? end + 1 : line + strlen(line);
	if (end)
		*end = '\0';
	return line;
}

static bool is_diagnostic(const char *line)
{
	return strncmp(line, "  # ", 4) == 0 && strncmp(line, "  # Subtest:", 12) != 0;
}

static u32 count_lines(const char *text)
{
	u32 n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

void child_show(char *text, bool all)
{
	const u32 lines = count_lines(text);
	char *line;

	for (u32 i = 0; (line = next_line(&text)); i++) {
		if (is_diagnostic(line))
			child_say("%s\n", line);
		else if (all && (i < SHOWN_FIRST || i + SHOWN_LAST >= lines))
			child_say("  # | %s\n", line);
		else if (all && i == SHOWN_FIRST)
			child_say("  # | ... %u lines left out ...\n",
				  lines - SHOWN_FIRST - SHOWN_LAST);
	}
}

static void find_skip_reason(const char *text, char *reason)
{
	const char *skip = strstr(text, " # SKIP ");
	const char *end = skip ? strchr(skip, '\n') : NULL;

	*reason = '\0';
	if (skip)
		format(reason, REASON_MAX, "%.*s", (int)(end ? end - skip - 8 : 200), skip + 8);
}

/*
 * A case that breaks a rule on purpose announces the end it expects; it succeeds if that end comes.
 */
static bool crashed_as_announced(const struct child *child)
{
	const char *announced = strstr(child->text, HOST_EXPECT_CRASH), *end;
	char want[REASON_MAX];

	if (!announced)
		return false;
	announced += strlen(HOST_EXPECT_CRASH);
	end = strchr(announced, '\n');
	if (!end)
		return false;
	format(want, sizeof(want), "%.*s", (int)(end - announced), announced);
	return strstr(end, want) != NULL;
}

enum outcome child_outcome(const struct child *child, char *reason)
{
	const int code = WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1;

	*reason = '\0';
	if (child->timed_out)
		format(reason, REASON_MAX, "no verdict within %u s of processor time",
		       host_config.limit_s);
	else if (WIFSIGNALED(child->status))
		format(reason, REASON_MAX, "killed by signal %d", WTERMSIG(child->status));
	else if (code != VERDICT_PASS && code != VERDICT_FAIL && crashed_as_announced(child))
		return OUTCOME_PASS;
	else if (code == VERDICT_CRASH)
		format(reason, REASON_MAX, "the machine crashed");
	else if (code != VERDICT_PASS && code != VERDICT_FAIL && code != VERDICT_SKIPPED)
		format(reason, REASON_MAX,
		       "no verdict, exit status %d (a sanitizer's report, or the machine died)",
		       code);
	if (code == VERDICT_PASS && !*reason)
		return OUTCOME_PASS;
	if (code == VERDICT_SKIPPED && !*reason) {
		find_skip_reason(child->text, reason);
		return OUTCOME_SKIP;
	}
	return OUTCOME_FAIL;
}

u64 host_number(const char *text, u64 min, u64 max, const char *what)
{
	const char *p = text;
	u64 value;

	if (parse_u64(&p, &value) < 0 || *p || value < min || value > max)
		host_die("%s: \"%s\" is not a number from %llu to %llu", what, text, min, max);
	return value;
}

bool child_option(int option, const char *value, u64 cpus_most)
{
	switch (option) {
	case 'c':
		host_config.cpus = (cpu_t)host_number(value, 1, cpus_most, "-c");
		return true;
	case 'm':
		host_config.ram = host_number(value, MIB(8), TIB(1), "-m") & ~(PAGE_SIZE - 1);
		return true;
	case 't':
		host_config.limit_s = (unsigned)host_number(value, 1, 86400, "-t");
		return true;
	default:
		return false;
	}
}

int child_list(const struct test_run *run)
{
	char name[TEST_NAME_MAX];

	for (const struct test_case *tc = test_next(run, NULL); tc; tc = test_next(run, tc)) {
		test_case_name(tc, name, sizeof(name));
		child_say("%s\n", name);
	}
	return 0;
}
