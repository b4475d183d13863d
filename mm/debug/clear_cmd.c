/*
 * Monitor command that clears a huge page in every available way and prints the speed of each. It
 * makes one run on one page for each way, a quick look and not a measurement (that is `bench
 * clear`).
 */
#include <arch/clock.h>

#include "kernel/console/command.h"
#include "kernel/console/input.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/clear/clear.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"

#define DIRT 0x5555555555555555ULL

/* Returns false if a word that was dirty before is not zero now. */
static bool clear_and_check(const struct clear_how *how, u64 *memory, u64 bytes, u64 *ns)
{
	const u64 step = PAGE_SIZE / sizeof(u64);
	bool ok = true;

	for (u64 i = 0; i < bytes / sizeof(u64); i += step)
		memory[i] = memory[i + step - 1] = DIRT;
	*ns = clock_ns();
	clear_huge(how, memory, bytes, CLEAR_NO_HINT, this_cpu()->node);
	*ns = clock_ns() - *ns;
	for (u64 i = 0; i < bytes / sizeof(u64); i += step)
		ok &= memory[i] == 0 && memory[i + step - 1] == 0;
	return ok;
}

static bool print_way(const struct clear_mode *mode, const struct clear_insn *insn, u64 *memory,
		      u64 bytes)
{
	const struct clear_how selected = clear_how_selected();
	const bool in_use = selected.mode == mode && selected.insn[clear_class_of(bytes)] == insn;
	struct clear_how how = selected;
	u64 ns;
	bool ok;

	how.mode = mode;
	for (unsigned class = 0; class < CLEAR_CLASSES; class ++)
		how.insn[class] = insn;
	ok = clear_and_check(&how, memory, bytes, &ns);
	print("  %s %-6s %-7s %8llu.%03llu us %8llu MB/s%s\n", in_use ? "*" : " ", mode->name,
	      insn->name, ns / NS_PER_US, ns % NS_PER_US, bytes * 1000 / MAX(ns, 1),
	      ok ? "" : "  NOT CLEARED");
	return ok;
}

static int cmd_clear(const struct words *words)
{
	const int which =
		words_plain_count(words) > 1 ? cmd_choice(words, 1, "page size", "2M|1G") : 0;
	struct page *page;
	bool ok = true;

	if (which < 0)
		return which;
	page = page_alloc(which ? GIGA_ORDER : BLOCK_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	if (!page) {
		print("clear: no page of this size is free\n");
		return -ENOMEM;
	}
	for (const struct clear_mode *mode = clear_modes; mode->name; mode++)
		for (const struct clear_insn *insn = clear_insns; insn->name && !input_stop_asked();
		     insn++)
			if (insn->supported())
				ok &= print_way(mode, insn, page_address(page),
						which ? GIB(1) : MIB(2));
	page_free(page);
	return ok ? 0 : -EIO;
}

static bool clear_candidate(const struct words *words, unsigned at, unsigned n, char *buf,
			    size_t size)
{
	(void)words;
	return at == 1 && choice_name("2M|1G", n, buf, size);
}

COMMAND(clear, .usage = "[SIZE]",
	.help = "clear a page of 2M or 1G in every way; * marks the way in use", .max = 1,
	.run = cmd_clear, .candidate = clear_candidate);
