/*
 * Functions that gcc calls where a program does something that C does not define
 * (-fsanitize=undefined). Each report describes it in words, with file, line, kind and values, and
 * ends the run. `make DEBUG=san` links this file.
 *
 * The compiler passes a description of the place. The layout of the description is the compiler's
 * interface: LLVM, "compiler-rt/lib/ubsan/ubsan_handlers.h" and "ubsan_value.h"; gcc has the same.
 * Values of up to 64 bits come in the argument, larger ones by address.
 */
#include "kernel/core/panic.h"
#include "kernel/core/printk.h"
#include "kernel/lib/types.h"

struct place {
	const char *file;
	u32 line, column;
};

struct type {
	u16 kind; /* 0: an integer */
	u16 info; /* bit 0: signed; the other bits: log2 of its size in bits */
	char name[];
};

struct overflow {
	struct place at;
	const struct type *type;
};

struct shift {
	struct place at;
	const struct type *value, *count;
};

struct bounds {
	struct place at;
	const struct type *array, *index;
};

struct mismatch {
	struct place at;
	const struct type *type;
	u8 log_alignment, access;
};

struct builtin {
	struct place at;
	u8 which;
};

enum { VALUE_MAX = 32, TYPE_INTEGER = 0 };

static const char *const accesses[] = {
	"load of",        "store to",
	"reference to",   "member access in",
	"member call on", "constructor call on",
	"downcast of",    "downcast of",
	"upcast of",      "cast to virtual base of",
	"null check of",  "load of",
};

static __noreturn __printf(2, 3) void report(const struct place *at, const char *fmt, ...)
{
	char text[200];
	va_list args;

	va_start(args, fmt);
	vformat(text, sizeof(text), fmt, args);
	va_end(args);
	panic("UBSAN: %s:%u:%u: %s", at->file ? at->file : "?", at->line, at->column, text);
}

static bool is_negative(const struct type *type, u64 value)
{
	const unsigned bits = 1u << (type->info >> 1);

	return type->info & 1 && bits <= 64 && value >> (bits - 1) & 1;
}

static const char *value_text(const struct type *type, u64 value, char buf[VALUE_MAX])
{
	const unsigned bits = 1u << (type->info >> 1);

	if (type->kind != TYPE_INTEGER || bits > 64)
		format(buf, VALUE_MAX, "(no integer)");
	else if (is_negative(type, value))
		format(buf, VALUE_MAX, "%lld", (value | (bits < 64 ? ~0ULL << bits : 0)));
	else
		format(buf, VALUE_MAX, "%llu", (bits < 64 ? value & ((1ULL << bits) - 1) : value));
	return buf;
}

static __noreturn void overflowed(const struct overflow *o, u64 left, const char *operation,
				  u64 right)
{
	char a[VALUE_MAX], b[VALUE_MAX];

	report(&o->at, "%s %s %s does not fit type %s", value_text(o->type, left, a), operation,
	       value_text(o->type, right, b), o->type->name);
}

#define HANDLER(name, ...)                                                                         \
	void __ubsan_handle_##name(__VA_ARGS__);                                                   \
	void __ubsan_handle_##name(__VA_ARGS__)

HANDLER(add_overflow, const struct overflow *o, u64 left, u64 right)
{
	overflowed(o, left, "+", right);
}

HANDLER(sub_overflow, const struct overflow *o, u64 left, u64 right)
{
	overflowed(o, left, "-", right);
}

HANDLER(mul_overflow, const struct overflow *o, u64 left, u64 right)
{
	overflowed(o, left, "*", right);
}

HANDLER(divrem_overflow, const struct overflow *o, u64 left, u64 right)
{
	overflowed(o, left, "/", right);
}

HANDLER(negate_overflow, const struct overflow *o, u64 value)
{
	overflowed(o, 0, "-", value);
}

HANDLER(shift_out_of_bounds, const struct shift *s, u64 value, u64 count)
{
	char a[VALUE_MAX], b[VALUE_MAX];

	report(&s->at, "shift of %s, type %s, by %s", value_text(s->value, value, a),
	       s->value->name, value_text(s->count, count, b));
}

HANDLER(out_of_bounds, const struct bounds *b, u64 index)
{
	char text[VALUE_MAX];

	report(&b->at, "index %s outside of type %s", value_text(b->index, index, text),
	       b->array->name);
}

HANDLER(type_mismatch_v1, const struct mismatch *m, u64 address)
{
	const char *access = m->access < ARRAY_LEN(accesses) ? accesses[m->access] : "access to";
	const u64 alignment = 1ULL << m->log_alignment;

	if (!address)
		report(&m->at, "%s NULL, type %s", access, m->type->name);
	if (!IS_ALIGNED(address, alignment))
		report(&m->at, "%s address %llx, which is not aligned to %llu as type %s is",
		       access, address, alignment, m->type->name);
	report(&m->at, "%s address %llx, where there is too little room for type %s", access,
	       address, m->type->name);
}

HANDLER(pointer_overflow, const struct place *at, u64 base, u64 result)
{
	report(at, "pointer %llx with an offset becomes %llx", base, result);
}

HANDLER(load_invalid_value, const struct overflow *o, u64 value)
{
	char text[VALUE_MAX];

	report(&o->at, "load of %s, which is no value of type %s", value_text(o->type, value, text),
	       o->type->name);
}

HANDLER(vla_bound_not_positive, const struct overflow *o, u64 bound)
{
	char text[VALUE_MAX];

	report(&o->at, "array of %s elements", value_text(o->type, bound, text));
}

HANDLER(builtin_unreachable, const struct place *at)
{
	report(at, "a place was reached that cannot be");
}

HANDLER(missing_return, const struct place *at)
{
	report(at, "the end of a function that returns a value");
}

HANDLER(nonnull_arg, const struct place *at)
{
	report(at, "NULL for an argument that must not be");
}

HANDLER(invalid_builtin, const struct builtin *b)
{
	report(&b->at, "zero for %s", b->which ? "clz()" : "ctz()");
}
