/*
 * printf-style formatting into a buffer: the conversions of C that a kernel needs (ISO C11,
 * 7.21.6.1), integers only.
 *
 * Invariants: it never writes past `size`, always terminates when size > 0, and always returns the
 * length the whole text would have had. An unknown conversion is copied as it stands, so a mistake
 * is visible instead of fatal. There is no state. Any context, NMI included.
 */
#include "kernel/lib/format.h"

#include "kernel/lib/string.h"

struct sink {
	char *buf;
	size_t size;
	size_t len; /* of the whole text, including what did not fit the buffer */
};

enum flag { LEFT, PLUS, SPACE, ALT, ZERO, FLAGS };
static const char flag_letters[FLAGS + 1] = "-+ #0";

struct spec {
	bool flag[FLAGS];
	bool has_precision;
	int width, precision;
	unsigned bytes; /* size of an integer argument */
};

/* Digits of a 64-bit number in octal. */
enum { DIGITS_MAX = 22, COUNT_MAX = 4096 };

static void put(struct sink *s, char c)
{
	if (s->len + 1 < s->size)
		s->buf[s->len] = c;
	s->len++;
}

static void pad(struct sink *s, char c, int n)
{
	while (n-- > 0)
		put(s, c);
}

/* A prefix, zeros and the text, filled up with blanks to the width. */
static void put_field(struct sink *s, const struct spec *spec, const char *prefix, int zeros,
		      const char *text, size_t len)
{
	const int fill = spec->width - (int)(strlen(prefix) + len) - zeros;

	if (!spec->flag[LEFT])
		pad(s, ' ', fill);
	for (; *prefix; prefix++)
		put(s, *prefix);
	pad(s, '0', zeros);
	for (size_t i = 0; i < len; i++)
		put(s, text[i]);
	if (spec->flag[LEFT])
		pad(s, ' ', fill);
}

/*
 * Sign or base prefix, then zeros up to the precision (or the width with the 0 flag), then digits;
 * a zero has no digits, so the precision adds the 0 where it is needed.
 */
static void put_number(struct sink *s, const struct spec *spec, u64 value, unsigned base,
		       bool upper, const char *prefix)
{
	const char *set = upper ? "0123456789ABCDEF" : "0123456789abcdef";
	char digits[DIGITS_MAX], *first = digits + DIGITS_MAX;
	int n, zeros;

	for (; value; value /= base)
		*--first = set[value % base];
	n = (int)(digits + DIGITS_MAX - first);
	zeros = MAX((spec->has_precision ? spec->precision : 1) - n, 0);
	if (base == 8 && spec->flag[ALT] && !zeros && (!n || *first != '0'))
		zeros = 1;
	if (spec->flag[ZERO] && !spec->flag[LEFT] && !spec->has_precision)
		zeros = MAX(zeros, spec->width - (int)strlen(prefix) - n);
	put_field(s, spec, prefix, zeros, first, (size_t)n);
}

/* va_list may be an array type, so it is wrapped in a struct to be passed by address. */
struct args {
	va_list list;
};

static void parse_flags(const char **p, struct spec *spec)
{
	for (; **p && strchr(flag_letters, **p); (*p)++)
		spec->flag[strchr(flag_letters, **p) - flag_letters] = true;
}

/* A decimal number, or * for an argument. It is bounded, so that no width can run away. */
static int parse_count(const char **p, struct args *args)
{
	int n = 0;

	if (**p == '*') {
		(*p)++;
		n = va_arg(args->list, int);
	}
	for (; **p >= '0' && **p <= '9'; (*p)++)
		n = MIN(n * 10 + (**p - '0'), COUNT_MAX);
	return MAX(MIN(n, COUNT_MAX), -COUNT_MAX);
}

static void parse_width_and_precision(const char **p, struct spec *spec, struct args *args)
{
	spec->width = parse_count(p, args);
	if (spec->width < 0) {
		spec->flag[LEFT] = true;
		spec->width = -spec->width;
	}
	if (**p != '.')
		return;
	(*p)++;
	spec->precision = parse_count(p, args);
	spec->has_precision = spec->precision >= 0; /* negative: as if omitted */
}

