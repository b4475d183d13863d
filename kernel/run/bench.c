/*
 * Running benchmarks by name, from the command line and from the monitor.
 *
 * `bench NAME key=value` sets the switches for this run only. They are restored afterwards, so that
 * one run of a session does not change the next. A switch that cannot show its present value is
 * refused, because it could not be restored.
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

static bool run_one(const char *name, size_t len)
{
	const struct bench *bench = bench_find(name, len);
	const bool ok = bench && bench->run();

	if (!bench)
		pr_err("there is no bench %.*s", (int)len, name);
	else if (!ok)
		pr_err("bench %s failed", bench->name);
	verdict_count(ok, !ok, 0);
	return ok;
}

bool bench_run(const char *names)
{
	bool ok = true;

	while (*names && !input_stop_asked()) {
		const char *comma = strchr(names, ',');
		const size_t len = comma ? (size_t)(comma - names) : strlen(names);

		ok &= run_one(names, len);
		names += len + (comma != NULL);
	}
	return ok;
}

/* ---- the command ---- */

/*
 * Save the old value of one KEY=VALUE in *saved, then set it. Returns 0, or prints an error (< 0).
 */
static int set_for_now(const struct words *words, const char *word, struct option_saved *saved)
{
	const char *value = strchr(word, '=') + 1;
	char name[OPTION_VALUE_MAX], why[256];
	const struct option *opt;
	int err;

	format(name, sizeof(name), "%.*s", (int)(value - 1 - word), word);
	opt = option_find(name);
	if (!opt) {
		option_suggest(name, why, sizeof(why));
		return cmd_error(words, "there is no switch \"%s\"%s", name, why);
	}
	err = option_set_for_now(opt, value, saved);
	if (err == -ENOTSUP)
		return cmd_error(words, "%s cannot be restored after the run; use set", name);
	if (err == 0)
		return 0;
	option_explain(opt, value, err, why, sizeof(why));
	return cmd_error(words, "%s", why);
}

static int cmd_bench(const struct words *words)
{
	static struct option_saved saved[WORDS_MAX]; /* commands run on the boot CPU only */
	const char *name = words_plain(words, 1);
	unsigned kept = 0;
	int err = 0;

	if (!bench_find(name, strlen(name)))
		return cmd_error(words, "there is no bench \"%s\"", name);
	for (unsigned i = 1; i < words->count && !err; i++) {
		if (!strchr(words->word[i], '='))
			continue;
		err = set_for_now(words, words->word[i], &saved[kept]);
		kept += !err;
	}
	if (!err)
		bench_run(name);
	option_put_back(saved, kept);
	return err;
}

static bool bench_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			    size_t size)
{
	(void)words;
	if (at != 1 || n >= (unsigned)(__stop_bench_table - __start_bench_table))
		return false;
	format(buf, size, "%s", __start_bench_table[n].name);
	return true;
}

COMMAND(bench, .usage = "NAME [KEY=VALUE ...]",
	.help = "run a benchmark, with these switches for this run only",
	.more = "  get lists the switches; e.g. bench hvo pages=1024 source=all\n", .min = 1,
	.max = 1, .keys = "*", .run = cmd_bench, .candidate = bench_candidate, .counts = true);
