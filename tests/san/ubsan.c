/*
 * Functions that gcc calls where a program does something that C does not define
 * (-fsanitize=undefined). Each report names the place and the kind, and ends the run. `make
 * DEBUG=san` links this file.
 *
 * The compiler passes a description that begins with the place. The layout of the description is
 * the compiler's interface: LLVM, "compiler-rt/lib/ubsan/ubsan_handlers.h"; gcc has the same. Of
 * the values only an address is shown; the backtrace names the function that had the others.
 */
#include "kernel/core/panic.h"
#include "kernel/lib/types.h"

struct place {
	const char *file;
	u32 line, column;
};

struct type {
	u16 kind, info;
	char name[];
};

struct mismatch {
	struct place at;
	const struct type *type;
	u8 log_alignment, access;
};

static __noreturn void report(const struct place *at, const char *what)
{
	panic("UBSAN: %s:%u:%u: %s", at->file ? at->file : "?", at->line, at->column, what);
}

#define HANDLER(name, what)                                                                        \
	void __ubsan_handle_##name(const struct place *at);                                        \
	void __ubsan_handle_##name(const struct place *at)                                         \
	{                                                                                          \
		report(at, what);                                                                  \
	}

HANDLER(add_overflow, "a sum does not fit its type")
HANDLER(sub_overflow, "a difference does not fit its type")
HANDLER(mul_overflow, "a product does not fit its type")
HANDLER(divrem_overflow, "a quotient does not fit its type")
HANDLER(negate_overflow, "a negated value does not fit its type")
HANDLER(shift_out_of_bounds, "a shift by too many bits, or of a negative value")
HANDLER(out_of_bounds, "an index outside of its array")
HANDLER(pointer_overflow, "a pointer with an offset goes round the end of all addresses")
HANDLER(load_invalid_value, "a load of what is no value of its type")
HANDLER(vla_bound_not_positive, "an array without elements")
HANDLER(builtin_unreachable, "a place was reached that cannot be")
HANDLER(missing_return, "the end of a function that returns a value")
HANDLER(nonnull_arg, "NULL for an argument that must not be")
HANDLER(nonnull_return_v1, "NULL from a function that never returns it")
HANDLER(invalid_builtin, "zero for clz() or ctz()")

void __ubsan_handle_type_mismatch_v1(const struct mismatch *m, u64 address);
void __ubsan_handle_type_mismatch_v1(const struct mismatch *m, u64 address)
{
	const char *why = !address                                         ? "NULL"
			  : !IS_ALIGNED(address, 1ULL << m->log_alignment) ? "wrong alignment"
									   : "too little room";

	panic("UBSAN: %s:%u:%u: access to address %llx as type %s: %s",
	      m->at.file ? m->at.file : "?", m->at.line, m->at.column, address, m->type->name, why);
}
