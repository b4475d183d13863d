/* Sorting the entries of ACPI tables, and finding one of them. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

void acpi_sort(const struct acpi_order *order, size_t count);

/*
 * Index of the last of `count` sorted records whose key is `key` or smaller; 0 if there is none.
 */
size_t acpi_search(const struct acpi_order *order, size_t count, u64 key);
