/* The table of calls: see calls.h. */
#include "kernel/program/calls.h"

#include <arch/atomic.h>

#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/path.h"
#include "kernel/program/signal.h"
#include "kernel/program/thread.h"

#define CALL(nr, ident, args, tested)                                                              \
	[nr] = {.name = #ident, .arguments = args, .run = call_##ident},
#define SAME(nr, ident, args, other, made, tested)                                                 \
	[nr] = {.name = #ident, .arguments = args, .run = call_##other, .how = (made)},
#define ANSWER(nr, ident, args, value, tested)                                                     \
	[nr] = {.name = #ident, .arguments = args, .answer = (value)},
static const struct call calls[CALLS_MAX] = {
#include "kernel/program/call_rows.h"
};

static const char *const absent[CALLS_MAX + 1] = {
#include "kernel/program/call_names.h"
};

static u32 missed[CALLS_MAX + 1]; /* said once; the last counts numbers beyond the table */

const struct call *call_of(u64 number)
{
	return number < CALLS_MAX && calls[number].name ? &calls[number] : NULL;
}

void calls_begin(void)
{
	memset(missed, 0, sizeof(missed));
}

static s64 miss(u64 number, u64 rip)
{
	const u64 index = MIN(number, (u64)CALLS_MAX);

	if (atomic_exchange(&missed[index], 1) == 0)
		pr_warn("program: call %llu (%s) is not there (ENOSYS); called at %llx", number,
			absent[index] ? absent[index] : "unknown", rip);
	return -ENOSYS;
}

/*
 * The arguments of the other call: h is the working directory, l AT_SYMLINK_NOFOLLOW, p the
 * program's id, r AT_REMOVEDIR, t what creat() opens with. `how` is shorter than they are where
 * those that follow are 0.
 */
static struct call_args arrange(const struct call_args *from, const char *how)
{
	struct call_args args = {.file = from->file, .regs = from->regs};

	for (unsigned i = 0; how[i]; i++)
		args.arg[i] = how[i] == 'h'   ? (u64)PATH_CURRENT
			      : how[i] == 'l' ? AT_SYMLINK_NOFOLLOW
			      : how[i] == 'p' ? program_pid()
			      : how[i] == 'r' ? AT_REMOVEDIR
			      : how[i] == 't' ? OPEN_CREATE | OPEN_TRUNCATE | OPEN_WRITE
			      : how[i] == 'z' ? 0
					      : from->arg[how[i] - '0'];
	return args;
}

static s64 serve(const struct call *call, struct call_args *args)
{
	s64 result;

	if (call->arguments[0] == 'f') {
		args->file = file_of((int)args->arg[0]);
		if (!args->file)
			return -EBADF;
	}
	if (call->how)
		*args = arrange(args, call->how);
	result = call->run ? call->run(args) : call->answer;
	file_put(args->file);
	return result;
}

/* As on Linux, the number is an int: the upper half of rax is not looked at. */
void calls_serve(struct trap_frame *regs)
{
	const u64 number = (u64)(s32)regs->rax;
	const struct call *call = call_of(number);

	do {
		struct call_args args = {
			.arg = {regs->rdi, regs->rsi, regs->rdx, regs->r10, regs->r8, regs->r9},
			.regs = regs};

		regs->rax = (u64)(call ? serve(call, &args) : miss(number, regs->rip));
	} while (signal_call_goes_on(regs));
}
