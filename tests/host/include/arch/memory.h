/*
 * The address space of the hosted machine. "Physical memory" is a memfd, mapped whole as the direct
 * map; the vmemmap windows and the vmap region are reserved ranges of this process.
 *
 * Their addresses are fixed. They lie below the lowest addresses at which Linux puts libraries and
 * stacks (28 bits of pages below 128 TiB), outside those that it gives to this process's image and
 * heap (28 bits of pages from 0x555555554000 on, and a GiB), and inside the ranges that the
 * sanitizers of gcc 12 leave to applications.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * The thread and memory sanitizers leave applications two small pieces of the address space. The
 * other builds have room for the machines that are replayed. REGIONS_BASE is above all addresses of
 * programs, and below all regions.
 */
#if (defined(__SANITIZE_THREAD__) && !defined(HOST_EXPLORE)) || defined(__SANITIZE_MEMORY__)
#define REGIONS_BASE        0x7e0000000000ULL
#define DIRECT_MAP_BASE     0x7eb000000000ULL
#define DIRECT_MAP_SIZE     GIB(256)
#define VMEMMAP_BASE        0x7ea000000000ULL
#define VMEMMAP_WINDOW_SIZE GIB(16)
#else
#define REGIONS_BASE        0x200000000000ULL
#define DIRECT_MAP_BASE     REGIONS_BASE
#define DIRECT_MAP_SIZE     TIB(32)
#define VMEMMAP_BASE        0x410000000000ULL
#define VMEMMAP_WINDOW_SIZE GIB(512)
#endif
#define VMEMMAP_WINDOWS 4
#define VMALLOC_BASE    0x7e9000000000ULL
#define VMALLOC_SIZE    GIB(32)
#define HUGE_MAP_BASE   0x7e8000000000ULL
#define HUGE_MAP_SIZE   GIB(64)
#define IMAGE_BASE      0xffffffff80000000ULL

/*
 * Limit of what one window describes, with 64 bytes per 4 KiB; at most the direct map's size of it
 * is RAM.
 */
#define PHYS_LIMIT       (VMEMMAP_WINDOW_SIZE / 64 * PAGE_SIZE)
#define EARLY_PHYS_LIMIT GIB(4)

static inline bool phys_is_possible(phys_t phys, u64 size)
{
	return phys < 1ULL << 52 && size <= (1ULL << 52) - phys;
}

static inline void *phys_to_virt(phys_t phys)
{
	return (void *)(DIRECT_MAP_BASE + phys);
}

static inline phys_t virt_to_phys(const void *virt)
{
	return (phys_t)(virt_t)virt - DIRECT_MAP_BASE;
}
