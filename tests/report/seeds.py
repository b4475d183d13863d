"""The tables that were published with the five patch series, as seeds.json has them: the figures, and the machines on which they were measured.

Sources, in order:
  HVO series               Kravetz, "[PATCH v3 00/12] Batch hugetlb vmemmap modification operations", 2023-09-16 (cover letter)
  memmap series            Jordan, "[PATCH v2 5/7] mm: parallelize deferred_init_memmap()", 2020-05-20
  clearing series          Arora, "[PATCH 6/9] mm/clear_huge_page: use multi-page clearing", 2023-04-03
  per-CPU list series      Weiner, "[PATCH 1/6] mm: page_alloc: remove pcppage migratetype caching", 2023-09-11
  contiguous-range series  Gorman, "[PATCH] mm: page_alloc: Assume huge tail pages are valid when allocating contiguous pages", 2023-04-14
"""

import json
from pathlib import Path

TABLES = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))

# machine, pages of 2 MiB, CPUs (0: not given); seconds (alloc, free) with HVO off and on, before and after the series
HVO = TABLES["HVO"]

# machine, nodes, GiB per node; rows: percent of the node's CPUs, threads, kernel boot: % saved as printed, ms (sd),
# deferred init of the slowest node: % saved as printed, ms (sd). The first row, (0), is the base
MEMMAP = TABLES["MEMMAP"]

# machine, page size, GB/s before and after: demand faults over 64 GiB, one task
CLEAR = TABLES["CLEAR"]

# Machine, page size, and the events that perf counted there, over 64 GiB (32768 pages of 2 MiB, 64 of 1 GiB), of user and kernel, multiplexed:
# before, after. "seconds": elapsed. On Icelake-X "L1-dcache-load-misses" are lines brought to L1D; on Milan "dTLB-loads" are misses of its
# first level.
CLEAR_COUNTED, CLEAR_REGION = TABLES["CLEAR_COUNTED"], 64 << 30

# perf stat of batches of 10,000 pages, as printed: row, before, after, each with its error
PCP = TABLES["PCP"]

# will-it-scale.1.processes of page_fault1, and perf-profile.children.get_pfnblock_flags_mask, each with its +-; from the thread, 2023-09-30
PAGE_FAULT1 = TABLES["PAGE_FAULT1"]

# hpagealloc, ms for a page in batches of ten: row, key of our record; vanilla, reverted, fixed, each with the percent it saves as printed
CONTIG = TABLES["CONTIG"]

# Seconds of that test as a whole
CONTIG_DURATION = TABLES["CONTIG_DURATION"]
