/* RSDP, RSDT and XSDT: the addresses of tables, and checks of a table. Pure. */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

/* 0, or -EINVAL if this is no RSDP or has a bad checksum (logged if the signature is right). */
int acpi_rsdp_parse(const void *data, size_t len, struct acpi_rsdp *out);

/* Parse the first valid RSDP on a 16-byte boundary of an area. Returns its offset, or -ENOENT. */
s64 acpi_rsdp_scan(const void *area, size_t len, struct acpi_rsdp *out);

/* Length that a header states, 0 if it is impossible or `len` is below ACPI_HEADER_SIZE. */
size_t acpi_header_length(const void *data, size_t len);

bool acpi_has_signature(const void *data, size_t len, const char *signature);

/*
 * Check a table's signature, length and checksum. Returns 0; -EINVAL if it is not that table or is
 * longer than `len`; -EIO if only the checksum is wrong. In the last case *out is usable and the
 * error is logged.
 */
int acpi_table_open(const void *data, size_t len, const char *signature, struct acpi_table *out);

/*
 * Upper limit for the CPUs of a MADT, and for the entries of an SRAT: the shortest has 8 bytes.
 */
static inline size_t acpi_entries_max(const struct acpi_table *table)
{
	return table->len / 8;
}

/*
 * Next entry (type, length, ...) of a type that is read and long enough for it; NULL at the end, or
 * at an impossible length, which is logged.
 */
const u8 *acpi_walk_next(struct acpi_walk *walk);

/*
 * Number of pointers in an XSDT or RSDT (the signature says which), and one of them by index; 0
 * past the last.
 */
size_t acpi_root_count(const struct acpi_table *root);
phys_t acpi_root_entry(const struct acpi_table *root, size_t index);

/* Sort records by their keys. */
void acpi_sort(const struct acpi_order *order, size_t count);

/*
 * Index of the last of `count` sorted records whose key is `key` or smaller; 0 if there is none.
 */
size_t acpi_search(const struct acpi_order *order, size_t count, u64 key);
