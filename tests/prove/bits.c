/* Work on bits: words of records, orders, entries of page tables, runs in maps. */
#include "tests/prove/prove.h"

#include "kernel/lib/cpumask.h"
#include "mm/memmap/block.c"
#include "mm/page/pcp.c"
#include "mm/vm/entry.h"

cpu_t cpu_count = 1;
size_t cpumask_words = 3;

PROVE(block_word, "3", "a-flag-cleared-takes-its-neighbours", "any record, any change")
{
	const u64 was = ANY(u64), clear = ANY(u64), set = ANY(u64);
	const s64 frames = (s64)ANY(u32) - (1LL << 31);
	const u8 flags = ANY(u8);
	struct block block = {.word = was};
	struct block_word word = block_word_of(was), is;

	prove(block_word_bits(word) == was && block_look(&block).flags == word.flags);
	block_change(&block, block_word_of(clear), block_word_of(set));
	prove(block.word == ((was & ~clear) | set));
	block_put(&block, word);
	block_clear_flags(&block, flags);
	is = block_look(&block);
	prove(is.flags == (word.flags & ~flags));
	is.flags = word.flags;
	prove(block_word_bits(is) == was);
	block_set_flags(&block, flags);
	prove(block_look(&block).flags == (word.flags | flags));
	block_put(&block, word);
	block_count_free(&block, word, frames);
	is = block_look(&block);
	prove(is.free_pages == (u16)(word.free_pages + frames));
	is.free_pages = word.free_pages;
	prove(block_word_bits(is) == was);
	prove(type_list(word.type) <= MIGRATE_LISTS ||
	      (word.type & BLOCK_TYPE_MASK) > MIGRATE_LISTS);
}

PROVE(orders, "3", "rounded-up-too-far", "any number, any power of two")
{
	const u64 x = ANY(u64), a = 1ULL << ANY_BELOW(u32, 64), y = ANY(u64);
	const u32 index = ANY(u32);
	const unsigned order = BLOCK_ORDER + ANY_BELOW(unsigned, BLOCK_ORDERS);

	prove(ALIGN_DOWN(x, a) <= x && x - ALIGN_DOWN(x, a) < a && ALIGN_DOWN(x, a) % a == 0);
	prove(IS_ALIGNED(x, a) == (x % a == 0));
	prove(x > ~0ULL - (a - 1) ? ALIGN_UP(x, a) == 0
				  : ALIGN_UP(x, a) >= x && ALIGN_UP(x, a) - x < a);
	prove(MIN(x, y) <= x && MIN(x, y) <= y && MAX(x, y) >= x && MAX(x, y) >= y);
	prove(saturating_sub(x, y) == (x > y ? x - y : 0));
	prove(order_pages(order) == (u64)order_blocks(order) * BLOCK_FRAMES);
	prove(block_pfn(index) >> BLOCK_ORDER == index);
	prove(!phys_is_possible(x, y) || (x + y >= x && x + y <= 1ULL << 52));
	prove(head_mask_of(order) == ~((u64)order_blocks(order) * BLOCK_FRAMES * 64 - 1));
}

PROVE(entries, "3", "the-frame-has-a-bit-less", "any frame, level and rights")
{
	const pfn_t pfn = ANY_BELOW(u64, 1ULL << 40);
	const enum pt_level level = ANY_BELOW(u32, PT_PGD);
	const enum pt_prot prot = ANY_BELOW(u32, PT_WRITE_COMBINING + 1);
	const unsigned rights = ANY_BELOW(unsigned, 8);
	const pte_t made = pte_make(pfn, level, prot), user = pte_make_user(pfn, level, rights),
		    table = pte_make_table_user(pfn);
	const struct space space = {.user = ANY_BOOL};
	const pte_t entry = entry_make(&space, pfn, level, rights);
	pte_t slot = ANY(pte_t);
	const pte_t was = slot;

	prove(pte_pfn(made) == pfn && pte_is_leaf(made, level) && !pte_claimed(made));
	prove(pte_writable(made) == (prot != PT_RO && prot != PT_RX));
	prove(pte_executable(made) == (prot == PT_RX) && !pte_user(made));
	prove(pte_uncached(made) == (prot == PT_UNCACHED));
	prove(pte_writable(made) == pte_dirty(made));
	prove(pte_pfn(user) == pfn && pte_is_leaf(user, level));
	prove(pte_rights(user) == (rights ? rights | USER_RIGHT_READ : 0));
	prove(pte_pfn(table) == pfn && pte_is_table(table) && !pte_is_leaf(table, PT_PMD));
	prove(pte_user(table) && !pte_user(pte_make_table(pfn)));
	prove(pte_pfn(entry) == pfn && (pfn == 0 || entry_is_leaf(entry, level)));
	prove(space.user ||
	      entry_rights(&space, entry) == (!rights ? 0
					      : rights & USER_RIGHT_WRITE
						      ? USER_RIGHT_READ | USER_RIGHT_WRITE
						      : USER_RIGHT_READ));
	prove(pte_claim(&slot, was) ? !pte_claimed(was) && slot == (was | PTE_CLAIMED)
				    : slot == was && pte_claimed(was));
	prove(!entry_is_leaf(ENTRY_GUARD, PT_PAGE) && !pte_present(ENTRY_GUARD));
}

