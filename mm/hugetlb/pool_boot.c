/*
 * Pools made at boot: see pool_boot.h. Options are parsed before there is memory, so parsing only
 * stores the values. mm_init() makes the pages as one of its last steps (1 GiB pages earlier with
 * hvo=preinit). Large pages are made first, because small ones would break up the memory that large
 * ones need.
 */
#include "mm/hugetlb/pool_boot.h"

#include <arch/clock.h>

#include "kernel/core/printk.h"

static const unsigned orders[POOL_BOOT_SIZES] = {BLOCK_ORDER, GIGA_ORDER};

int pool_boot_parse_size(const struct option *opt, const char *value)
{
	struct pool_boot *boot = opt->target;
	u64 bytes;
	int err;

	boot->size = POOL_BOOT_SIZES;
	err = parse_u64(&value, &bytes);
	if (err)
		return err;
	if (*value)
		return -EINVAL;
	for (unsigned size = 0; size < POOL_BOOT_SIZES; size++)
		if (bytes == order_pages(orders[size]) * PAGE_SIZE)
			boot->size = size;
	return boot->size == POOL_BOOT_SIZES ? -ERANGE : 0;
}

/* Store the count for a node. A later count for the same node replaces it. */
static int request_on(struct pool_boot_request *request, u64 node, u64 count)
{
	unsigned i = 0;

	while (i < request->nodes && request->on[i].node != node)
		i++;
	if (i == POOL_BOOT_NODES)
		return -ERANGE;
	request->on[i].node = node;
	request->on[i].count = count;
	request->nodes = MAX(request->nodes, i + 1);
	return 0;
}

/* Parse NODE:COUNT at *p and advance *p past it. */
static int parse_on(const char **p, struct pool_boot_request *request)
{
	u64 node, count;
	int err = parse_u64(p, &node);

	if (err)
		return err;
	if ((*p)[-1] > '9' || *(*p)++ != ':') /* 2M:64 names a size, which is a word of its own */
		return -EINVAL;
	err = parse_u64(p, &count);
	return err ? err : request_on(request, node, count);
}

static int parse_nodes(const char *p, struct pool_boot_request *request)
{
	for (;;) {
		const int err = parse_on(&p, request);

		if (err || *p == '\0')
			return err;
		if (*p++ != ',')
			return -EINVAL;
	}
}

int pool_boot_parse_count(const struct option *opt, const char *value)
{
	struct pool_boot *boot = opt->target;
	struct pool_boot_request request = {.total = 0};
	const char *p = value;
	int err;

	if (boot->size >= POOL_BOOT_SIZES)
		return -ERANGE; /* hugepagesz= named a size that does not exist */
	err = parse_u64(&p, &request.total);
	/* so does 1G */
	if (!err && p[-1] > '9' && request.total >= order_pages(BLOCK_ORDER) * PAGE_SIZE)
		return -EINVAL;
	if (!err && *p == ':') {
		request.total = 0;
		err = parse_nodes(value, &request);
	} else if (!err && *p) {
		err = -EINVAL;
	}
	if (!err)
		boot->request[boot->size] = request;
	return err;
}

/* ---- making the pages ---- */

static void report(const struct pool *pool, const char *where, u64 asked, u64 made, u64 bare)
{
	const unsigned long long mib = order_pages(pool->order) * PAGE_SIZE / MIB(1);

	if (made == asked && bare > 0)
		pr_info("pool: %llu pages of %llu MiB%s, %llu of them bare: made when taken", made,
			mib, where, bare);
	else if (made == asked)
		pr_info("pool: %llu pages of %llu MiB%s", made, mib, where);
	else
		pr_warn("pool: %llu pages of %llu MiB%s: %llu were asked for, no more fit", made,
			mib, where, asked);
}

/* Leave bare what may stay so, and make the rest. */
static u64 make_pages(const struct pool_boot_request *request, struct pool *pool,
		      const struct hvo_mode *mode, node_t node, u64 count, const char *where)
{
	const u64 bare = request->bare ? pool_grow_on(pool, &hvo_leave_bare, node, count) : 0;
	const u64 made = bare + pool_grow_on(pool, mode, node, count - bare);

	report(pool, where, count, made, bare);
	pool->boot_bare += bare;
	return made;
}

static u64 make_on(const struct pool_boot_request *request, struct pool *pool,
		   const struct hvo_mode *mode, u64 node, u64 count)
{
	char where[32];

	if (node >= pool->mm->nodes) {
		pr_warn("pool: a request for %llu pages on node %llu is ignored: there is no such "
			"node",
			count, node);
		return 0;
	}
	format(where, sizeof(where), " on node %llu", node);
	return make_pages(request, pool, mode, (node_t)node, count, where);
}

u64 pool_boot_make(const struct pool_boot_request *request, struct pool *pool,
		   const struct hvo_mode *mode)
{
	const u64 began = clock_ns();
	u64 made = 0;

	for (unsigned i = 0; i < request->nodes; i++)
		made += make_on(request, pool, mode, request->on[i].node, request->on[i].count);
	if (request->total > 0)
		made = make_pages(request, pool, mode, NODE_NONE, request->total, "");
	pool->boot = made;
	pool->boot_ns = made ? clock_ns() - began : 0;
	return made;
}

/* ---- the machine's own pools ---- */

static struct pool_boot machine;

static void show_size(const struct option *opt, char *buf, size_t size)
{
	static const char *const names[POOL_BOOT_SIZES + 1] = {
		[POOL_BOOT_2M] = "2M", [POOL_BOOT_1G] = "1G", [POOL_BOOT_SIZES] = "none"};

	format(buf, size, "%s", names[machine.size]);
}

/* Show the count for the size to which hugepages= would belong now. */
static void show_count(const struct option *opt, char *buf, size_t size)
{
	const struct pool_boot_request *request = &machine.request[machine.size % POOL_BOOT_SIZES];
	size_t at = 0;

	format(buf, size, "%llu", request->total);
	for (unsigned i = 0; i < request->nodes && at < size; i++)
		at += (size_t)format(buf + at, size - at, "%s%llu:%llu", i ? "," : "",
				     request->on[i].node, request->on[i].count);
}

OPTION(hugepagesz, .values = "2M|1G", .help = "size of the pages that hugepages= makes at boot",
       .parse = pool_boot_parse_size, .target = &machine, .show = show_size, .boot_only = true);
OPTION(hugepages,
       .values = "COUNT or NODE:COUNT,NODE:COUNT; for pages of 1G: hugepagesz=1G hugepages=COUNT",
       .help = "huge pages to make at boot, in all or per node", .parse = pool_boot_parse_count,
       .target = &machine, .show = show_count, .boot_only = true);

void pools_init(void)
{
	static struct pool_node nodes_2m[ZONES_MAX], nodes_1g[ZONES_MAX];

	pool_init(&pool_2m, &mm_kernel, BLOCK_ORDER, nodes_2m);
	pool_init(&pool_1g, &mm_kernel, GIGA_ORDER, nodes_1g);
	if (hvo_mode_selected()->born)
		pool_boot_make(&machine.request[POOL_BOOT_1G], &pool_1g, &hvo_modes[HVO_ON]);
}

void pools_make_at_boot(void)
{
	const struct hvo_mode *mode = hvo_mode_selected();

	for (unsigned size = 0; size < POOL_BOOT_SIZES; size++)
		machine.request[size].bare = mode == &hvo_modes[HVO_ON];
	if (!mode->born)
		pool_boot_make(&machine.request[POOL_BOOT_1G], &pool_1g, mode);
	pool_boot_make(&machine.request[POOL_BOOT_2M], &pool_2m, mode);
}
