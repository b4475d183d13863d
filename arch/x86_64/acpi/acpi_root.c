/*
 * ACPI roots: RSDP, table headers, XSDT and RSDT; walks over entries, and sorting. See
 * acpi_tables.h.
 *
 * Invariant: the holder of a struct acpi_table from here may read [data, data + len) and nothing
 * else.
 *
 * Source: ACPI 6.5, 5.2.5 "Root System Description Pointer", 5.2.6 "System Description Table
 * Header", 5.2.7, 5.2.8.
 */
#include "arch/x86_64/acpi/acpi_root.h"

#include "kernel/core/printk.h"
#include "kernel/lib/string.h"

struct rsdp_bytes {
	char signature[8];
	u8 checksum;
	char oem_id[6];
	u8 revision;
	u32 rsdt;
	u32 length; /* this field and the following exist from revision 2 on */
	u64 xsdt;
} __packed;

static u8 byte_sum(const u8 *data, size_t len)
{
	u8 sum = 0;

	for (size_t i = 0; i < len; i++)
		sum = (u8)(sum + data[i]);
	return sum;
}

/*
 * Address of the XSDT, or 0. A revision 2 structure with a wrong second checksum still has a good
 * first half.
 */
static phys_t rsdp_xsdt(const struct rsdp_bytes *rsdp, size_t len)
{
	u32 length;

	if (len < ACPI_RSDP_V2_SIZE || rsdp->revision < 2)
		return 0;
	length = rsdp->length;
	if (length < ACPI_RSDP_V2_SIZE || length > len || byte_sum((const u8 *)rsdp, length) != 0) {
		pr_warn("ACPI: RSDP of revision %u has a bad extended checksum or length %u, "
			"trying its RSDT",
			rsdp->revision, length);
		return 0;
	}
	return rsdp->xsdt;
}

int acpi_rsdp_parse(const void *data, size_t len, struct acpi_rsdp *out)
{
	const struct rsdp_bytes *rsdp = data;

	*out = (struct acpi_rsdp){0};
	if (len < ACPI_RSDP_V1_SIZE || memcmp(rsdp->signature, "RSD PTR ", 8) != 0)
		return -EINVAL;
	if (byte_sum(data, ACPI_RSDP_V1_SIZE) != 0) {
		pr_warn("ACPI: RSDP with a bad checksum is not used");
		return -EINVAL;
	}
	out->revision = rsdp->revision;
	out->rsdt = rsdp->rsdt;
	out->xsdt = rsdp_xsdt(rsdp, len);
	return out->rsdt || out->xsdt ? 0 : -EINVAL;
}

s64 acpi_rsdp_scan(const void *area, size_t len, struct acpi_rsdp *out)
{
	for (size_t at = 0; at + ACPI_RSDP_V1_SIZE <= len; at += 16)
		if (acpi_rsdp_parse((const u8 *)area + at, len - at, out) == 0)
			return (s64)at;
	return -ENOENT;
}

size_t acpi_header_length(const void *data, size_t len)
{
	const struct acpi_header *header = data;

	if (len < ACPI_HEADER_SIZE || header->length < ACPI_HEADER_SIZE)
		return 0;
	return header->length;
}

bool acpi_has_signature(const void *data, size_t len, const char *signature)
{
	return len >= 4 && memcmp(data, signature, 4) == 0;
}

int acpi_table_open(const void *data, size_t len, const char *signature, struct acpi_table *out)
{
	const size_t length = acpi_header_length(data, len);

	*out = (struct acpi_table){0};
	if (!acpi_has_signature(data, len, signature))
		return -EINVAL;
	if (length == 0 || length > len) {
		pr_warn("ACPI: %s states an impossible length and is not used", signature);
		return -EINVAL;
	}
	*out = (struct acpi_table){.data = data, .len = length};
	if (byte_sum(data, length) == 0)
		return 0;
	pr_warn("ACPI: %s has a bad checksum", signature);
	return -EIO;
}

const u8 *acpi_walk_next(struct acpi_walk *walk)
{
	const struct acpi_table *table = walk->table;

	while (walk->at + 2 <= table->len) {
		const u8 *entry = table->data + walk->at;
		const u8 size = entry[0] < walk->types ? walk->sizes[entry[0]] : 0;

		if (entry[1] < 2 || entry[1] > table->len - walk->at) {
			pr_warn("ACPI: %.4s entry at byte %zu states the impossible length %u, the "
				"rest is not read",
				(const char *)table->data, walk->at, entry[1]);
			return NULL;
		}
		walk->at += entry[1];
		if (size && entry[1] >= size)
			return entry;
	}
	return NULL;
}

static size_t root_pointer_size(const struct acpi_table *root)
{
	return acpi_has_signature(root->data, root->len, "XSDT") ? 8 : 4;
}

size_t acpi_root_count(const struct acpi_table *root)
{
	return root->len < ACPI_HEADER_SIZE
		       ? 0
		       : (root->len - ACPI_HEADER_SIZE) / root_pointer_size(root);
}

phys_t acpi_root_entry(const struct acpi_table *root, size_t index)
{
	const size_t size = root_pointer_size(root);
	u64 value = 0;

	if (index >= acpi_root_count(root))
		return 0;
	/* little endian, as this CPU is */
	memcpy(&value, root->data + ACPI_HEADER_SIZE + index * size, size);
	return value;
}

/*
 * ---- sorting ----
 *
 * Heap sort needs no memory, and no table, however hostile, makes it slow. Source: Williams,
 * "Algorithm 232: Heapsort", Communications of the ACM, 1964-06.
 */

static void sort_swap(const struct acpi_order *order, size_t a, size_t b)
{
	u8 *x = (u8 *)order->base + a * order->size, *y = (u8 *)order->base + b * order->size;

	for (size_t i = 0; i < order->size; i++) {
		u8 byte = x[i];

		x[i] = y[i];
		y[i] = byte;
	}
}

static u64 sort_key(const struct acpi_order *order, size_t i)
{
	return order->key((const u8 *)order->base + i * order->size);
}

static void sort_sift_down(const struct acpi_order *order, size_t at, size_t count)
{
	for (size_t child = 2 * at + 1; child < count; child = 2 * at + 1) {
		if (child + 1 < count && sort_key(order, child + 1) > sort_key(order, child))
			child++;
		if (sort_key(order, at) >= sort_key(order, child))
			return;
		sort_swap(order, at, child);
		at = child;
	}
}

size_t acpi_search(const struct acpi_order *order, size_t count, u64 key)
{
	size_t low = 0, high = count;

	while (low + 1 < high) {
		const size_t mid = low + (high - low) / 2;

		if (sort_key(order, mid) <= key)
			low = mid;
		else
			high = mid;
	}
	return low;
}

void acpi_sort(const struct acpi_order *order, size_t count)
{
	for (size_t i = count / 2; i-- > 0;)
		sort_sift_down(order, i, count);
	for (size_t end = count; end > 1; end--) {
		sort_swap(order, 0, end - 1);
		sort_sift_down(order, 0, end - 1);
	}
}
