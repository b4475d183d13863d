/* The description of a page fault inside the kernel image; see image.h. */
#include "arch/x86_64/traps/image.h"

/* linker.ld */
extern const char text_start[], text_end[], rodata_start[], rodata_end[], data_start[], image_end[];

const char *image_fault_describe(virt_t addr, bool write, bool exec)
{
	if (addr >= (virt_t)text_start && addr < (virt_t)text_end)
		return write ? "write to the kernel's text" : NULL;
	if (addr >= (virt_t)rodata_start && addr < (virt_t)rodata_end)
		return write  ? "write to a constant of the kernel"
		       : exec ? "execution of a constant"
			      : NULL;
	if (addr >= (virt_t)data_start && addr < (virt_t)image_end)
		return exec ? "execution of data" : NULL;
	return NULL;
}
