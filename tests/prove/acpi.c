/* ACPI tables: roots, entries, distances. */
#include "tests/prove/prove.h"

#include "arch/x86_64/acpi/acpi_root.c"
#include "arch/x86_64/acpi/acpi_srat.c"

#define ANY_TABLE(name, most)                                                                      \
	ANY_BYTES(name##_bytes, name##_len, most);                                                 \
	const struct acpi_table name = {name##_bytes, name##_len}

PROVE(acpi_root, "60", "table-longer-than-what-is-mapped", "tables of up to 56 bytes")
{
	ANY_BYTES(data, len, 56);
	const size_t index = ANY(size_t);
	struct acpi_table table;
	const int err = acpi_table_open(data, len, "XSDT", &table);

	prove(err == 0 || err == -EINVAL || err == -EIO);
	prove(err == -EINVAL
		      ? !table.data
		      : table.data == data && table.len <= len && table.len >= ACPI_HEADER_SIZE);
	if (err == -EINVAL)
		return;
	prove(acpi_root_count(&table) == (table.len - ACPI_HEADER_SIZE) / 8);
	prove(acpi_root_entry(&table, index) == 0 || index < acpi_root_count(&table));
}

PROVE(acpi_walk, "22", "192-entry-longer-than-the-table",
      "tables of up to 40 bytes, from any byte on")
{
	ANY_TABLE(table, 40);
	u8 sizes[4];
	struct acpi_walk walk = {&table, ANY(size_t), sizes, ARRAY_LEN(sizes)};
	const u8 *entry;

	assume(walk.at <= table.len);
	entry = acpi_walk_next(&walk);
	prove(walk.at <= table.len);
	if (entry) {
		prove(entry >= table.data && entry + entry[1] == table.data + walk.at);
		prove(entry[0] < ARRAY_LEN(sizes) && entry[1] >= sizes[entry[0]]);
	}
}

PROVE(acpi_slit, "18", "a-matrix-larger-than-its-table", "tables of up to 60 bytes")
{
	ANY_TABLE(table, 60);
	const u32 from = ANY(u32), to = ANY(u32);
	struct acpi_slit slit;
	const int err = acpi_slit_parse(&table, &slit);
	const unsigned distance = acpi_slit_distance(&slit, from, to);

	prove(err == 0 ? slit.size >= 1 && slit.size <= 4 : slit.size == 0);
	prove(from == to ? distance == ACPI_DISTANCE_LOCAL : distance >= ACPI_DISTANCE_LOCAL);
}
