/* Caches by CPUID; see caches.h. Pure. */
#include "arch/x86_64/cpu/caches.h"

enum { TYPE_NONE = 0, TYPE_DATA = 1, TYPE_CODE = 2, CPUID_80000001_ECX_TOPOLOGY = 1 << 22 };

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
						.sharing = (id.eax >> 14 & 0xfff) + 1};
	}
	return n;
}

bool cache_is_shared(u32 sharing, u32 id, u32 other)
{
	u32 shift = 0;

	while (shift < 31 && 1U << shift < sharing)
		shift++;
	return id >> shift == other >> shift;
}
