/*
 * Choice of the clearing instruction: the last of the table that this CPU supports, or what clear_insn= names.
 *
 * Non-temporal ways stand first although they may be faster for large extents: they leave nothing in the cache for the
 * user who touches the page next, so they are chosen by name only or by a benchmark's hint (Arora, "mm/clear_huge_page:
 * use multi-page clearing", 2023-04, weighs the same).
 */
#include <arch/clear.h>

#include "arch/x86_64/cpu.h"
#include "kernel/cmdline.h"
#include "kernel/printk.h"
#include "kernel/string.h"

void clear_orig(void *addr, size_t bytes);
void clear_rep(void *addr, size_t bytes);
void clear_erms(void *addr, size_t bytes);
void clear_clzero(void *addr, size_t bytes);
void clear_nt(void *addr, size_t bytes);

static bool always(void)
{
	return true;
}

static bool has_clzero(void)
{
	return cpu_features.clzero;
}

static bool has_erms(void)
{
	return cpu_features.erms;
}

const struct clear_insn clear_insns[] = {
	{"nt", clear_nt, always},   {"clzero", clear_clzero, has_clzero}, {"orig", clear_orig, always},
	{"rep", clear_rep, always}, {"erms", clear_erms, has_erms},       {NULL, NULL, NULL},
};

static const struct clear_insn *selected;

static int clear_insn_parse(const struct option *opt, const char *value)
{
	(void)opt;
	for (const struct clear_insn *insn = clear_insns; insn->name; insn++) {
		if (strcmp(insn->name, value) != 0)
			continue;
		if (!insn->supported())
			return -ERANGE;
		selected = insn;
		return 0;
	}
	return -EINVAL;
}

static void clear_insn_show(const struct option *opt, char *buf, size_t size)
{
	(void)opt;
	format(buf, size, "%s", clear_insn_selected()->name);
}

OPTION(clear_insn, .values = "orig|rep|erms|clzero|nt", .help = "how memory is cleared (default: by CPUID)",
       .parse = clear_insn_parse, .show = clear_insn_show);

const struct clear_insn *clear_insn_selected(void)
{
	if (!selected) { /* racing CPUs choose the same */
		for (const struct clear_insn *insn = clear_insns; insn->name; insn++) {
			if (insn->supported())
				selected = insn;
		}
	}
	return selected;
}

void clear_pages(void *addr, size_t count)
{
	clear_insn_selected()->clear(addr, count << PAGE_SHIFT);
}
