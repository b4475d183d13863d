/*
 * Hosted runner. Every test case gets a machine of its own in a child process, so that a crash, a
 * hang or a leak fails that case and no other. The child boots and runs as the kernel does, with
 * test=CASE on its command line. Its verdict is its exit status, and the runner prints the KTAP of
 * all cases.
 *
 *	ashlar-host [-c cpus] [-m ram] [-n nodes] [-r file] [-k words] [-t seconds] [-e file]
 *	            [-l] [-u] [-x] [patterns]
 *
 *	-k words   added to every machine's command line     -l   list the cases, run nothing
 *	-r file    the machine that a text describes (replay.h), with at most `cpus` of its CPUs;
 *	           -m and -n mean nothing then
 *	-t secs    limit for one case
 *	-x         one machine in this process: run the words of -k, no cases; exits with 0 if they
 *	           pass, else 1
 *	-u         do not look for frames that are used again too early: for counting misses, to
 *	           which these looks would add
 *	-e file    the events of the (last) case, for tests/model/replay.py
 *
 * The output of a child that fails is shown; of others only the diagnostics are. Exit status: 0 if
 * nothing failed, 1 if something did, 2 for wrong use.
 */
#define _GNU_SOURCE
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <arch/clock.h>
#include <arch/console.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/run/test.h"
#include "tests/host/host.h"

enum {
	OUTPUT_KEPT = 1 << 20,
	REASON_MAX = 256,
	LINE_MAX = 1400,
	SHOWN_FIRST = 60,
	SHOWN_LAST = 60
};

/* Outcome of a case, from its verdict or from a failure of the machine itself. */
enum outcome { OUTCOME_PASS, OUTCOME_FAIL, OUTCOME_SKIP };

struct child {
	pid_t pid;
	int out; /* its stdout and stderr */
	char *text;
	size_t len;
	bool timed_out;
	int status;
};

static unsigned passed, failed, skipped;

/* Names that the sanitizers' runtimes look for. */
const char *__asan_default_options(void);
const char *__tsan_default_options(void);
const char *__msan_default_options(void);
const char *__ubsan_default_options(void);

/*
 * The sanitizers stop at the first report, because the verdict of a machine with a data race is
 * worthless.
 */
__attribute__((used)) const char *__asan_default_options(void)
{
	return "detect_leaks=0:handle_segv=0:handle_sigbus=0:use_sigaltstack=0:detect_stack_use_"
	       "after_return=0";
}

__attribute__((used)) const char *__tsan_default_options(void)
{
	return "halt_on_error=1:second_deadlock_stack=1:report_signal_unsafe=0:atexit_sleep_ms=0";
}

/*
 * Shadows are shared as their frames are (pages.c), so none may be replaced by another mapping,
 * however large the extent that is cleared.
 */
__attribute__((used)) const char *__msan_default_options(void)
{
	return "handle_segv=0:handle_sigbus=0:use_sigaltstack=0:clear_shadow_mmap_threshold="
	       "1099511627776";
}

__attribute__((used)) const char *__ubsan_default_options(void)
{
	return "print_stacktrace=1";
}

static void say(const char *fmt, ...) __printf(1, 2);
static void say(const char *fmt, ...)
{
	char line[LINE_MAX];
	va_list args;
	int n;

	va_start(args, fmt);
	n = vformat(line, sizeof(line), fmt, args);
	va_end(args);
	console_write(line, MIN((size_t)n, sizeof(line) - 1));
}

static struct child child_start(const char *cmdline)
{
	struct child child = {.text = malloc(OUTPUT_KEPT)};
	int ends[2];

	if (!child.text || pipe(ends) < 0)
		host_die("no memory or no pipe for a child");
	child.pid = fork();
	if (child.pid < 0)
		host_die("no child process");
	if (child.pid == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		host_machine_init();
		if (host_config.trace)
			host_trace_open(host_config.trace);
		host_machine_run(cmdline);
	}
	close(ends[1]);
	child.out = ends[0];
	return child;
}

/*
 * Read output until the child closes it or time is up. Output that exceeds the buffer is dropped.
 */
static void child_read(struct child *child, u64 until)
{
	char spill[4096];

	for (;;) {
		struct pollfd in = {.fd = child->out, .events = POLLIN};
		size_t room = OUTPUT_KEPT - 1 - child->len;
		u64 now = clock_ns();
		ssize_t n;

		if (now >= until) {
			child->timed_out = true;
			return;
		}
		if (poll(&in, 1, (int)((until - now) / NS_PER_MS) + 1) == 0)
			continue;
		n = room ? read(child->out, child->text + child->len, room)
			 : read(child->out, spill, sizeof(spill));
		if (n <= 0)
			return;
		if (room)
			child->len += (size_t)n;
	}
}

