/*
 * libFuzzer harness for the text that describes a machine (tests/host/replay.h). acpi_fuzz.c covers
 * the tables in it.
 *
 * Beyond memory errors it checks that numbers of lines and ranges agree, that IDs are split as far
 * as they have bits, and that a text whose lines have their sums says what it said without them,
 * until one byte of it changes.
 */
#include "arch/x86_64/cpu/topology.c"
#include "boot/multiboot2.c"
#include "tests/fuzz/boot.h"
#include "tests/host/replay_text.c"

static void check_topology(const struct replay_text *text)
{
	const struct topology t = topology_read(replay_cpuid, text);
	u32 id;

	require(t.core_shift <= t.package_shift && t.package_shift < 32 && t.source);
	replay_boot_apic_id(text, &id);
}

static size_t read_ranges(const struct replay_text *text)
{
	size_t lines;

	boot_info_clear();
	lines = replay_ranges(text, &boot_info);
	boot_info_check(&boot_info);
	require(boot_info.faults == 0); /* it has no CPU yet that could print one */
	require(lines == boot_info.ranges + boot_info.ranges_lost);
	return lines;
}

/* The text with its sums and a last line, as `machine text` prints it. The caller frees it. */
static struct replay_text seal(const struct replay_text *text)
{
	struct cursor left = begin(text), line,
		      last = {MACHINE_TEXT_END, strchr(MACHINE_TEXT_END, 0)};
	char *sealed = malloc(9 * text->len + 64), *end = sealed;
	unsigned number = 0;
	bool more;

	do {
		more = next_line(&left, &line);
		if (!more)
			line = last;
		const size_t len = (size_t)(line.end - line.at);

		memcpy(end, line.at, len);
		end += len;
		end += sprintf(end, "  ~%04x\n", machine_text_sum(number++, line.at, len));
		if (skip(&line, MACHINE_TEXT_END))
			number = 0;
	} while (more);
	return (struct replay_text){sealed, (size_t)(end - sealed)};
}

/* The sum of a line shows that one of its bytes is another, and which line it is. */
static void check_damage(const struct replay_text *sealed, size_t at, u8 change)
{
	char *text = (char *)sealed->text;
	const char *end = memchr(text + at, '\n', sealed->len - at);
	size_t number = 1, bad;

	if (end - (text + at) < 8 || !change || (u8)(text[at] ^ change) == '\n')
		return; /* not a byte of the line's text */
	for (size_t i = 0; i < at; i++)
		number += text[i] == '\n';
	text[at] ^= (char)change;
	require(!replay_is_whole(sealed, &bad) && bad == number);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *exact = exact_copy(data, size);
	const struct replay_text text = {exact, size};
	struct replay_text sealed;
	size_t bad, lines;

	if (!replay_is_whole(&text, &bad))
		require(bad > 0 && bad <= size + 1);
	check_topology(&text);
	lines = read_ranges(&text);
	sealed = seal(&text);
	require(replay_is_whole(&sealed, &bad));
	require(read_ranges(&sealed) == lines);
	if (size >= 3)
		check_damage(&sealed, (data[size - 1] << 8 | data[size - 2]) % sealed.len,
			     data[size - 3]);
	free((char *)sealed.text);
	free(exact);
	return 0;
}
