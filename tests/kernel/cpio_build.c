/* Building cpio images for tests: see cpio_build.h. The files are of 1000 seconds after 1970. */
#include "tests/kernel/cpio_build.h"

#include "kernel/lib/format.h"
#include "kernel/lib/string.h"

enum { HEADER = 110 };

size_t cpio_append(void *image, size_t used, const char *name, u32 mode, const void *contents,
		   size_t size)
{
	const size_t name_size = strlen(name) + 1;
	char *at = (char *)image + used;

	format(at, HEADER + 1, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x", 0,
	       mode, 0, 0, 1, 1000, (u32)size, 0, 0, 0, 0, (u32)name_size, 0);
	memcpy(at + HEADER, name, name_size);
	at += ALIGN_UP(HEADER + name_size, 4); /* images begin at multiples of 4 */
	memcpy(at, contents, size);
	return ALIGN_UP((size_t)(at - (char *)image) + size, 4);
}