PROVE(addresses, "5", "an-index-of-ten-bits", "any address")
{
	const u64 virt = ANY(u64);
	u64 sum = virt % PAGE_SIZE;

	for (enum pt_level level = PT_PAGE; level <= PT_PGD; level++) {
		prove(pt_index(virt, level) < PTRS_PER_TABLE);
		sum += pt_index(virt, level) * pt_level_size(level);
	}
	prove(sum == (virt & ((1ULL << 48) - 1)));
	prove(virt_is_canonical(virt) == (virt >> 47 == 0 || virt >> 47 == 0x1ffff));
}

PROVE(head_masks, "3", "a-head-of-the-next-page", "any page in any window, any order")
{
	const unsigned order = ANY_BELOW(unsigned, MAX_ORDER + 1);
	const u64 window = ANY_BELOW(u64, VMEMMAP_WINDOWS) * VMEMMAP_WINDOW_SIZE;
	const pfn_t pfn = ANY_BELOW(u64, VMEMMAP_WINDOW_SIZE >> PAGE_STRUCT_SHIFT),
		    head = ALIGN_DOWN(pfn, order_pages(order));
	const virt_t page = VMEMMAP_BASE + window + (pfn << PAGE_STRUCT_SHIFT),
		     at = VMEMMAP_BASE + window + (head << PAGE_STRUCT_SHIFT);

	prove((page & head_mask_of(order)) == at);
	prove(page_to_pfn((const struct page *)page) == pfn);
}

PROVE(runs, "65", "a-run-that-is-not-aligned", "any word, any order up to 3, any run of a block")
{
	const u64 word = ANY(u64), first = ANY_BELOW(u64, BLOCK_FRAMES);
	const unsigned order = ANY_BELOW(unsigned, 4), any = ANY_BELOW(unsigned, 64),
		       at = find_run(word, order), large = ANY_BELOW(unsigned, BLOCK_ORDER),
		       w = ANY_BELOW(unsigned, PCP_WORDS);
	u64 map[PCP_WORDS], was[PCP_WORDS];

	if (at < 64) {
		prove(at % (1u << order) == 0 && at + (1u << order) <= 64);
		prove((word & pcp_run_mask(at, order)) == pcp_run_mask(at, order));
	} else {
		prove(at == 64);
	}
	if (any % (1u << order) == 0 && any < at)
		prove((word & pcp_run_mask(any, order)) != pcp_run_mask(any, order));
	assume(first % (1u << large) == 0);
	memcpy(was, map, sizeof(map));
	block_map_add(map, first, large);
	prove((map[w] & was[w]) == was[w]);
	prove((map[w] >> any & 1) == (w * 64 + any >= first && w * 64 + any < first + (1u << large)
					      ? 1
					      : was[w] >> any & 1));
}

PROVE(cpus, "66", "a-set-without-its-last-cpu", "sets of 192 CPUs")
{
	u64 words[3], copy[3];
	struct cpumask mask = {words}, other = {copy};
	const cpu_t cpu = ANY_BELOW(u32, 192), any = ANY_BELOW(u32, 192),
		    from = ANY_BELOW(u32, 300);
	const bool was = cpumask_test(&mask, any);
	const cpu_t next = cpumask_next(&mask, from);

	prove(next == CPU_NONE || (next >= from && next < 192 && cpumask_test(&mask, next)));
	prove(any < from || any >= next || !was);
	cpumask_copy(&other, &mask);
	prove(cpumask_test(&other, any) == was);
	cpumask_set_atomic(&mask, cpu);
	prove(cpumask_test(&mask, cpu) && (any == cpu || cpumask_test(&mask, any) == was));
	cpumask_clear(&mask, cpu);
	prove(!cpumask_test(&mask, cpu) && (any == cpu || cpumask_test(&mask, any) == was));
	cpumask_zero(&mask);
	prove(cpumask_weight(&mask) == 0 && cpumask_next(&mask, 0) == CPU_NONE);
}
