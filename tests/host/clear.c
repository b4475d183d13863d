/*
 * Clearing memory, hosted: the variants that every x86-64 CPU has, and non-temporal stores; clzero only where the
 * processor can. Baselines are table entries, as in the kernel.
 */
#include <stdbool.h>
#include <string.h>

#include <arch/barrier.h>
#include <arch/clear.h>

#include "kernel/cmdline.h"

static bool always(void)
{
	return true;
}

static void clear_loop(void *addr, size_t bytes)
{
	u64 *p = addr;

	for (size_t i = 0; i < bytes / 8; i++) {
		p[i] = 0;
		fence_compiler(); /* stay a loop */
	}
}

static void clear_rep(void *addr, size_t bytes)
{
	bytes /= 8;
	__asm__ volatile("rep stosq" : "+D"(addr), "+c"(bytes) : "a"(0) : "memory");
}

static void clear_erms(void *addr, size_t bytes)
{
	__asm__ volatile("rep stosb" : "+D"(addr), "+c"(bytes) : "a"(0) : "memory");
}

static void clear_nt(void *addr, size_t bytes)
{
	for (u64 *p = addr, *end = p + bytes / 8; p < end; p++)
		__asm__ volatile("movnti %1, %0" : "=m"(*p) : "r"(0ULL));
	fence_store_nt();
}

const struct clear_insn clear_insns[] = {
	{.name = "orig", .clear = clear_loop, .supported = always},
	{.name = "nt", .clear = clear_nt, .supported = always},
	{.name = "erms", .clear = clear_erms, .supported = always},
	{.name = "rep", .clear = clear_rep, .supported = always},
	{.name = NULL},
};

static const char *forced;
OPTION_TEXT(clear_insn, forced, "how memory is cleared: orig, nt, erms or rep");

const struct clear_insn *clear_insn_selected(void)
{
	const struct clear_insn *insn = clear_insns;

	for (; insn[1].name; insn++) {
		if (forced && strcmp(insn->name, forced) == 0)
			break;
	}
	return insn;
}

/* The sanitizers see one access to the whole extent, so that a clear beyond it, or in a race, is reported. */
void clear_pages(void *addr, size_t count)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	memset(addr, 0, count * PAGE_SIZE);
#else
	clear_insn_selected()->clear(addr, count * PAGE_SIZE);
#endif
}
