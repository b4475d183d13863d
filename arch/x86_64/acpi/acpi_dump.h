/* Tables in the text that acpidump writes, for tests and replays. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/*
 * The next table of the dump, with as many bytes as the text has of it. Open it with
 * acpi_table_open(). False at the end.
 */
bool acpi_dump_next(struct acpi_dump *dump, struct acpi_table *out);
