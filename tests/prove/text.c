/* What people and terminals type: words, keys. */
#include "tests/prove/prove.h"

#include "kernel/console/console_keyboard.c"
#include "kernel/console/keys.c"
#include "kernel/lib/words.c"

PROVE(words, "6", "a-bell-is-a-word", "lines of up to 4 bytes, room for 2 words of 4")
{
	static struct words words;
	ANY_BYTES(text, len, 4);
	const unsigned n = ANY_BELOW(unsigned, 2), c = ANY_BELOW(unsigned, 4);
	size_t used;
	const int err = words_cut(&words, (const char *)text, len, &used);

	prove(err == 0 || err == -EINVAL || err == -E2BIG);
	prove(used <= len && (len == 0 || used > 0) && words.count <= 2);
	prove(words_plain_count(&words) <= words.count);
	if (n < words.count) {
		const char *word = words.word[n];

		prove(word >= words.text && strnlen(word, WORDS_TEXT) < WORDS_TEXT);
		prove(c >= strnlen(word, 5) || (word[c] >= ' ' && word[c] < 0x7f));
	}
}

PROVE(keys, "9", "a-number-is-a-place-in-the-table", "any state, any byte")
{
	struct keys keys = {.state = ANY_BELOW(u8, STATE_SS3 + 1),
			    .param = ANY_BELOW(unsigned, PARAM_MAX + 1)};
	const u8 byte = ANY(u8);
	const int key = keys_feed(&keys, byte);

	prove(key == KEY_NONE || key == byte || (key >= KEY_UP && key <= KEY_PAGE_DOWN));
	prove(keys.state <= STATE_SS3 && keys.param <= PARAM_MAX);
	prove((byte >= ' ' && byte < BYTE_DEL) || keys.state <= STATE_ESC);
}

PROVE(keyboard, "12", "a-key-behind-the-table", "any state, any code")
{
	struct keyboard keyboard = {ANY_BOOL, ANY_BOOL, ANY_BOOL, ANY_BOOL};
	char out[KEY_BYTES_MAX];
	const unsigned n = keyboard_decode(&keyboard, ANY(u8), out),
		       i = ANY_BELOW(unsigned, KEY_BYTES_MAX);

	prove(n <= KEY_BYTES_MAX);
	prove(i >= n || (out[i] > 0 && out[i] < BYTE_DEL));
}
