/*
 * Fuzzer for the inputs of consoles: the words of console=, text with escape sequences for the
 * screen, and scan codes. The first byte chooses the kind.
 *
 * Beyond memory errors it checks that the screen draws inside itself, and that in the end it shows
 * what it wants to show.
 */

#include "kernel/console/console_keyboard.c"
#include "kernel/console/console_screen.c"
#include "kernel/console/console_wish.c"
#include "kernel/console/console_wish.h"
#include "tests/fuzz/fuzz.h"

enum { KIND_WISH, KIND_SCREEN, KIND_KEYS, KINDS };

/* Stands in for the function in kernel/core/cmdline.c, for numbers without a suffix. */
int parse_u64(const char **p, u64 *out)
{
	char *end;

	if (**p < '0' || **p > '9')
		return -EINVAL;
	*out = strtoull(*p, &end, 0);
	*p = end;
	return 0;
}

static void fuzz_wish(const u8 *data, size_t len)
{
	struct console_wish wish[CONSOLE_WISHES_MAX];
	char *text = malloc(len + 1);
	int n;

	memcpy(text, data, len);
	text[len] = '\0';
	n = console_wishes_parse(text, wish);
	require(n == -EINVAL || n == -E2BIG || (n > 0 && n <= CONSOLE_WISHES_MAX));
	for (int i = 0; i < n; i++)
		require(wish[i].baud <= 115200 &&
			(wish[i].stride == 1 || wish[i].stride == 2 || wish[i].stride == 4));
	free(text);
}

static char shown[SCREEN_ROWS_MAX][SCREEN_COLUMNS_MAX];

static void record(struct screen *s, unsigned row, unsigned first, unsigned last, const char *text)
{
	require(row < s->rows && first <= last && last < s->columns);
	memcpy(&shown[row][first], &text[first], last - first + 1);
}

static void fuzz_screen(const u8 *data, size_t len)
{
	static struct screen screen;

	if (len < 2)
		return;
	memset(shown, ' ', sizeof(shown));
	screen.draw = record;
	screen_start(&screen, data[0] % 16 + 1, data[1] % 16 + 1);
	require(screen.console.write(&screen.console, (const char *)data + 2, len - 2));
	for (unsigned row = 0; row < screen.rows; row++)
		require(memcmp(shown[row], screen.want[row], screen.columns) == 0);
	require(screen.x <= screen.columns && screen.y < screen.rows);
}

static void fuzz_keys(const u8 *data, size_t len)
{
	struct keyboard keyboard = {0};
	char out[KEY_BYTES_MAX];

	for (size_t i = 0; i < len; i++)
		require(keyboard_decode(&keyboard, data[i], out) <= KEY_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const u8 *data, size_t size)
{
	static void (*const fuzz[KINDS])(const u8 *, size_t) = {fuzz_wish, fuzz_screen, fuzz_keys};
	u8 *copy;

	if (size < 1)
		return 0;
	copy = exact_copy(data + 1, size - 1);
	fuzz[data[0] % KINDS](copy, size - 1);
	free(copy);
	return 0;
}
