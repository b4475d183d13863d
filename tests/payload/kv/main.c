/*
 * The effect of the page size on a key-value table: the same table is filled once and queried once
 * through pages of 4 KiB, of 2 MiB and of 1 GiB.
 *
 *	make run PAYLOAD=tests/payload/kv
 *	make run PAYLOAD=tests/payload/kv CMDLINE='kv_keys=1000000'
 *
 * The memory is one page of the pool of 1 GiB pages, or of 2 MiB pages if there is no free GiB. The
 * program takes it as a server would and maps it three times in turn. Every answer is checked.
 */
#include <ashlar.h>

#include "table.h"

static u64 kv_keys = 1 << 20;
OPTION_U64(kv_keys, kv_keys, 1, 1ULL << 26, "keys that are put and asked for");

/*
 * Keys in an order without locality. They are never 0 and all different, because multiplying by an
 * odd number is a permutation.
 */
static u64 key_of(u64 i)
{
	return (i + 1) * 0xd1342543de82ef95ULL;
}

static bool fill(struct kv *kv)
{
	for (u64 i = 0; i < kv_keys; i++)
		if (!kv_put(kv, key_of(i), i))
			return false;
	return true;
}

/* Query the keys in another order than they were put in. Returns false if an answer is wrong. */
static bool ask(const struct kv *kv)
{
	bool ok = true;

	for (u64 i = 0; i < kv_keys; i++) {
		const u64 which = i * 7919 % kv_keys, *value = kv_get(kv, key_of(which));

		ok &= value && *value == which;
	}
	return ok && !kv_get(kv, key_of(kv_keys));
}

/* Size of the table in bytes: a power of two, at most one page, and at most half full. */
static u64 table_bytes(const struct page *page)
{
	u64 bytes = PAGE_SIZE << page_order(page);

	while (bytes / 2 >= 2 * kv_keys * sizeof(struct kv_slot) && bytes > PAGE_SIZE)
		bytes /= 2;
	return bytes;
}

static bool run_one(struct page *page, u64 leaf, const char *name)
{
	void *memory = page_map(page, leaf);
	u64 start, put_ns, get_ns;
	struct kv kv;
	bool ok;

	if (!memory)
		return last_reason() == REASON_CPU_LACKS; /* a page size less is no mistake */
	__builtin_memset(page_address(page), 0, table_bytes(page));
	kv_init(&kv, memory, table_bytes(page));
	start = clock_ns();
	ok = fill(&kv);
	put_ns = clock_ns() - start;
	start = clock_ns();
	ok = ask(&kv) && ok;
	get_ns = clock_ns() - start;
	ashlar_print("  %-4s %9llu %10s %7llu ns %7llu ns\n", name, kv_keys, ok ? "right" : "WRONG",
		     put_ns / kv_keys, get_ns / kv_keys);
	ashlar_result("kv", "leaf=%s keys=%llu bytes=%llu ns_put=%llu ns_get=%llu", name, kv_keys,
		      table_bytes(page), put_ns, get_ns);
	page_unmap(memory);
	return ok;
}

/* Make and take a page of the largest size that is available. */
static struct page *take(struct pool **pool)
{
	struct pool *const pools[] = {&pool_1g, &pool_2m};

	for (size_t i = 0; i < ARRAY_LEN(pools); i++) {
		*pool = pools[i];
		if (pool_grow(*pool, NULL, 1) == 1)
			return pool_page_take(*pool, NODE_NONE, POOL_ANY);
	}
	return NULL;
}

void payload_run(void)
{
	static const struct {
		u64 bytes;
		const char *name;
	} leaves[] = {{KIB(4), "4K"}, {MIB(2), "2M"}, {GIB(1), "1G"}};
	struct pool *pool;
	struct page *page = take(&pool);

	if (!page) {
		ashlar_warn("kv: not even 2 MiB are free in one piece");
		verdict_count(0, 1, 0);
		return;
	}
	kv_keys = MIN(kv_keys, (PAGE_SIZE << page_order(page)) / sizeof(struct kv_slot) / 2);
	ashlar_print("\nA table of %llu keys in %llu MiB, by the size of the pages that map it\n\n "
		     " %-4s "
		     "%9s %10s %10s %10s\n",
		     kv_keys, table_bytes(page) >> 20, "page", "keys", "answers", "put", "get");
	for (size_t i = 0; i < ARRAY_LEN(leaves); i++) {
		bool ok;

		if (leaves[i].bytes > PAGE_SIZE << page_order(page))
			continue;
		ok = run_one(page, leaves[i].bytes, leaves[i].name);
		verdict_count(ok, !ok, 0);
	}
	pool_page_give(pool, page);
	pool_shrink(pool, NULL, 1);
}
