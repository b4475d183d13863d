/*
 * Sorting of table records by a key. Heap sort needs no memory, and no table, however hostile,
 * makes it slow.
 *
 * Source: Williams, "Algorithm 232: Heapsort", Communications of the ACM, 1964-06.
 */
#include "arch/x86_64/acpi/acpi_sort.h"

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
