/* Building cpio images for tests: see cpio_build.h. The files are of 1000 seconds after 1970. */
#include "tests/kernel/cpio_build.h"

#include "kernel/lib/string.h"
#include "kernel/program/cpio.h"

size_t cpio_append(void *image, size_t used, const char *name, u32 mode, const void *contents,
		   size_t size)
{
	char *at = (char *)image + used;

	at += cpio_header(at, name, mode, 1000, (u32)size);
	memcpy(at, contents, size);
	return ALIGN_UP((size_t)(at - (char *)image) + size, CPIO_ALIGNMENT);
}
