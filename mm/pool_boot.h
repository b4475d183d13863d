/*
 * Pools made at boot, while memory is in one piece:
 *
 *   hugepages=100                              100 pages of 2 MiB, in equal shares from all nodes
 *   hugepages=0:100,1:50                       so many from each node
 *   hugepagesz=1G hugepages=2 hugepagesz=2M hugepages=100 overcommit=16
 *
 * As in Linux ("HugeTLB Pages", Documentation/admin-guide/mm/hugetlbpage), hugepages= belongs to the hugepagesz=
 * before it, and so does overcommit=, 2 MiB at first. Where that size does not exist, the counts that follow it are refused and not given to
 * another size. The last word for a size counts.
 */
#pragma once

#include "mm/pool.h"

enum { POOL_BOOT_2M, POOL_BOOT_1G, POOL_BOOT_SIZES, POOL_BOOT_NODES = 64 };

/* What was asked for one size: `total` from anywhere, or `count` pages each from `nodes` nodes, which may not exist. */
struct pool_boot_request {
	u64 total;
	unsigned nodes;
	struct {
		u64 node, count;
	} on[POOL_BOOT_NODES];
};

struct pool_boot {
	unsigned size; /* that hugepages= belongs to now; POOL_BOOT_SIZES: none */
	struct pool_boot_request request[POOL_BOOT_SIZES];
	u64 overcommit[POOL_BOOT_SIZES];
};

/* Pure: values of the options, terminated. 0; -EINVAL or -ERANGE with `boot`'s requests unchanged. */
int pool_boot_parse_size(struct pool_boot *boot, const char *value);
int pool_boot_parse_count(struct pool_boot *boot, const char *value);
int pool_boot_parse_overcommit(struct pool_boot *boot, const char *value);

/* Make what was asked, as far as nodes exist and memory reaches; what could not be is said. Returns how many pages. */
u64 pool_boot_make(const struct pool_boot_request *request, struct pool *pool, const struct hvo_mode *mode);

/* Start-up: the machine's pools, empty or as the command line says. All CPUs online, page_alloc() works. */
void pools_init(void);
