/* Caches by CPUID; see caches.h. Pure. */
#include "arch/x86_64/cpu/caches.h"

enum { TYPE_NONE = 0, TYPE_DATA = 1, TYPE_CODE = 2, CPUID_80000001_ECX_TOPOLOGY = 1 << 22 };

/* AMD CPUs without leaf 8000_001Dh: sizes and lines are in 8000_0005h and 8000_0006h. */
static unsigned from_sizes(cpuid_fn *leaf, const void *ctx, struct cache_level out[CACHES_MAX])
{
	const struct cpuid first = leaf(0x80000005, 0, ctx), more = leaf(0x80000006, 0, ctx);
	const struct cache_level found[] = {
		{.level = 1, .kind = 'd', .kib = first.ecx >> 24, .line = first.ecx & 0xff},
		{.level = 1, .kind = 'i', .kib = first.edx >> 24, .line = first.edx & 0xff},
		{.level = 2, .kind = 'u', .kib = more.ecx >> 16, .line = more.ecx & 0xff},
		{.level = 3, .kind = 'u', .kib = (more.edx >> 18) * 512, .line = more.edx & 0xff},
	};
	unsigned n = 0;

	for (size_t i = 0; i < ARRAY_LEN(found); i++)
		if (found[i].kib)
			out[n++] = found[i];
	return n;
}

unsigned caches_read(cpuid_fn *leaf, const void *ctx, struct cache_level out[CACHES_MAX])
{
	const bool amd = leaf(0x80000001, 0, ctx).ecx & CPUID_80000001_ECX_TOPOLOGY;
	unsigned n = 0;

	for (u32 i = 0; i < CACHES_MAX; i++) {
		const struct cpuid id = leaf(amd ? 0x8000001d : 4, i, ctx);
		const u32 type = id.eax & 0x1f, ways = (id.ebx >> 22) + 1,
			  line = (id.ebx & 0xfff) + 1;
		const u64 size =
			(u64)ways * ((id.ebx >> 12 & 0x3ff) + 1) * line * ((u64)id.ecx + 1);

		if (type == TYPE_NONE)
			break;
		out[n++] = (struct cache_level){.level = id.eax >> 5 & 7,
						.kind = type == TYPE_DATA   ? 'd'
							: type == TYPE_CODE ? 'i'
									    : 'u',
						.kib = (u32)(size >> 10),
						.ways = ways,
						.line = line,
						.sharing = (id.eax >> 14 & 0xfff) + 1};
	}
	return n ? n : from_sizes(leaf, ctx, out);
}

bool cache_is_shared(u32 sharing, u32 id, u32 other)
{
	u32 shift = 0;

	while (shift < 31 && 1U << shift < sharing)
		shift++;
	return id >> shift == other >> shift;
}