/* h and l may occur once or twice; j, z and t mean 8 bytes here (LP64). */
static void parse_length(const char **p, struct spec *spec)
{
	spec->bytes = 4;
	for (; **p == 'h' && spec->bytes > 1; (*p)++)
		spec->bytes /= 2;
	for (; **p == 'l' || **p == 'j' || **p == 'z' || **p == 't'; (*p)++)
		spec->bytes = 8;
}

/* Bits of a u64 that an argument does not have. */
static unsigned bits_beyond(const struct spec *spec)
{
	return 64 - 8 * spec->bytes;
}

static u64 arg_unsigned(const struct spec *spec, struct args *args)
{
	const u64 value = spec->bytes == 8 ? va_arg(args->list, u64) : va_arg(args->list, u32);

	return value << bits_beyond(spec) >> bits_beyond(spec);
}

static void put_signed(struct sink *s, const struct spec *spec, u64 argument)
{
	const s64 value = (s64)(argument << bits_beyond(spec)) >> bits_beyond(spec);
	const char *sign = value < 0 ? "-" : spec->flag[PLUS] ? "+" : spec->flag[SPACE] ? " " : "";

	put_number(s, spec, value < 0 ? 0 - (u64)value : (u64)value, 10, false, sign);
}

static void put_string(struct sink *s, const struct spec *spec, const char *text)
{
	if (!text)
		text = "(null)";
	put_field(s, spec, "", 0, text,
		  spec->has_precision ? strnlen(text, (size_t)spec->precision) : strlen(text));
}

static void put_hex(struct sink *s, const struct spec *spec, u64 value, bool upper)
{
	put_number(s, spec, value, 16, upper,
		   spec->flag[ALT] && value ? (upper ? "0X" : "0x") : "");
}

/* Print one conversion; false if it is not known. */
static bool convert(struct sink *s, const struct spec *spec, char conversion, struct args *args)
{
	char c;

	switch (conversion) {
	case 'd':
	case 'i':
		put_signed(s, spec, arg_unsigned(spec, args));
		return true;
	case 'u':
		put_number(s, spec, arg_unsigned(spec, args), 10, false, "");
		return true;
	case 'o':
		put_number(s, spec, arg_unsigned(spec, args), 8, false, "");
		return true;
	case 'x':
	case 'X':
		put_hex(s, spec, arg_unsigned(spec, args), conversion == 'X');
		return true;
	case 'p':
		put_number(s, spec, (u64)(virt_t)va_arg(args->list, void *), 16, false, "0x");
		return true;
	case 'c':
		c = (char)va_arg(args->list, int);
		put_field(s, spec, "", 0, &c, 1);
		return true;
	case 's':
		put_string(s, spec, va_arg(args->list, const char *));
		return true;
	case '%':
		put(s, '%');
		return true;
	}
	return false;
}

/* `p` is just after the %. Returns where the text goes on. */
static const char *put_conversion(struct sink *s, const char *p, struct args *args)
{
	const char *start = p;
	struct spec spec = {0};

	parse_flags(&p, &spec);
	parse_width_and_precision(&p, &spec, args);
	parse_length(&p, &spec);
	if (*p && convert(s, &spec, *p, args))
		return p + 1;
	put(s, '%');
	return start;
}

int vformat(char *buf, size_t size, const char *fmt, va_list list)
{
	struct sink s = {.buf = buf, .size = size};
	struct args args;

	va_copy(args.list, list);
	while (*fmt) {
		if (*fmt++ == '%')
			fmt = put_conversion(&s, fmt, &args);
		else
			put(&s, fmt[-1]);
	}
	va_end(args.list);
	if (size)
		buf[MIN(s.len, size - 1)] = '\0';
	return (int)s.len;
}

int format(char *buf, size_t size, const char *fmt, ...)
{
	return FORMAT_ARGS(buf, size, fmt);
}

/* Their names for programs: ashlar.h. */
int ashlar_format(char *buf, size_t size, const char *fmt, ...) __attribute__((alias("format")));
int ashlar_vformat(char *buf, size_t size, const char *fmt, va_list args)
	__attribute__((alias("vformat")));
