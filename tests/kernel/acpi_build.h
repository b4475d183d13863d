/*
 * Building ACPI tables for tests, byte by byte.
 *
 * Every table is parsed from the very end of a buffer, so that the address sanitizer detects a read
 * of one byte too many.
 */
#pragma once

#include "arch/x86_64/acpi/acpi_tables.h"

enum { BUILD_ROOM = 8192 };

/* The table under construction. */
extern struct build {
	size_t len;
	u8 bytes[BUILD_ROOM];
} build;

/* Start a table: a header without length and checksum. */
void build_begin(const char *signature, u8 revision);

/* Append the low `size` bytes of a value; append `n` zeros. */
void build_put(u64 value, size_t size);
void build_zeros(size_t n);

/* Overwrite bytes at an offset. */
void build_poke(size_t at, u64 value, size_t size);

/* Write the length and correct the checksum. Returns the whole table: see build_view(). */
struct acpi_table build_finish(void);

/*
 * The first `len` bytes of the table, copied to the very end of another buffer, as a pointer or as
 * a table.
 */
const u8 *build_at_end(size_t len);
struct acpi_table build_view(size_t len);

u8 build_sum(const u8 *bytes, size_t len);
