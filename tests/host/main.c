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
 *	-t secs    limit for one case, in processor time [240]
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

#include "tests/host/child.h"
#include "tests/host/host.h"
#include "tests/kernel/test.h"

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
		child_show(child.text, false);
		child_say("  ok %u %s\n", number, tc->name);
		break;
	case OUTCOME_SKIP:
		skipped++;
		child_show(child.text, false);
		child_say("  ok %u %s # SKIP %s\n", number, tc->name, reason);
		break;
	case OUTCOME_FAIL:
		failed++;
		child_show(child.text, true);
		if (*reason)
			child_say("  # %s: %s\n", name, reason);
		child_say("  not ok %u %s\n", number, tc->name);
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
	child_say("  KTAP version 1\n  # Subtest: %s\n  1..%u\n", name, count);
	for (unsigned i = 1; i <= count; i++, tc = test_next(run, tc))
		run_case(tc, i);
	child_say("%s %u %s%s\n", failed > fails ? "not ok" : "ok", number, name,
		  skipped - skips == count ? " # SKIP every case was skipped" : "");
	return tc;
}

static int run_all(const struct test_run *run)
{
	const struct test_case *tc = test_next(run, NULL);

	child_say("KTAP version 1\n1..%u\n", test_suites(run));
	for (unsigned number = 1; tc; number++)
		tc = run_suite(run, tc, number);
	if (!passed && !failed && !skipped) {
		child_say("# no test matches \"%s\"\n", run->patterns);
		failed = 1;
	}
	child_say("# totals pass:%u fail:%u skip:%u\n", passed, failed, skipped);
	return failed != 0;
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
		case 'n':
			host_config.nodes = (node_t)host_number(optarg, 1, HOST_NODES_MAX, "-n");
			break;
		case 'r':
			host_config.replay = optarg;
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
			if (!child_option(option, optarg, HOST_CPUS_MAX))
				return 2;
		}
	}
	if (optind < argc)
		run.patterns = argv[optind];
	if (list)
		return child_list(&run);
	if (here) {
		host_run_by_hand();
		host_machine_init();
		host_machine_run("");
	}
	return run_all(&run);
}
