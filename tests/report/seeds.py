"""The tables that were published with the five patch series: the figures, and the machines on which they were measured.

Sources, in order:
  HVO series               Kravetz, "[PATCH v3 00/12] Batch hugetlb vmemmap modification operations", 2023-09-16 (cover letter)
  memmap series            Jordan, "[PATCH v2 5/7] mm: parallelize deferred_init_memmap()", 2020-05-20
  clearing series          Arora, "[PATCH 6/9] mm/clear_huge_page: use multi-page clearing", 2023-04-03
  per-CPU list series      Weiner, "[PATCH 1/6] mm: page_alloc: remove pcppage migratetype caching", 2023-09-11
  contiguous-range series  Gorman, "[PATCH] mm: page_alloc: Assume huge tail pages are valid when allocating contiguous pages", 2023-04-14
"""

# machine, pages of 2 MiB, CPUs (0: not given); seconds (alloc, free) with HVO off and on, before and after the series
HVO = [
    ("8-socket Xeon E7-8895, bare metal", 500000, 0, (4.119, 4.477), (28.973, 36.748), (4.719, 4.245), (7.267, 13.199)),
    ("VM on 2-socket EPYC 7J13 Milan", 524288, 252, (2.463, 2.931), (147.609, 149.924), (2.715, 3.186), (4.799, 5.273)),
]

# machine, nodes, GiB per node; rows: percent of the node's CPUs, threads, kernel boot: % saved as printed, ms (sd),
# deferred init of the slowest node: % saved as printed, ms (sd). The first row, (0), is the base
MEMMAP = [
    ("Xeon 8167M, Skylake, bare metal", 2, 384, [
        (0, 0, 0.0, 4078.0, 9.0, 0.0, 1779.0, 8.7), (2, 1, 1.4, 4021.3, 2.9, 3.4, 1717.7, 7.8),
        (12, 6, 35.1, 2644.7, 35.3, 80.8, 341.0, 35.5), (25, 13, 38.7, 2498.0, 34.2, 89.1, 193.3, 32.3),
        (37, 19, 39.1, 2482.0, 25.2, 90.1, 175.3, 31.7), (50, 26, 38.8, 2495.0, 8.7, 89.1, 193.7, 3.5),
        (75, 39, 39.2, 2478.0, 21.0, 90.3, 172.7, 26.7), (100, 52, 40.0, 2448.0, 2.0, 91.9, 143.3, 1.5)]),
    ("Xeon E5-2699C v4, Broadwell, bare metal", 1, 192, [
        (0, 0, 0.0, 1996.0, 18.0, 0.0, 1104.3, 6.7), (3, 1, 1.4, 1968.0, 3.0, 2.7, 1074.7, 9.0),
        (12, 4, 40.1, 1196.0, 22.7, 72.4, 305.3, 16.8), (25, 8, 47.4, 1049.3, 17.2, 84.2, 174.0, 10.6),
        (37, 12, 48.3, 1032.0, 14.9, 86.8, 145.3, 2.5), (50, 16, 48.9, 1020.3, 2.5, 88.0, 133.0, 1.7),
        (75, 24, 49.1, 1016.3, 8.1, 88.4, 128.0, 1.7), (100, 32, 49.4, 1009.0, 8.5, 88.6, 126.3, 0.6)]),
    ("Xeon E5-2699 v3, Haswell, bare metal", 2, 128, [
        (0, 0, 0.0, 1682.7, 6.7, 0.0, 630.0, 4.6), (3, 1, 0.4, 1676.0, 2.0, 0.7, 625.3, 3.2),
        (12, 4, 25.8, 1249.0, 1.0, 68.2, 200.3, 1.2), (25, 9, 30.0, 1178.0, 5.2, 79.7, 128.0, 3.5),
        (37, 13, 30.6, 1167.7, 3.1, 81.3, 117.7, 1.2), (50, 18, 30.6, 1167.3, 2.3, 81.4, 117.0, 1.0),
        (75, 27, 31.0, 1161.3, 4.6, 82.5, 110.0, 6.9), (100, 36, 32.1, 1142.0, 3.6, 85.7, 90.0, 1.0)]),
    ("EPYC 7551, Zen, KVM guest", 1, 64, [
        (0, 0, 0.0, 1003.7, 16.6, 0.0, 243.3, 8.1), (6, 1, 1.4, 990.0, 4.6, 1.2, 240.3, 1.5),
        (12, 2, 11.4, 889.3, 16.7, 44.5, 135.0, 3.0), (25, 4, 16.8, 835.3, 9.0, 65.8, 83.3, 2.5),
        (37, 6, 18.6, 816.7, 17.6, 70.4, 72.0, 1.0), (50, 8, 18.2, 821.0, 5.0, 70.7, 71.3, 1.2),
        (75, 12, 19.0, 813.3, 5.0, 71.8, 68.7, 2.1), (100, 16, 19.8, 805.3, 10.8, 76.4, 57.3, 15.9)]),
    ("EPYC 7551, Zen, small KVM guest", 1, 16, [
        (0, 0, 0.0, 722.3, 9.5, 0.0, 50.7, 0.6), (25, 1, -3.3, 746.3, 4.7, -2.0, 51.7, 1.2),
        (50, 2, 0.2, 721.0, 11.3, 29.6, 35.7, 4.9), (75, 3, -0.3, 724.3, 11.2, 48.7, 26.0, 0.0),
        (100, 4, 3.0, 700.3, 13.6, 55.9, 22.3, 0.6)]),
    ("Xeon E5-2699 v3, Haswell, small KVM guest", 1, 14, [
        (0, 0, 0.0, 673.0, 6.9, 0.0, 57.0, 1.0), (25, 1, -0.6, 677.3, 19.8, 1.8, 56.0, 1.0),
        (50, 2, 3.4, 650.0, 3.6, 36.8, 36.0, 5.2), (75, 3, 4.2, 644.7, 7.6, 56.1, 25.0, 1.0),
        (100, 4, 5.3, 637.0, 5.6, 63.2, 21.0, 0.0)]),
]  # fmt: skip

