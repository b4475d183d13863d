/*
 * Tables read back from acpidump's text: whole, damaged, and cut off anywhere.
 */
#include "arch/x86_64/acpi/acpi_dump.h"
#include "tests/kernel/test.h"

static const char good[] =
	"some mail header: 12\n"
	"HPET @ 0x000000007FFE2FF3\n"
	"    0000: 48 50 45 54 38 00 00 00 01 b4 42 4F 43 48 53 20  HPET8.....BOCHS \n"
	"    0010: 42 58 50 43 20 20 20 20 01 00 00 00 42 58 50 43  BXPC    ....BXPC\n"
	"    0020: 01 00 00 00 01 a2 86 80 00 00 00 00 00 00 D0 FE  ................\n"
	"    0030: 00 00 00 00 00 00 00 00                          ........\n"
	"\n"
	"ABCD @ 0x0\n"
	"WXYZ @ 0x1\n"
	"    0000: 57 58 5\n";

static u8 room[sizeof(good) / 3];

static struct acpi_dump dump_of(const char *text, size_t len)
{
	return (struct acpi_dump){.at = text, .end = text + len, .room = room, .left = len / 3};
}

/* The text ends at the end of its buffer, so that a sanitizer detects any read beyond it. */
TEST(acpi_dump, cut_at_every_length)
{
	static char place[sizeof(good)];
	size_t most = 0;

	for (size_t len = 0; len < sizeof(good); len++) {
		struct acpi_dump dump =
			dump_of(memcpy(place + sizeof(place) - len, good, len), len);
		struct acpi_table text;
		size_t bytes = 0;

		while (acpi_dump_next(&dump, &text))
			bytes += text.len;
		EXPECT(bytes >= most && bytes <= len / 3);
		most = bytes;
	}
	EXPECT_EQ(most, 0x38 + 2);
}
