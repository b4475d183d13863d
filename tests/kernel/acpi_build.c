/*
 * Building tables for tests byte by byte: see acpi_build.h.
 */
#include "tests/kernel/acpi_build.h"

#include "kernel/lib/string.h"

struct build build;
static u8 place[BUILD_ROOM];

void build_put(u64 value, size_t size)
{
	memcpy(build.bytes + build.len, &value, size);
	build.len += size;
}

void build_poke(size_t at, u64 value, size_t size)
{
	memcpy(build.bytes + at, &value, size);
}

void build_zeros(size_t n)
{
	memset(build.bytes + build.len, 0, n);
	build.len += n;
}

void build_begin(const char *signature, u8 revision)
{
	build.len = 0;
	build_zeros(ACPI_HEADER_SIZE);
	memcpy(build.bytes, signature, 4);
	build.bytes[8] = revision;
}

u8 build_sum(const u8 *bytes, size_t len)
{
	u8 n = 0;

	while (len--)
		n = (u8)(n + *bytes++);
	return n;
}

/* Write the length and correct the checksum. */
struct acpi_table build_finish(void)
{
	build_poke(4, build.len, 4);
	build.bytes[9] = 0;
	build.bytes[9] = (u8)-build_sum(build.bytes, build.len);
	return build_view(build.len);
}

/* Copy the first `len` bytes of the table to the very end of the other buffer. */
const u8 *build_at_end(size_t len)
{
	return memcpy(place + sizeof(place) - len, build.bytes, len);
}

struct acpi_table build_view(size_t len)
{
	return (struct acpi_table){.data = build_at_end(len), .len = len};
}