# machine, page size, GB/s before and after: demand faults over 64 GiB, one task
CLEAR = [
    ("Icelake-X, Platinum 8358", "2M", 8.76, 11.82),
    ("Icelake-X, Platinum 8358", "1G", 8.99, 12.18),
    ("Milan, EPYC 7J13", "2M", 12.24, 17.54),
    ("Milan, EPYC 7J13", "1G", 17.98, 37.24),
]

# Events that perf counted there, over 64 GiB (32768 pages of 2 MiB, 64 of 1 GiB), of user and kernel, multiplexed: before, after. "seconds": elapsed.
# On Icelake-X "L1-dcache-load-misses" are lines brought to L1D; on Milan "dTLB-loads" are misses of its first level.
CLEAR_COUNTED = {
    ("Icelake-X, Platinum 8358", "2M"): (
        {"seconds": 7.31681, "cycles": 56513364885, "instructions": 2583719806, "branches": 585212952, "branch_misses": 562164,
         "l1d_loads": 701951397, "l1d_misses": 3239403770, "llc_loads": 11475685, "llc_misses": 793272,
         "dtlb_loads": 693339354, "dtlb_misses": 637811},
        {"seconds": 5.42697, "cycles": 41906597608, "instructions": 729479932, "branches": 133969095, "branch_misses": 412818,
         "l1d_loads": 194318641, "l1d_misses": 3238878229, "llc_loads": 10560508, "llc_misses": 724884,
         "dtlb_loads": 185562230, "dtlb_misses": 617978}),
    ("Icelake-X, Platinum 8358", "1G"): (
        {"seconds": 7.12187, "cycles": 54981958487, "instructions": 2012625953, "branches": 470264509, "branch_misses": 194801,
         "l1d_loads": 532232051, "l1d_misses": 3224574249, "llc_loads": 2318195, "llc_misses": 206737,
         "dtlb_loads": 531299560, "dtlb_misses": 2811},
        {"seconds": 5.25624, "cycles": 40560984582, "instructions": 79578792, "branches": 13872134, "branch_misses": 119492,
         "l1d_loads": 22587703, "l1d_misses": 3223143697, "llc_loads": 1777675, "llc_misses": 126583,
         "dtlb_loads": 19999517, "dtlb_misses": 1833}),
    ("Milan, EPYC 7J13", "2M"): (
        {"seconds": 5.23915, "cycles": 12730694768, "instructions": 874896010, "branches": 199308386, "branch_misses": 441428,
         "l1d_loads": 2495566569, "l1d_misses": 1079711798, "dtlb_loads": 546596, "dtlb_misses": 231897},
        {"seconds": 3.66065, "cycles": 8879727514, "instructions": 214672610, "branches": 42298268, "branch_misses": 267936,
         "l1d_loads": 2235310058, "l1d_misses": 1089602355, "dtlb_loads": 280655, "dtlb_misses": 151028}),
    ("Milan, EPYC 7J13", "1G"): (
        {"seconds": 3.55776, "cycles": 8609810964, "instructions": 658146061, "branches": 154867131, "branch_misses": 167531,
         "l1d_loads": 2417846489, "l1d_misses": 1075531869, "dtlb_loads": 23287, "dtlb_misses": 1333},
        {"seconds": 1.72042, "cycles": 4176107493, "instructions": 12779784, "branches": 2428829, "branch_misses": 63460,
         "l1d_loads": 31159378, "l1d_misses": 14692358, "dtlb_loads": 6114, "dtlb_misses": 1742}),
}  # fmt: skip
CLEAR_REGION = 64 << 30

