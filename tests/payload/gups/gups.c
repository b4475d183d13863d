/*
 * GUPS (giga-updates per second), the random access benchmark of the HPC Challenge, by the size of
 * the pages that map the table.
 *
 *	make run PAYLOAD=tests/payload/gups
 *	make run PAYLOAD=tests/payload/gups CMDLINE='gups_mib=512 gups_updates=1000000'
 *
 * The table consists of 64-bit words. Each update picks a word by a pseudo-random number and XORs
 * the number into it. The accesses have no locality, so each update needs a translation of its own.
 * A table of 256 MiB has 65536 pages of 4 KiB, more than any TLB holds, or 128 of 2 MiB, or lies in
 * one of 1 GiB. Running the same updates a second time undoes the first run. This checks the
 * result: every word must be zero again.
 *
 * Parts to look at before you write your own program: payload_run() is the program; OPTION_U64
 * defines a word of the command line; page_alloc() and page_map() are in mm/mm.h; last_reason()
 * says why they failed; padata_run() uses the other CPUs; verdict_count() decides how the run ends.
 *
 * Source: HPC Challenge, "RandomAccess", rules of 2005; the polynomial is that of its reference.
 */
#include <ashlar.h>

#define POLYNOMIAL 7ULL

static u64 gups_mib = 256, gups_updates = 1 << 22;
OPTION_U64(gups_mib, gups_mib, 2, 1024, "size of the table, a power of two");
OPTION_U64(gups_updates, gups_updates, 1, 1ULL << 40, "updates of each run");

/*
 * The table is divided: each chunk has its own words, so no lock is needed and no update is lost.
 */
struct gups {
	u64 *table;
	u64 words;   /* words of one chunk, a power of two */
	u64 updates; /* updates of one chunk */
};

static u64 next_random(u64 x)
{
	return x << 1 ^ ((s64)x < 0 ? POLYNOMIAL : 0);
}

static void update_chunk(u64 start, u64 end, void *arg)
{
	const struct gups *gups = arg;

	for (u64 chunk = start; chunk < end; chunk++) {
		u64 *words = gups->table + chunk * gups->words, x = chunk * 2 + 1;

		for (u64 i = 0; i < gups->updates; i++) {
			x = next_random(x);
			words[(x >> 7) & (gups->words - 1)] ^= x;
		}
	}
}

/* The largest power of two that is not above n. */
static u64 power_below(u64 n)
{
	while (n & (n - 1))
		n &= n - 1;
	return n;
}

/*
 * Do all updates, each chunk on a CPU of its own if there are enough. Returns the time in
 * nanoseconds.
 */
static u64 update_all(u64 *table, u64 chunks)
{
	struct gups gups = {.table = table,
			    .words = MIB(gups_mib) / sizeof(u64) / chunks,
			    .updates = gups_updates / chunks};
	struct padata_mt_job job = {.thread_fn = update_chunk,
				    .arg = &gups,
				    .size = chunks,
				    .min_chunk = 1,
				    .max_threads = (unsigned)chunks,
				    .node = NODE_NONE};
	const u64 start = clock_ns();

	padata_run(&job);
	return clock_ns() - start;
}

static bool all_zero(const u64 *table)
{
	for (u64 i = 0; i < MIB(gups_mib) / sizeof(u64); i++)
		if (table[i])
			return false;
	return true;
}

/* Doubles are fine here: a payload may use vector registers (../README.md, "The rules"). */
static bool run_one(struct page *page, u64 leaf, const char *name, u64 chunks)
{
	u64 *table = page_map(page, leaf), ns;
	const u64 updates = gups_updates / chunks * chunks;
	double rate;
	bool ok;

	if (!table) {
		ashlar_print("  %-4s %s\n", name, reason_text(last_reason()));
		return last_reason() == REASON_CPU_LACKS; /* a page size less is no mistake */
	}
	update_all(table, chunks);
	ns = update_all(table, chunks);
	ok = all_zero(table);
	rate = (double)updates * 1000.0 / (double)ns; /* millions per second */
	ashlar_print("  %-4s %4llu %12llu %8llu.%03llu %10llu.%02llu  %s\n", name, chunks, updates,
		     ns / NS_PER_MS, ns / NS_PER_US % 1000, (u64)rate, (u64)(rate * 100.0) % 100,
		     ok ? "every word is zero again" : "WRONG");
	ashlar_result("gups", "leaf=%s cpus=%llu table_bytes=%llu updates=%llu ns=%llu", name,
		      chunks, MIB(gups_mib), updates, ns);
	page_unmap(table);
	return ok;
}

void payload_run(void)
{
	static const struct {
		u64 bytes;
		const char *name;
	} leaves[] = {{KIB(4), "4K"}, {MIB(2), "2M"}, {GIB(1), "1G"}};
	const unsigned order = gups_mib > 2 ? 18 : 9;
	const u64 most = MIN(power_below(cpus_started()), MIN(gups_updates, 64));
	struct page *page;

	gups_mib = power_below(gups_mib);
	page = page_alloc(order, USE_UNMOVABLE, 0, NODE_NONE);
	if (!page) {
		ashlar_warn("gups: no free run of %s",
			    order == 18 ? "1 GiB: give the machine more memory, or gups_mib=2"
					: "2 MiB");
		verdict_count(0, 1, 0);
		return;
	}
	ashlar_print("\nRandom updates of a table of %llu MiB, by the size of the pages that map "
		     "it\n\n  "
		     "%-4s %4s %12s %12s %13s\n",
		     gups_mib, "page", "CPUs", "updates", "time ms", "million/s");
	__builtin_memset(page_address(page), 0, MIB(gups_mib));
	for (u64 chunks = 1;; chunks = most) {
		for (size_t i = 0; i < ARRAY_LEN(leaves); i++) {
			const bool fits = leaves[i].bytes <= PAGE_SIZE << order;
			const bool ok =
				!fits || run_one(page, leaves[i].bytes, leaves[i].name, chunks);

			verdict_count(fits && ok, !ok, 0);
		}
		if (chunks == most)
			break;
	}
	page_free(page);
}
