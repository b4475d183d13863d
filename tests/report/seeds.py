"""The tables that were published with the five patch series: figures, and on what they were measured.

Sources, in order:
  S0  Kravetz, "[PATCH v3 00/12] Batch hugetlb vmemmap modification operations", 2023-09-16 (cover letter)
  S1  Jordan, "[PATCH v2 5/7] mm: parallelize deferred_init_memmap()", 2020-05-20
  S2  Arora, "[PATCH 6/9] mm/clear_huge_page: use multi-page clearing", 2023-04-03
  S3  Weiner, "[PATCH 1/6] mm: page_alloc: remove pcppage migratetype caching", 2023-09-11
  S4  Gorman, "[PATCH] mm: page_alloc: Assume huge tail pages are valid when allocating contiguous pages", 2023-04-14
"""

# machine, pages of 2 MiB, CPUs (0: not given); seconds (alloc, free) with HVO off and on, before and after the series
HVO = [
    ("8-socket Xeon E7-8895, bare metal", 500000, 0, (4.119, 4.477), (28.973, 36.748), (4.719, 4.245), (7.267, 13.199)),
    ("VM on 2-socket EPYC 7J13 Milan", 524288, 252, (2.463, 2.931), (147.609, 149.924), (2.715, 3.186), (4.799, 5.273)),
]

# machine, nodes, GiB per node; rows: percent of the node's CPUs, threads, boot ms (sd), init ms (sd) of the slowest node
MEMMAP = [
    ("Xeon 8167M, Skylake, bare metal", 2, 384, [
        (0, 0, 4078.0, 9.0, 1779.0, 8.7), (2, 1, 4021.3, 2.9, 1717.7, 7.8), (12, 6, 2644.7, 35.3, 341.0, 35.5),
        (25, 13, 2498.0, 34.2, 193.3, 32.3), (37, 19, 2482.0, 25.2, 175.3, 31.7), (50, 26, 2495.0, 8.7, 193.7, 3.5),
        (75, 39, 2478.0, 21.0, 172.7, 26.7), (100, 52, 2448.0, 2.0, 143.3, 1.5)]),
    ("Xeon E5-2699C v4, Broadwell, bare metal", 1, 192, [
        (0, 0, 1996.0, 18.0, 1104.3, 6.7), (3, 1, 1968.0, 3.0, 1074.7, 9.0), (12, 4, 1196.0, 22.7, 305.3, 16.8),
        (25, 8, 1049.3, 17.2, 174.0, 10.6), (37, 12, 1032.0, 14.9, 145.3, 2.5), (50, 16, 1020.3, 2.5, 133.0, 1.7),
        (75, 24, 1016.3, 8.1, 128.0, 1.7), (100, 32, 1009.0, 8.5, 126.3, 0.6)]),
    ("Xeon E5-2699 v3, Haswell, bare metal", 2, 128, [
        (0, 0, 1682.7, 6.7, 630.0, 4.6), (3, 1, 1676.0, 2.0, 625.3, 3.2), (12, 4, 1249.0, 1.0, 200.3, 1.2),
        (25, 9, 1178.0, 5.2, 128.0, 3.5), (37, 13, 1167.7, 3.1, 117.7, 1.2), (50, 18, 1167.3, 2.3, 117.0, 1.0),
        (75, 27, 1161.3, 4.6, 110.0, 6.9), (100, 36, 1142.0, 3.6, 90.0, 1.0)]),
    ("EPYC 7551, Zen, KVM guest", 1, 64, [
        (0, 0, 1003.7, 16.6, 243.3, 8.1), (6, 1, 990.0, 4.6, 240.3, 1.5), (12, 2, 889.3, 16.7, 135.0, 3.0),
        (25, 4, 835.3, 9.0, 83.3, 2.5), (37, 6, 816.7, 17.6, 72.0, 1.0), (50, 8, 821.0, 5.0, 71.3, 1.2),
        (75, 12, 813.3, 5.0, 68.7, 2.1), (100, 16, 805.3, 10.8, 57.3, 15.9)]),
    ("EPYC 7551, Zen, small KVM guest", 1, 16, [
        (0, 0, 722.3, 9.5, 50.7, 0.6), (25, 1, 746.3, 4.7, 51.7, 1.2), (50, 2, 721.0, 11.3, 35.7, 4.9),
        (75, 3, 724.3, 11.2, 26.0, 0.0), (100, 4, 700.3, 13.6, 22.3, 0.6)]),
    ("Xeon E5-2699 v3, Haswell, small KVM guest", 1, 14, [
        (0, 0, 673.0, 6.9, 57.0, 1.0), (25, 1, 677.3, 19.8, 56.0, 1.0), (50, 2, 650.0, 3.6, 36.0, 5.2),
        (75, 3, 644.7, 7.6, 25.0, 1.0), (100, 4, 637.0, 5.6, 21.0, 0.0)]),
]  # fmt: skip

# machine, page size, GB/s before and after: demand faults over 64 GiB, one task
CLEAR = [
    ("Icelake-X, Platinum 8358", "2M", 8.76, 11.82),
    ("Icelake-X, Platinum 8358", "1G", 8.99, 12.18),
    ("Milan, EPYC 7J13", "2M", 12.24, 17.54),
    ("Milan, EPYC 7J13", "1G", 17.98, 37.24),
]

# ms for a batch of 10,000 pages allocated and freed, with their standard errors; before and after
PCP = ((86.9148, 0.0302), (84.6799, 0.0412))

# ms for each 1 GiB page: name, vanilla, with the check reverted, with the fix
CONTIG = [
    ("Min", 26.42, 5.07, 20.30),
    ("1st quartile", 356.61, 5.34, 20.57),
    ("Median", 697.26, 5.47, 20.84),
    ("3rd quartile", 972.94, 5.50, 21.16),
    ("90 %", 1164.45, 5.53, 21.20),
    ("95 %", 1223.06, 5.55, 21.22),
    ("99 %", 1278.67, 5.57, 22.81),
    ("Max", 1310.90, 8.06, 24.87),
    ("Mean", 678.36, 5.44, 20.93),
]
