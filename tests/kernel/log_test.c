/* The RAM log: readers that fall behind, and writers on several CPUs. */
#include "ashlar.h"
#include "kernel/console/console.h"
#include "kernel/core/log_record.h"
#include "kernel/core/panic.h"
#include "mm/map/memblock.h"
#include "tests/kernel/test.h"

static u64 log_end_now(void)
{
	char buf[512];
	u64 pos = 0;

	while (log_read(&pos, buf, sizeof(buf)) > 0)
		;
	return pos;
}

TEST(kernel_log, a_reader_left_behind_goes_on_with_the_oldest)
{
	char buf[16];
	u64 pos = log_end_now(), start = pos;

	for (unsigned i = 0; i < log_size() / 1000; i++)
		pr_debug("%1000u", i);
	EXPECT_EQ(log_read(&pos, buf, sizeof(buf)), sizeof(buf));
	EXPECT(pos > start + sizeof(buf));
	EXPECT_EQ(log_end_now() - (pos - sizeof(buf)), log_size());
}

TEST(kernel_log, a_mebibyte_is_kept_where_ram_allows)
{
	static const char begin[] = "ASHLAR-BEGIN\n";
	char first[sizeof(begin)];
	u64 ram = 0, pos = 0;

	for (size_t i = 0; i < memblock_memory.count; i++)
		ram += memblock_memory.range[i].end - memblock_memory.range[i].start;
	EXPECT_EQ(log_size(), ram / 256 >= MIB(1) ? MIB(1) - sizeof(struct log_record) : KIB(64));
	log_read(&pos, first, sizeof(begin) - 1);
	if (pos == sizeof(begin) - 1) /* nothing was overwritten yet */
		EXPECT(strncmp(first, begin, sizeof(begin) - 1) == 0);
}

/* What the consoles of the cases below were given, and how often. */
static char seen[2048];
static size_t seen_len;
static unsigned served;

static bool see(const char *text, size_t len)
{
	for (size_t i = 0; i < len && seen_len < sizeof(seen) - 1; i++)
		seen[seen_len++] = text[i];
	return true;
}

/* Put a console before all others, or, with `alone`, in their place. Returns the others. */
static struct console *see_through(struct console *console, bool alone)
{
	struct console *const others = consoles;

	seen_len = served = 0;
	memset(seen, 0, sizeof(seen));
	console->next = alone ? NULL : others;
	consoles = console;
	return others;
}

/* A console during whose output the CPU serves calls, which print. */
static bool serves_calls(struct console *console, const char *text, size_t len)
{
	if (served < 2) {
		served++;
		pr_info("from a call");
		print("# a result of a call\n");
	}
	return see(text, len);
}

TEST(kernel_log, no_line_is_cut_by_a_call_that_is_served)
{
	struct console serves = {.name = "serves", .write = serves_calls};
	struct console *const others = see_through(&serves, false);

	print("# a result with its %s\n", "end");
	print("# the next one\n");
	consoles = others;
	EXPECT(glob_match("# a result with its end\n"
			  "[*] from a call\n# a result of a call\n"
			  "[*] from a call\n# a result of a call\n"
			  "# the next one\n",
			  seen));
}

/* Lines of served calls: only what is for consoles, and nothing is left out before a panic. */
static bool panics_meanwhile(struct console *console, const char *text, size_t len)
{
	if (served++ == 0) {
		print("# one\n");
		log_line("# only in the log");
		print("# two\n");
		log_line("# nor this");
		atomic_store_relaxed(&panic_owner, cpu_id());
		print("# three\n");
		atomic_store_relaxed(&panic_owner, CPU_NONE);
	}
	return see(text, len);
}

TEST(kernel_log, a_panic_shows_what_was_put_off_first)
{
	struct console panics = {.name = "panics", .write = panics_meanwhile};
	struct console *const others = see_through(&panics, false);

	print("# the line that waits\n");
	consoles = others;
	EXPECT(strcmp(seen, "# one\n# two\n# three\n# the line that waits\n") == 0);
}

/* CPU `stuck` stays in a console until it is let go, as a CPU that a panic stopped. */
static cpu_t stuck;
static bool inside, let_go;

static bool holds_a_cpu(struct console *console, const char *text, size_t len)
{
	if (cpu_id() == stuck && !atomic_load_relaxed(&inside)) { /* once: a report passes */
		atomic_store_release(&inside, true);
		while (!atomic_load_acquire(&let_go))
			cpu_relax();
		return true;
	}
	if (served++ == 0) {
		/* so that a nested line is put off, if the output is ours */
		atomic_store_relaxed(&panic_owner, CPU_NONE);
		print("# two\n");
	}
	return see(text, len);
}

static void get_stuck(void *unused)
{
	print("# stuck\n");
}

TEST(kernel_log, a_panic_takes_the_output_from_a_cpu_that_is_stopped)
{
	struct console holds = {.name = "holds", .write = holds_a_cpu};
	struct console *others;

	SKIP_ON_ONE_CPU();
	inside = let_go = false;
	stuck = cpus_find_other();
	others = see_through(&holds, true);
	EXPECT_EQ(work_start(stuck, get_stuck, NULL), 0);
	CPUS_AWAIT(atomic_load_acquire(&inside));
	atomic_store_relaxed(&panic_owner, cpu_id());
	print("# one\n");
	atomic_store_relaxed(&panic_owner, CPU_NONE);
	atomic_store_release(&let_go, true);
	work_wait(stuck, 0);
	consoles = others;
	EXPECT(strcmp(seen, "# one\n# two\n") == 0);
}

TEST(kernel_log, a_line_that_is_too_long_ends_all_the_same)
{
	said_begin();
	print("%2000u", 1);
	print("# next\n");
	said_end();
	EXPECT_EQ(strlen(said_text), 1023 + 7);
	EXPECT(strcmp(said_text + 1022, "\n# next\n") == 0);
}

TEST(kernel_log, a_line_has_its_time_and_an_echo_is_none)
{
	const u64 before = clock_ns() / NS_PER_S;
	const char *at = said_text + 1;
	u64 seconds = 0;

	said_begin();
	pr_info("now");
	ashlar_note("%u and then", 2);
	echo("\r", 1);
	said_end();
	while (*at == ' ')
		at++;
	EXPECT(parse_u64(&at, &seconds) == 0 && *at == '.' && said_says("] now\n*] 2 and then\n"));
	EXPECT(before <= seconds && seconds <= clock_ns() / NS_PER_S);
	EXPECT(!said_says("\r"));
}

#define LINE "a line of one of several CPUs"

static void warn(void *unused)
{
	pr_warn(LINE);
}

TEST(kernel_log, lines_of_several_cpus_are_all_kept)
{
	const unsigned before = log_warnings();
	unsigned lines = 0;
	cpu_t cpus;

	test_option("loglevel", "0"); /* only to the log */
	said_begin();
	cpus = cpus_run_together(warn, NULL);
	said_end();
	for (const char *at = said_text; *at; at++)
		lines += strncmp(at, "] " LINE "\n", sizeof("] " LINE)) == 0;
	EXPECT_EQ(lines, cpus);
	EXPECT(log_warnings() - before >= cpus);
}
