/* Building cpio images for tests. */
#pragma once

#include "kernel/lib/types.h"

/* Append an entry to an image of `used` bytes. Returns the size that the image then has. */
size_t cpio_append(void *image, size_t used, const char *name, u32 mode, const void *contents,
		   size_t size);
