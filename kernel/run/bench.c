/*
 * Running benchmarks by name, from the command line and from the monitor, with options that are set
 * for this run only. They are restored afterwards, so that one run does not change the next. An
 * option that cannot show its present value is refused, because it could not be restored.
 */
#include "kernel/run/bench.h"

#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/lib/string.h"

static const struct bench *bench_find(const char *name, size_t len)
{
	const struct bench *bench;

	TABLE_FOREACH(bench, bench_table)
	{
		if (strlen(bench->name) == len && strncmp(bench->name, name, len) == 0)
			return bench;
	}
	return NULL;
}

static bool run_one(const struct bench *bench)
{
	const bool ok = bench->run();

	if (!ok)
		pr_err("bench %s failed", bench->name);
	verdict_count(ok, !ok, 0);
	return ok;
}

/* Say which benchmarks there are. */
static int refuse(const struct words *words, const char *name, size_t len)
{
	char names[400] = "";
	const struct bench *bench;
	size_t at = 0;

	TABLE_FOREACH(bench, bench_table)
	{
		if (at < sizeof(names))
			at += (size_t)format(names + at, sizeof(names) - at, " %s", bench->name);
	}
	return cmd_error(words, "there is no bench \"%.*s\"; there are%s", (int)len, name, names);
}

/* Check the benchmarks of a list with commas and, with `ok`, run them; *ok: none failed. */
static int each(const struct words *words, const char *names, bool *ok)
{
	while (*names && !input_stop_asked()) {
		const char *comma = strchr(names, ',');
		const size_t len = comma ? (size_t)(comma - names) : strlen(names);
		const struct bench *bench = bench_find(names, len);

		if (!bench)
			return refuse(words, names, len);
		if (ok)
			*ok &= run_one(bench);
		names += len + (comma != NULL);
	}
	return 0;
}

/*
 * Run the benchmarks that plain word `which` names, with the options of the other words. Returns 0
 * if they ran (*ok: none failed), or prints an error (< 0).
 */
static int bench_words(const struct words *words, unsigned which, bool *ok)
{
	static struct option_saved saved[WORDS_MAX]; /* benchmarks run on the boot CPU only */
	const char *names = words_plain(words, which);
	char space[OPTION_VALUE_MAX];
	int count, err;

	if (!names || words_plain(words, which + 1))
		return cmd_error(words, "NAME or NAME,NAME is expected, then KEY=VALUE");
	err = each(words, names, NULL);
	if (err)
		return err;
	format(space, sizeof(space), "bench.%s", names);
	count = cmd_options(words, space, saved);
	if (count < 0)
		return count;
	each(words, names, ok);
	option_put_back(saved, (unsigned)count);
	return 0;
}

bool bench_run(const char *text)
{
	size_t len = strlen(text), used;
	struct words words;
	bool ok = true;
	int err;

	for (; len > 0 && !input_stop_asked(); text += used, len -= used) {
		err = words_cut(&words, text, len, &used);
		if (words.count == 0)
			continue;
		err = err ? cmd_error(&words, "\"%s\" is too long, or a quote is open", text)
			  : bench_words(&words, 0, &ok);
		if (err)
			verdict_count(0, 1, 0);
		ok &= !err;
	}
	return ok;
}

/* ---- the command ---- */

static int cmd_bench(const struct words *words)
{
	bool ok = true;

	return bench_words(words, 1, &ok);
}

static bool bench_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			    size_t size)
{
	if (at != 1 || n >= (unsigned)(__stop_bench_table - __start_bench_table))
		return false;
	format(buf, size, "%s", __start_bench_table[n].name);
	return true;
}

COMMAND(bench, .usage = "NAME [KEY=VALUE ...]",
	.help = "run a benchmark, with these options for this run only",
	.more = "  KEY is a word of the benchmark (help options: bench.NAME.KEY) or any option;\n"
		"  e.g. bench hvo pages=1024 source=all\n",
	.min = 1, .max = 1, .keys = "*", .run = cmd_bench, .candidate = bench_candidate,
	.counts = true);