# perf stat of batches of 10,000 pages, as printed: row, before, after, each with its error
PCP = [
    ("msec task-clock", ("8,668.48", "2.90%"), ("8,444.81", "2.90%")),
    ("context-switches", ("19", "3.24%"), ("22", "3.23%")),
    ("cpu-migrations", ("0", "0.00%"), ("0", "0.00%")),
    ("page-faults", ("17,440", "2.90%"), ("17,443", "2.90%")),
    ("cycles", ("41,758,692,473", "2.90%"), ("40,616,738,355", "2.90%")),
    ("instructions", ("126,201,294,231", "2.90%"), ("126,383,351,792", "2.90%")),
    ("branches", ("25,348,098,335", "2.90%"), ("25,224,985,153", "2.90%")),
    ("branch-misses", ("33,436,921", "2.90%"), ("32,236,793", "2.90%")),
    ("seconds time elapsed", ("0.0869148", "0.0000302"), ("0.0846799", "0.0000412")),
]

# will-it-scale.1.processes of page_fault1, and perf-profile.children.get_pfnblock_flags_mask, each with its +-; from the thread, 2023-09-30
PAGE_FAULT1 = [
    ("base", 618621.7, "0.18%", 0.15, "32.62%"),
    ("remove pcppage migratetype caching", 616350.3, "0.27%", 0.40, "21.55%"),
    ("fix up block types when merging compatible blocks", 617121.0, "0.17%", 0.36, "8.36%"),
    ("move free pages when converting block during isolation", 615578.0, "0.18%", 0.36, "15.10%"),
    ("fix move_freepages_block() range error", 615364.7, "0.27%", 0.36, "12.78%"),
    ("fix freelist movement during block conversion", 617834.8, "0.52%", 0.36, "10.52%"),
    ("consolidate free page accounting", 621000.0, "0.13%", 0.39, "8.27%"),
    ("close migratetype race between freeing and stealing", 618378.8, "0.17%", 0.37, "5.87%"),
    ("optimize free_unref_page_list()", 618136.3, "0.16%", 0.20, "14.96%"),
]

# hpagealloc, ms for a page in batches of ten: row, key of our record; vanilla, reverted, fixed, each with the percent it saves as printed
CONTIG = [
    ("Min", "ns_p0", (26.42, 0.00), (5.07, 80.82), (20.30, 23.19)),
    ("1st-qrtle", "ns_p25", (356.61, 0.00), (5.34, 98.50), (20.57, 94.23)),
    ("2nd-qrtle", "ns_p50", (697.26, 0.00), (5.47, 99.22), (20.84, 97.01)),
    ("3rd-qrtle", "ns_p75", (972.94, 0.00), (5.50, 99.43), (21.16, 97.83)),
    ("Max-1", "ns_p1", (26.42, 0.00), (5.07, 80.82), (20.30, 23.19)),
    ("Max-5", "ns_p5", (82.14, 0.00), (5.11, 93.78), (20.49, 75.05)),
    ("Max-10", "ns_p10", (150.54, 0.00), (5.20, 96.55), (20.52, 86.37)),
    ("Max-90", "ns_p90", (1164.45, 0.00), (5.53, 99.52), (21.20, 98.18)),
    ("Max-95", "ns_p95", (1223.06, 0.00), (5.55, 99.55), (21.22, 98.26)),
    ("Max-99", "ns_p99", (1278.67, 0.00), (5.57, 99.56), (22.81, 98.22)),
    ("Max", "ns_p100", (1310.90, 0.00), (8.06, 99.39), (24.87, 98.10)),
    ("Amean", "ns_mean", (678.36, 0.00), (5.44, 99.20), (20.93, 96.91)),
]

# Seconds of that test as a whole
CONTIG_DURATION = [
    ("Duration User", 0.28, 0.27, 0.27),
    ("Duration System", 808.66, 17.77, 36.63),
    ("Duration Elapsed", 830.87, 18.08, 36.95),
]
