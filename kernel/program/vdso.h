/*
 * The vDSO (vdso/vdso.c), as the kernel maps it into a program: a page of data, which only the
 * program reads, and behind it the object itself, read and executed.
 */
#pragma once

#include "kernel/lib/types.h"

/* The object: an ELF file, a whole number of pages, on a page border of the kernel image. */
const void *vdso_image(u64 *size);

/*
 * Fill in the page in front of it, which the caller has cleared, and prepare the CPUs for it.
 * Before a program starts. Context: ordinary.
 */
struct vdso_data;
void vdso_fill_data(struct vdso_data *data);
