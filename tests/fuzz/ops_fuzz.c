/*
 * libFuzzer harness for sequences of operations. The hosted machine boots once, and each input is a
 * case of its own, with all checks that follow a case: every frame has one owner, by counters and
 * by walking; no page is kept; the pools are as at boot.
 *
 *	input   byte 0: how much of the rest, in 256ths, chooses operations on pages, pools,
 *	        sections and ranges of an arena against a reference allocator; the others choose
 *	        operations on huge mappings of the machine (tests/kernel/random.h)
 *
 * In addition to the operations of the random cases, it uses every search of contig= (by the
 * arena's first byte), every mode of hvo= (in arenas that may have mapped sections), a pool of 1
 * GiB pages and its demotion, CMA and bad frames. Mappings are populated, grown, protected and
 * promised. For some operations one pass of one site fails.
 *
 * The machine goes on from input to input. It keeps little (page tables of mappings), but an error
 * of one input may show in a later one. If a crash does not show alone, replay it together with the
 * inputs before it.
 *
 * The harness is linked with the hosted machine's objects and libFuzzer, or with replay.c in its
 * place: tests/host/host.mk.
 */
#include "tests/fuzz/hosted.h"
#include "tests/kernel/random.h"

TEST(fuzz, operations)
{
	const size_t rest = case_size > 0 ? case_size - 1 : 0,
		     pages = rest * (case_size > 0 ? case_data[0] : 0) / 256;

	if (pages > 0)
		random_allocations(case_data + 1, pages);
	if (rest > pages)
		random_mappings(case_data + 1 + pages, rest - pages);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	return run_case(data, size);
}
