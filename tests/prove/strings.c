/* The functions of memory and strings, against what C says of them. */
#define strnlen kernel_strnlen
#include "tests/prove/prove.h"
#undef strnlen

#define memcpy  kernel_memcpy
#define memmove kernel_memmove
#define memset  kernel_memset
#define memcmp  kernel_memcmp
#define strlen  kernel_strlen
#define strcmp  kernel_strcmp
#define strncmp kernel_strncmp
#define strchr  kernel_strchr
#define strnlen kernel_strnlen_
size_t strnlen(const char *text, size_t most);
#include "kernel/lib/string.c"

enum { MOST = 19, SET_MOST = 75 };

PROVE(memory, "20", "the-last-bytes-are-not-moved", "up to 19 bytes, at any distance")
{
	u8 room[2 * MOST + 1], before[2 * MOST + 1];
	const size_t to = ANY_BELOW(size_t, MOST + 1), from = ANY_BELOW(size_t, MOST + 1),
		     n = ANY_BELOW(size_t, MOST + 1), at = ANY_BELOW(size_t, sizeof(room));

	for (size_t i = 0; i < sizeof(room); i++)
		before[i] = room[i];
	prove(memmove(room + to, room + from, n) == room + to);
	prove(room[at] == (at >= to && at < to + n ? before[at - to + from] : before[at]));
}

PROVE(memory_of_two, "80", "the-last-bytes-are-not-copied", "up to 19 bytes; up to 75 bytes set")
{
	u8 a[MOST], b[MOST], set[SET_MOST];
	const size_t n = ANY_BELOW(size_t, MOST + 1), m = ANY_BELOW(size_t, SET_MOST + 1),
		     at = ANY_BELOW(size_t, MOST), s = ANY_BELOW(size_t, SET_MOST);
	const u8 byte = ANY(u8), was = set[s];
	const int order = memcmp(a, b, n);

	prove(n == 0 || order != 0 || a[at % n] == b[at % n]);
	memset(set, byte, m);
	prove(set[s] == (s < m ? byte : was));
	memcpy(b, a, n);
	prove(memcmp(a, b, n) == 0 && (at >= n || a[at] == b[at]));
}

PROVE(strings, "9", "an-end-is-no-difference", "texts of up to 7 characters")
{
	char a[8], b[8];
	const size_t n = ANY(size_t), at = ANY_BELOW(size_t, 8);
	const char c = ANY(char), *found;
	int order;

	a[7] = b[7] = '\0';
	prove(strlen(a) <= 7 && a[strlen(a)] == '\0' && (at >= strlen(a) || a[at]));
	prove(strnlen(a, n) == (n < strlen(a) ? n : strlen(a)));
	found = strchr(a, c);
	prove(found ? *found == c : c != '\0' && (at >= strlen(a) || a[at] != c));
	order = strncmp(a, b, n);
	if (order == 0 && at < n && at <= strlen(a))
		prove(a[at] == b[at]);
	prove(strcmp(a, a) == 0 && (strcmp(a, b) < 0) == (strcmp(b, a) > 0));
}
