/* The description of a page fault inside the kernel image; see image.h. */
#include "arch/x86_64/traps/image.h"

/* linker.ld */
extern const char __image_text_start[], __image_text_end[], __image_rodata_start[],
	__image_rodata_end[], __image_data_start[], __image_end[];

const char *image_fault_describe(virt_t addr, bool write, bool exec)
{
	if (addr >= (virt_t)__image_text_start && addr < (virt_t)__image_text_end)
		return write ? "write to the kernel's text" : NULL;
	if (addr >= (virt_t)__image_rodata_start && addr < (virt_t)__image_rodata_end)
		return write  ? "write to a constant of the kernel"
		       : exec ? "execution of a constant"
			      : NULL;
	if (addr >= (virt_t)__image_data_start && addr < (virt_t)__image_end)
		return exec ? "execution of data" : NULL;
	return NULL;
}
