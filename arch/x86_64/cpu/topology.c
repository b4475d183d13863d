/*
 * Topology from CPUID; see topology.h. Pure.
 *
 * Sources are tried in this order: leaf 1Fh (Intel since 2018, knows dies), leaf Bh (Intel since
 * 2008, AMD since Zen 2), AMD's 8000_001Eh and 8000_0008h, and the counts of leaves 1 and 4 that
 * came with hyper-threading. Levels above the core (module, tile, die) are not distinguished; all
 * levels above the core and below the package count as one.
 */
#include "arch/x86_64/cpu/topology.h"

enum { LEVELS_MAX = 8, LEVEL_NONE = 0, LEVEL_THREAD = 1, SHIFT_MASK = 0x1f };
enum { CPUID_1_EDX_HTT = 1 << 28, CPUID_80000001_ECX_TOPOLOGY = 1 << 22 };

/* Number of bits needed to number `count` things. */
static unsigned bits_for(unsigned count)
{
	return count <= 1 ? 0 : 32 - (unsigned)__builtin_clz(count - 1);
}

/* Read levels with their shifts; the last valid one's shift is the package's. */
static bool from_levels(cpuid_fn *leaf, const void *ctx, u32 number, struct topology *out)
{
	bool threads = false;

	for (u32 level = 0; level < LEVELS_MAX; level++) {
		const struct cpuid id = leaf(number, level, ctx);
		const unsigned type = id.ecx >> 8 & 0xff;

		if (type == LEVEL_NONE || id.ebx == 0)
			break;
		if (type == LEVEL_THREAD) {
			out->core_shift = id.eax & SHIFT_MASK;
			threads = true;
		}
		out->package_shift = id.eax & SHIFT_MASK;
	}
	return threads && out->package_shift >= out->core_shift;
}

static bool from_amd(cpuid_fn *leaf, const void *ctx, struct topology *out)
{
	const struct cpuid sizes = leaf(0x80000008, 0, ctx);
	const unsigned stated = sizes.ecx >> 12 & 0xf, count = (sizes.ecx & 0xff) + 1;
	const bool extended = leaf(0x80000001, 0, ctx).ecx & CPUID_80000001_ECX_TOPOLOGY;

	if (sizes.ecx == 0)
		return false;
	out->package_shift = stated ? stated : bits_for(count);
	out->core_shift = extended ? bits_for((leaf(0x8000001e, 0, ctx).ebx >> 8 & 0xff) + 1) : 0;
	return out->core_shift <= out->package_shift;
}

static void from_counts(cpuid_fn *leaf, const void *ctx, struct topology *out)
{
	const struct cpuid basic = leaf(1, 0, ctx);
	const unsigned logical = basic.edx & CPUID_1_EDX_HTT ? basic.ebx >> 16 & 0xff : 1;
	const unsigned cores = (leaf(4, 0, ctx).eax >> 26) + 1;

	out->package_shift = bits_for(logical);
	out->core_shift = logical > cores ? bits_for(logical) - bits_for(cores) : 0;
}

struct topology topology_read(cpuid_fn *leaf, const void *ctx)
{
	struct topology found = {0};

	found.source = "CPUID 1Fh";
	if (from_levels(leaf, ctx, 0x1f, &found))
		return found;
	found = (struct topology){.source = "CPUID Bh"};
	if (from_levels(leaf, ctx, 0xb, &found))
		return found;
	found = (struct topology){.source = "CPUID 80000008h"};
	if (from_amd(leaf, ctx, &found))
		return found;
	found = (struct topology){.source = "CPUID 1"};
	from_counts(leaf, ctx, &found);
	return found;
}
