/* Ways to end, arch-internal part: see exit.c and <arch/console.h>. */
#pragma once

#include "arch/x86_64/acpi_tables.h"

/* How ACPI says that this machine is reset. Boot CPU, once mappings can be made. */
void exit_set_reset(const struct acpi_fadt *fadt);
