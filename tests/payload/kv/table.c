/*
 * A key-value table: see table.h. The hash multiplies by 2^64 divided by the golden ratio (Knuth,
 * TAOCP vol. 3, 6.4).
 */
#include "table.h"

#define GOLDEN 0x9e3779b97f4a7c15ULL

static struct kv_slot *find(const struct kv *kv, u64 key)
{
	const u64 mask = kv->slots - 1;

	for (u64 at = key * GOLDEN >> 20 & mask;; at = (at + 1) & mask)
		if (kv->slot[at].key == key || kv->slot[at].key == 0)
			return &kv->slot[at];
}

void kv_init(struct kv *kv, void *memory, u64 bytes)
{
	*kv = (struct kv){.slot = memory, .slots = bytes / sizeof(struct kv_slot)};
}

bool kv_put(struct kv *kv, u64 key, u64 value)
{
	struct kv_slot *slot = find(kv, key);

	if (slot->key == 0 && kv->used >= kv->slots / 8 * 7)
		return false;
	kv->used += slot->key == 0;
	*slot = (struct kv_slot){.key = key, .value = value};
	return true;
}

u64 *kv_get(const struct kv *kv, u64 key)
{
	struct kv_slot *slot = find(kv, key);

	return slot->key == key ? &slot->value : NULL;
}