static void child_finish(struct child *child)
{
	child_read(child, clock_ns() + host_config.limit_s * NS_PER_S);
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

/*
 * Show the child's output. Diagnostics are always shown. The rest is shown if the case failed,
 * quoted so that no KTAP in it counts. The middle of a long text (a backtrace of a runaway
 * recursion) is left out.
 */
static void show_output(char *text, bool all)
{
	const u32 lines = count_lines(text);
	char *line;

	for (u32 i = 0; (line = next_line(&text)); i++) {
		if (is_diagnostic(line))
			say("%s\n", line);
		else if (all && (i < SHOWN_FIRST || i + SHOWN_LAST >= lines))
			say("  # | %s\n", line);
		else if (all && i == SHOWN_FIRST)
			say("  # | ... %u lines left out ...\n", lines - SHOWN_FIRST - SHOWN_LAST);
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

/* Outcome of the child; *reason gets the reason for a failure or a skip. */
static enum outcome child_outcome(const struct child *child, char *reason)
{
	const int code = WIFEXITED(child->status) ? WEXITSTATUS(child->status) : -1;

	*reason = '\0';
	if (child->timed_out)
		format(reason, REASON_MAX, "no verdict within %u s", host_config.limit_s);
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

static void run_case(const struct test_case *tc, unsigned number)
{
	char name[TEST_NAME_MAX], cmdline[TEST_NAME_MAX + 8], reason[REASON_MAX];
	struct child child;

	test_case_name(tc, name, sizeof(name));
	format(cmdline, sizeof(cmdline), "test=%s", name);
	child = child_start(cmdline);
	child_finish(&child);

	switch (child_outcome(&child, reason)) {
	case OUTCOME_PASS:
		passed++;
		show_output(child.text, false);
		say("  ok %u %s\n", number, tc->name);
		break;
	case OUTCOME_SKIP:
		skipped++;
		show_output(child.text, false);
		say("  ok %u %s # SKIP %s\n", number, tc->name, reason);
		break;
	case OUTCOME_FAIL:
		failed++;
		show_output(child.text, true);
		if (*reason)
			say("  # %s: %s\n", name, reason);
		say("  not ok %u %s\n", number, tc->name);
		break;
	}
	free(child.text);
}

static const struct test_case *run_suite(const struct test_run *run, const struct test_case *first,
					 unsigned number)
{
	const unsigned count = test_count(run, first), fails = failed, skips = skipped;
	const struct test_case *tc = first;
	char name[TEST_NAME_MAX];

	test_suite_name(first, name, sizeof(name));
	say("  KTAP version 1\n  # Subtest: %s\n  1..%u\n", name, count);
	for (unsigned i = 1; i <= count; i++, tc = test_next(run, tc))
		run_case(tc, i);
	say("%s %u %s%s\n", failed > fails ? "not ok" : "ok", number, name,
	    skipped - skips == count ? " # SKIP every case was skipped" : "");
	return tc;
}

static int run_all(const struct test_run *run)
{
	const struct test_case *tc = test_next(run, NULL);

	say("KTAP version 1\n1..%u\n", test_suites(run));
	for (unsigned number = 1; tc; number++)
		tc = run_suite(run, tc, number);
	if (!passed && !failed && !skipped) {
		say("# no test matches \"%s\"\n", run->patterns);
		failed = 1;
	}
	say("# totals pass:%u fail:%u skip:%u\n", passed, failed, skipped);
	return failed != 0;
}

static int list_all(const struct test_run *run)
{
	char name[TEST_NAME_MAX];

	for (const struct test_case *tc = test_next(run, NULL); tc; tc = test_next(run, tc)) {
		test_case_name(tc, name, sizeof(name));
		say("%s\n", name);
	}
	return 0;
}

static u64 number(const char *text, u64 min, u64 max, const char *what)
{
	const char *p = text;
	u64 value;

	if (parse_u64(&p, &value) < 0 || *p || value < min || value > max)
		host_die("%s: \"%s\" is not a number from %llu to %llu", what, text, min, max);
	return value;
}

int main(int argc, char **argv)
{
	struct test_run run = {
		.begin = __start_test_table, .end = __stop_test_table, .patterns = "*"};
	bool list = false, here = false;
	int option;

	host_clock_start();
	while ((option = getopt(argc, argv, "c:m:n:r:k:t:e:lux")) != -1) {
		switch (option) {
		case 'c':
			host_config.cpus = (cpu_t)number(optarg, 1, HOST_CPUS_MAX, "-c");
			break;
		case 'm':
			host_config.ram = number(optarg, MIB(8), GIB(128), "-m") & ~(PAGE_SIZE - 1);
			break;
		case 'n':
			host_config.nodes = (node_t)number(optarg, 1, HOST_NODES_MAX, "-n");
			break;
		case 'r':
			host_config.replay = optarg;
			break;
		case 't':
			host_config.limit_s = (unsigned)number(optarg, 1, 86400, "-t");
			break;
		case 'e':
			host_config.trace = optarg;
			break;
		case 'k':
			host_config.extra = optarg;
			break;
		case 'l':
			list = true;
			break;
		case 'u':
			host_config.unwatched = true;
			break;
		case 'x':
			here = true;
			break;
		default:
			return 2;
		}
	}
	if (optind < argc)
		run.patterns = argv[optind];
	if (list)
		return list_all(&run);
	if (here) {
		host_run_by_hand();
		host_machine_init();
		host_machine_run("");
	}
	return run_all(&run);
}
