/*
 * Names for code addresses, from the table that the Makefile generates after a first link
 * (boot/symbols.awk):
 *
 *	symbol_addresses[symbol_count]     ascending
 *	symbol_name_offsets[symbol_count]  into symbol_names, zero-terminated
 *
 * The symbols are weak, so a link without the table works; no address has a name then.
 */
#include <arch/console.h>

extern const u32 symbol_count __attribute__((weak));
extern const u64 symbol_addresses[] __attribute__((weak));
extern const u32 symbol_name_offsets[] __attribute__((weak));
extern const char symbol_names[] __attribute__((weak));
extern const char text_start[], text_end[];

const char *symbol_lookup(virt_t addr, u64 *offset)
{
	u32 low = 0, high = &symbol_count ? symbol_count : 0;

	if (addr < (virt_t)text_start || addr >= (virt_t)text_end || high == 0)
		return NULL;
	while (low < high) { /* first symbol beyond addr */
		const u32 middle = low + (high - low) / 2;

		if (symbol_addresses[middle] <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || symbol_addresses[low - 1] < (virt_t)text_start)
		return NULL;
	*offset = addr - symbol_addresses[low - 1];
	return symbol_names + symbol_name_offsets[low - 1];
}
