/*
 * Pools made at boot, while memory is in one piece:
 *
 *   hugepages=100                              100 pages of 2 MiB, in equal shares from all nodes
 *   hugepages=0:100,1:50                       so many from each node
 *   hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=100
 *
 * With hvo=on, pages of free blocks without struct pages stay bare until they are taken (pool.h).
 *
 * As in Linux ("HugeTLB Pages", Documentation/admin-guide/mm/hugetlbpage), hugepages=
 * belongs to the hugepagesz= before it, and to 2 MiB if there is none. If that size does not exist,
 * the counts that follow it are refused, not given to another size. The last value for a size wins.
 */
#pragma once

#include "kernel/core/option.h"
#include "mm/hugetlb/pool.h"

enum { POOL_BOOT_2M, POOL_BOOT_1G, POOL_BOOT_SIZES, POOL_BOOT_NODES = 64 };

/*
 * A request for one size: either `total` pages from any node, or `count` pages from each of `nodes`
 * nodes, some of which may not exist.
 */
struct pool_boot_request {
	u64 total;
	bool bare; /* its pages stay bare as far as there are bare blocks */
	unsigned nodes;
	struct {
		u64 node, count;
	} on[POOL_BOOT_NODES];
};

struct pool_boot {
	unsigned size; /* the size to which hugepages= belongs now; POOL_BOOT_SIZES: none */
	struct pool_boot_request request[POOL_BOOT_SIZES];
};

/*
 * Parse the value of an option whose target is a struct pool_boot, and touch nothing else. Return
 * 0, or -EINVAL or -ERANGE with its requests unchanged.
 */
int pool_boot_parse_size(const struct option *opt, const char *value);
int pool_boot_parse_count(const struct option *opt, const char *value);

/*
 * Make the pages requested, as far as the nodes exist and memory suffices; the log says
 * which could not be had. Returns how many pages the pool got.
 */
u64 pool_boot_make(const struct pool_boot_request *request, struct pool *pool,
		   const struct hvo_mode *mode);

/*
 * Start-up, all CPUs online.
 *
 * pools_init() runs before the memmap is made and leaves the machine's pools empty. With
 * hvo=preinit, however, it makes the 1 GiB pages of the command line now, in memory that gets no
 * other struct pages (Linux since 6.15: van der Linden, "hugetlb/CMA improvements for large
 * systems", 2025-02; where the zones are known before: Shutsemau, 2026-02, 9/18).
 *
 * pools_make_at_boot() runs once page_alloc() works and makes the rest.
 */
void pools_init(void);
void pools_make_at_boot(void);
