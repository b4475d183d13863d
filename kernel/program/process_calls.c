/*
 * Calls about the process, its threads, their names and registers. There is one process, of user 0,
 * in a group and a session of its own. It starts no other.
 *
 * Sources: Linux man-pages, section 2.
 */
#include <arch/atomic.h>
#include <arch/user.h>

#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/program/calls.h"
#include "kernel/program/open_file.h"
#include "kernel/program/thread.h"
#include "kernel/program/user_copy.h"

enum { NAME_BYTES = 65 };

/* struct utsname */
struct user_names {
	char system[NAME_BYTES], node[NAME_BYTES], release[NAME_BYTES], version[NAME_BYTES],
		machine[NAME_BYTES], domain[NAME_BYTES];
};

/* Programs read the release as a number, so it is that of the Linux whose calls are meant. */
s64 call_uname(const struct call_args *args)
{
	static const struct user_names names = {.system = "Linux",
						.node = "ashlar",
						.release = "6.12.0-ashlar",
						.version = "#1 Ashlar",
						.machine = "x86_64",
						.domain = "(none)"};

	return user_write(args->arg[0], &names, sizeof(names));
}

s64 call_gettid(const struct call_args *args)
{
	return thread_current()->id;
}

/* ---- threads: clone(2), set_tid_address(2) ---- */

#define CLONE_VM             0x00000100ULL
#define CLONE_SIGHAND        0x00000800ULL
#define CLONE_THREAD         0x00010000ULL
#define CLONE_SETTLS         0x00080000ULL
#define CLONE_PARENT_SETTID  0x00100000ULL
#define CLONE_CHILD_CLEARTID 0x00200000ULL
#define CLONE_CHILD_SETTID   0x01000000ULL

s64 call_clone(const struct call_args *args)
{
	const u64 flags = args->arg[0], needed = CLONE_VM | CLONE_SIGHAND | CLONE_THREAD;
	struct trap_frame regs = *args->regs;
	const struct thread_request request = {
		.regs = &regs,
		.fs_base = flags & CLONE_SETTLS ? args->arg[4] : user_fs_base(),
		.parent_tid = flags & CLONE_PARENT_SETTID ? args->arg[2] : 0,
		.child_tid = flags & CLONE_CHILD_SETTID ? args->arg[3] : 0,
		.clear_child_tid = flags & CLONE_CHILD_CLEARTID ? args->arg[3] : 0};

	if ((flags & needed) != needed) {
		static u32 said;

		if (atomic_exchange(&said, 1) == 0)
			pr_warn("program: clone() of a process (flags %llx): there is one process "
				"(ENOSYS)",
				flags);
		return -ENOSYS;
	}
	regs.rax = 0;
	if (args->arg[1])
		regs.rsp = args->arg[1];
	if (request.fs_base >= USER_END)
		return -EPERM;
	return thread_start(&request);
}

s64 call_set_tid_address(const struct call_args *args)
{
	struct thread *self = thread_current();

	self->clear_child_tid = args->arg[0];
	return self->id;
}

/* ---- names of threads ---- */

#define PR_SET_VMA 0x53564d41u
enum { PR_SET_NAME = 15, PR_GET_NAME = 16 };

/* The name ends at its 0, which may come before memory that is not there. */
static s64 set_name(user_t from)
{
	struct thread *self = thread_current();
	char name[sizeof(self->name)] = {0};
	const s64 length = user_read_text(name, from, sizeof(name));

	if (length == -EFAULT)
		return -EFAULT;
	name[sizeof(name) - 1] = '\0';
	memcpy(self->name, name, sizeof(name));
	return 0;
}

s64 call_prctl(const struct call_args *args)
{
	const struct thread *self = thread_current();

	switch (args->arg[0]) {
	case PR_SET_NAME:
		return set_name(args->arg[1]);
	case PR_GET_NAME:
		return user_write(args->arg[1], self->name, sizeof(self->name));
	case PR_SET_VMA: /* names of areas, which nothing shows */
		return 0;
	}
	return -EINVAL;
}

/* ---- registers of the thread ---- */

enum { ARCH_SET_GS = 0x1001, ARCH_SET_FS, ARCH_GET_FS, ARCH_GET_GS };

s64 call_arch_prctl(const struct call_args *args)
{
	const u64 base = args->arg[0] == ARCH_GET_FS ? user_fs_base() : user_gs_base();

	switch (args->arg[0]) {
	case ARCH_SET_FS:
		return user_set_fs_base(args->arg[1]) ? 0 : -EPERM;
	case ARCH_SET_GS:
		return user_set_gs_base(args->arg[1]) ? 0 : -EPERM;
	case ARCH_GET_FS:
	case ARCH_GET_GS:
		return user_write(args->arg[1], &base, sizeof(base));
	default:
		return -EINVAL;
	}
}

/* ---- random numbers ---- */

enum { GRND_NONBLOCK = 1, GRND_RANDOM = 2, GRND_INSECURE = 4 };
enum { GRND_ALL = GRND_NONBLOCK | GRND_RANDOM | GRND_INSECURE, GRND_MOST = 0x1ffffff };

s64 call_getrandom(const struct call_args *args)
{
	struct span to = span_of(args->arg[0], MIN(args->arg[1], (u64)GRND_MOST));

	if (args->arg[2] & ~(u64)GRND_ALL ||
	    (args->arg[2] & (GRND_RANDOM | GRND_INSECURE)) == (GRND_RANDOM | GRND_INSECURE))
		return -EINVAL;
	return random_ops.read(NULL, &to, 0);
}
