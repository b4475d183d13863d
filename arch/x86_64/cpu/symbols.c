/*
 * Names for code addresses, from the table that the Makefile generates after a first link
 * (boot/symbols.awk):
 *
 *	__symbol_addresses[__symbol_count]     ascending
 *	__symbol_name_offsets[__symbol_count]  into __symbol_names, zero-terminated
 *
 * The symbols are weak, so a link without the table works; no address has a name then.
 */
#include <arch/console.h>

extern const u32 __symbol_count __attribute__((weak));
extern const u64 __symbol_addresses[] __attribute__((weak));
extern const u32 __symbol_name_offsets[] __attribute__((weak));
extern const char __symbol_names[] __attribute__((weak));
extern const char __image_text_start[], __image_text_end[];

const char *symbol_lookup(virt_t addr, u64 *offset)
{
	u32 low = 0, high = &__symbol_count ? __symbol_count : 0;

	if (addr < (virt_t)__image_text_start || addr >= (virt_t)__image_text_end || high == 0)
		return NULL;
	while (low < high) { /* first symbol beyond addr */
		const u32 middle = low + (high - low) / 2;

		if (__symbol_addresses[middle] <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || __symbol_addresses[low - 1] < (virt_t)__image_text_start)
		return NULL;
	*offset = addr - __symbol_addresses[low - 1];
	return __symbol_names + __symbol_name_offsets[low - 1];
}
