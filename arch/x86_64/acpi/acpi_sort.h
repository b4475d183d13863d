/* Sorting the entries of ACPI tables. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

void acpi_sort(const struct acpi_order *order, size_t count);
