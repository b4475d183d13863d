/*
 * The files that a program leaves behind, for the host (program.out=on, FILES_OUT= of make run): a
 * cpio image (format newc) of all regular files that are new, renamed or changed, but those of
 * /dev, /proc and /sys. It goes out through port 0 of a virtio console (virtio 1.2, 5.3) straight
 * from the pages of the files, so nothing is copied, and no memory is needed at the end.
 *
 * Context of all: ordinary, the boot CPU, and no thread of the program runs.
 */
#pragma once

#include "kernel/lib/types.h"

/*
 * Before a program: find the device, and take the memory for its queue. Returns 0, also if
 * program.out is off, or a negative errno after a message that names what is missing.
 */
int files_out_begin(void);

/* After it, before files_end(): send the files. A message names what does not arrive. */
void files_out_send(void);

/*
 * Write the image piece by piece. put() gets bytes of the direct map, which stay until put(NULL,
 * 0). An error of put() ends the image and is returned. `scratch`: 2 zeroed pages.
 */
typedef int files_put_fn(const void *bytes, u64 size);
int files_out_write(files_put_fn *put, void *scratch);
