/*
 * Choice of the clearing instruction for each class of sizes, by CPUID or by clear.insn=.
 *
 *   small   Memory that its user reads next. It comes from lists on which the last page in is the
 *           first out, so it is often in the cache already. rep stosb where it is fast, else rep
 *           stosq unless strings are slow, else the loop.
 *   large   Huge pages. They are streamed past the caches, which they would only flush, and no line
 *           is read before it is overwritten. CLZERO where the CPU has it (AMD and Hygon since Zen
 *           1), which writes a line with one instruction, else MOVNTI, which takes eight.
 *   giant   As large, with one exception: where CLZERO is hidden from a guest on AMD's Zen 3 and
 *           later, one rep stosb of 32 MiB and more elides line allocation by itself (Arora,
 *           "mm/clear_huge_page: use multi-page clearing", 2023-04: 18 to 37 GB/s on Milan).
 *
 * The part of a huge page around a fault is small again (mm/clear/clear.c), because the user
 * touches it next.
 *
 * Measured, hosted, on AMD EPYC family 1Ah model 2 (Zen 5), GB/s of clzero : nt : rep stosb for 2
 * MiB: 56-72 : 38-47 : 35-40 (`make bench WHAT=native`). On Milan clzero was not measured. `make
 * bench-native` fails where the rule's choice is more than 5% slower than the best.
 */
#include <arch/atomic.h>
#include <arch/clear.h>

#include "arch/x86_64/clear/clear.h"
#include "arch/x86_64/cpu/cpu.h"
#include "kernel/core/cmdline.h"
#include "kernel/lib/string.h"

void clear_orig(void *addr, size_t bytes);
void clear_rep(void *addr, size_t bytes);
void clear_erms(void *addr, size_t bytes);
void clear_clzero(void *addr, size_t bytes);
void clear_nt(void *addr, size_t bytes);

enum { INSN_ORIG, INSN_REP, INSN_ERMS, INSN_CLZERO, INSN_NT };

const struct clear_insn clear_insns[] = {
	[INSN_ORIG] = {"orig", clear_orig, NULL},
	[INSN_REP] = {"rep", clear_rep, NULL},
	[INSN_ERMS] = {"erms", clear_erms, &cpu_features.erms},
	[INSN_CLZERO] = {"clzero", clear_clzero, &cpu_features.clzero},
	[INSN_NT] = {"nt", clear_nt, NULL},
	{NULL, NULL, NULL},
};

static unsigned forced; /* 0: none; else a row, counted from 1 */

const struct clear_insn *clear_insns_now[CLEAR_CLASSES] = {
	&clear_insns[INSN_REP], &clear_insns[INSN_REP], &clear_insns[INSN_REP]};

static int clear_insn_parse(const struct option *opt, const char *value)
{
	struct option to_row = *opt;
	unsigned row = 0;
	int err;

	to_row.target = &row; /* CPUs may clear meanwhile, so a row is stored once it is allowed */
	err = option_parse_choice(&to_row, value);
	if (err)
		return err;
	if (row && !clear_insn_supported(&clear_insns[row - 1]))
		return -ERANGE;
	forced = row;
	clear_insns_choose();
	return 0;
}

OPTION(clear.insn, .values = "auto", .rows = clear_insns, .row_bytes = sizeof(clear_insns[0]),
       .parse = clear_insn_parse, .target = &forced,
       .help = "how memory is cleared (auto: by CPUID and size)");

enum clear_class clear_class_of(u64 bytes)
{
	if (bytes > CLEAR_GIANT_ABOVE)
		return CLEAR_GIANT;
	return bytes >= CLEAR_LARGE_FROM ? CLEAR_LARGE : CLEAR_SMALL;
}

const struct clear_insn *clear_insn_rule(const struct cpu_features *cpu, enum clear_class class)
{
	if (class == CLEAR_SMALL && cpu->erms)
		return &clear_insns[INSN_ERMS];
	if (class == CLEAR_SMALL)
		return &clear_insns[cpu->slow_strings ? INSN_ORIG : INSN_REP];
	if (cpu->clzero)
		return &clear_insns[INSN_CLZERO];
	if (class == CLEAR_GIANT && cpu->erms && strcmp(cpu->vendor, "AuthenticAMD") == 0)
		return &clear_insns[INSN_ERMS];
	return &clear_insns[INSN_NT];
}

const struct clear_insn *clear_insn_by_cpuid(enum clear_class class)
{
	return clear_insn_rule(&cpu_features, class);
}

void clear_insns_choose(void)
{
	for (unsigned class = 0; class < CLEAR_CLASSES; class ++)
		atomic_store_relaxed(&clear_insns_now[class], forced ? &clear_insns[forced - 1]
								     : clear_insn_by_cpuid(class));
}

void clear_pages(void *addr, size_t count)
{
	const u64 bytes = (u64)count << PAGE_SHIFT;

	clear_with(clear_insn_selected(clear_class_of(bytes)), addr, bytes);
}
