/* One program: see program.h. */
#include "kernel/program/program.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/pgtable.h>
#include <arch/user.h>

#include "kernel/core/printk.h"
#include "kernel/core/verdict.h"
#include "kernel/lib/format.h"
#include "kernel/lib/string.h"
#include "kernel/main.h"
#include "kernel/program/calls.h"
#include "kernel/program/commit.h"
#include "kernel/program/cpio.h"
#include "kernel/program/limits.h"
#include "kernel/program/elf.h"
#include "kernel/program/file.h"
#include "kernel/program/files_out.h"
#include "kernel/program/heap.h"
#include "kernel/program/layout.h"
#include "mm/vm/mapping.h"
#include "kernel/program/module.h"
#include "kernel/program/open_file.h"
#include "kernel/program/signal.h"
#include "kernel/program/start_stack.h"
#include "kernel/program/thread.h"
#include "kernel/program/timers.h"
#include "kernel/program/program_space.h"
#include "mm/vm/touch.h"
#include "kernel/program/vdso.h"
#include "kernel/program/vdso/vdso_data.h"
#include "mm/mm.h"

#define START_BYTES_MAX (STACK_BYTES / 4) /* of the first stack's texts and pairs, as in Linux */

#define PROGRAM_ENDED 0x80000000u

/* A file that is loaded. */
struct loaded {
	const char *name;
	const void *image; /* NULL: none */
	u64 size;
	struct elf_image elf;
};

static struct program {
	struct loaded main, interpreter;
	char path[CPIO_NAME_MAX + 2];
	u32 end;    /* PROGRAM_ENDED and the status of the end of all; 0: not ended. Atomic */
	int exited; /* the status of the first thread, if it ended alone */
	u64 interrupted_ns; /* when Ctrl-C was last typed; 0: never */
} program;

bool program_end(int status)
{
	const bool first = atomic_cas(&program.end, 0, PROGRAM_ENDED | (u32)status);

	threads_end_all();
	return first;
}

bool program_ended(int *status)
{
	const u32 end = atomic_load_acquire(&program.end);

	*status = (int)(end & ~PROGRAM_ENDED);
	return end != 0;
}

void program_interrupt(void)
{
	const u64 now = clock_ns(), before = atomic_exchange(&program.interrupted_ns, now);
	const bool again = before != 0 && now - before < NS_PER_S;
	const struct signal_info info = {.signal = again ? SIGKILL : SIGINT, .code = SI_KERNEL};

	signal_send(NULL, info.signal, &info);
}

bool program_was_interrupted(void)
{
	return atomic_load_relaxed(&program.interrupted_ns) != 0;
}

void program_symbol(u64 addr, char *buf, size_t size)
{
	const char *name;
	u64 offset;

	buf[0] = '\0';
	if (program.main.image && elf_symbol(program.main.image, program.main.size,
					     addr - program.main.elf.bias, &name, &offset))
		format(buf, size, "%s+0x%llx", name, offset);
}

/* ---- loading ---- */

_Static_assert((int)ELF_R == (int)USER_RIGHT_READ && (int)ELF_W == (int)USER_RIGHT_WRITE &&
		       (int)ELF_X == (int)USER_RIGHT_EXEC,
	       "rights of segments and areas");

/* Map a segment, fill it in, and give it its rights. */
static s64 load_segment(const struct loaded *from, const struct elf_segment *segment)
{
	const u64 at = segment->virt + from->elf.bias;
	struct area area = {.start = ALIGN_DOWN(at, PAGE_SIZE),
			    .end = ALIGN_UP(at + segment->memory_bytes, PAGE_SIZE),
			    .rights = USER_RIGHT_READ | USER_RIGHT_WRITE};
	const u8 rights = (u8)segment->rights;
	s64 err;

	area.flags = rights & USER_RIGHT_WRITE ? AREA_COMMIT : 0;
	err = mapping_make(&program_space, &area, MAPPING_NO_REPLACE);
	if (err >= 0)
		err = user_write(at, (const char *)from->image + segment->file_offset,
				 segment->file_bytes);
	if (err >= 0 && rights != area.rights)
		err = mapping_protect(&program_space, area.start, area.end, rights);
	return err;
}

static s64 parse_file(struct loaded *file)
{
	const struct elf_limits limits = {USER_START, MAPPINGS_TOP - GIB(1), PIE_BASE};
	u64 value;
	const char *why = elf_parse(file->image, file->size, limits, &file->elf, &value);

	if (why)
		pr_err("program: %s: %s (%llx)", file->name, why, value);
	return why ? -ENOEXEC : 0;
}

static s64 load_segments(const struct loaded *file)
{
	for (size_t i = 0; i < file->elf.segments; i++) {
		const struct elf_segment *segment = &file->elf.segment[i];
		const u64 at = segment->virt + file->elf.bias;
		const s64 err = load_segment(file, segment);

		if (err < 0) {
			const char *why = err == -EEXIST ? "a segment lies where the program is"
							 : "there is no memory for a segment";
			pr_err("program: %s: %s (%llx)", file->name, why, at);
			return err;
		}
	}
	return 0;
}

/* As in Linux, an interpreter that runs anywhere lies at the top of the mappings. */
static s64 load_interpreter(void)
{
	struct loaded *file = &program.interpreter;
	s64 err;

	file->name = program.main.elf.interpreter;
	file->image = files_bytes(file->name, &file->size);
	if (!file->image) {
		pr_err("program: %s: it is linked dynamically, and there is no file %s, its "
		       "interpreter (make run PROGRAM= passes it)",
		       program.main.name, file->name);
		return -ENOENT;
	}
	err = parse_file(file);
	if (err == 0 && file->elf.pie)
		file->elf.bias = ALIGN_DOWN(MAPPINGS_TOP - file->elf.high, file->elf.align);
	return err < 0 ? err : load_segments(file);
}

static s64 load_files(void)
{
	s64 err = parse_file(&program.main);

	if (err == 0)
		err = load_segments(&program.main);
	if (err == 0)
		heap_begin(ALIGN_UP(program.main.elf.high + program.main.elf.bias, PAGE_SIZE));
	if (err == 0 && program.main.elf.interpreter)
		err = load_interpreter();
	return err;
}

/* Map the stack and write its first contents. Returns rsp, or a negative errno. */
static s64 load_stack(const struct program_request *request)
{
	struct area area = {.start = STACK_TOP - STACK_BYTES,
			    .end = STACK_TOP,
			    .rights = USER_RIGHT_READ | USER_RIGHT_WRITE};
	const struct elf_image *elf = &program.main.elf;
	struct start_stack start = {.path = program.path,
				    .args = request->args,
				    .environment = request->environment,
				    .entry = elf->entry + elf->bias,
				    .phdr = elf->phdr_virt + elf->bias,
				    .base = program.interpreter.elf.bias,
				    .phdr_count = elf->phdr_count,
				    .phdr_size = elf->phdr_size,
				    .hwcap = user_hwcap(),
				    .vdso = VDSO_IMAGE,
				    .signal_stack_min = 4096 + user_vectors_size()};
	struct span random = span_of_kernel(start.random, sizeof(start.random));
	const u64 size = start_stack_size(&start);
	const unsigned order = page_order_for(size);
	struct page *page;
	s64 err;
	u64 rsp;

	if (size > START_BYTES_MAX) {
		pr_err("program: %s: its arguments and environment take %llu bytes, more than %llu",
		       program.main.name, size, START_BYTES_MAX);
		return -E2BIG;
	}
	page = page_alloc(order, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
	if (!page)
		return -ENOMEM;
	if (elf->stack_exec)
		area.rights |= USER_RIGHT_EXEC;
	random_ops.read(NULL, &random, 0);
	rsp = start_stack_build(&start, page_address(page), PAGE_SIZE << order, STACK_TOP);
	err = mapping_make(&program_space, &area, MAPPING_NO_REPLACE);
	if (err >= 0)
		err = user_write(
			rsp, (char *)page_address(page) + (PAGE_SIZE << order) - (STACK_TOP - rsp),
			STACK_TOP - rsp);
	page_free(page);
	return err < 0 ? err : (s64)rsp;
}

/* Map the vDSO's data and, behind it, the vDSO. */
static s64 load_vdso(void)
{
	u64 size;
	const void *image = vdso_image(&size);
	struct area area = {.start = VDSO_BASE,
			    .end = VDSO_IMAGE + size,
			    .rights = USER_RIGHT_READ | USER_RIGHT_WRITE};
	struct vdso_data data = {.mult = 0};
	s64 err = mapping_make(&program_space, &area, MAPPING_NO_REPLACE);

	vdso_fill_data(&data);
	if (err >= 0)
		err = user_write(VDSO_BASE, &data, sizeof(data));
	if (err >= 0)
		err = user_write(VDSO_IMAGE, image, size);
	if (err >= 0)
		err = mapping_protect(&program_space, VDSO_BASE, VDSO_IMAGE, USER_RIGHT_READ);
	if (err >= 0)
		err = mapping_protect(&program_space, VDSO_IMAGE, area.end,
				      USER_RIGHT_READ | USER_RIGHT_EXEC);
	return err;
}

/* ---- running ---- */

static void fault(struct trap_frame *regs, virt_t addr, enum user_access access)
{
	switch (space_touch(&program_space, addr, access)) {
	case TOUCH_DONE:
		return;
	case TOUCH_NO_AREA:
	case TOUCH_GUARD:
		signal_raise_fault(regs, SIGSEGV, SEGV_MAPERR, addr);
		return;
	case TOUCH_NO_RIGHT:
		signal_raise_fault(regs, SIGSEGV, SEGV_ACCERR, addr);
		return;
	case TOUCH_BEYOND:
	case TOUCH_NO_MEMORY:
		signal_raise_fault(regs, SIGBUS, BUS_ADRERR, addr);
		return;
	}
}

static const struct user_ops ops = {.call = calls_serve,
				    .fault = fault,
				    .exception = program_exception,
				    .attend = thread_attend};

static s64 load(const struct program_request *request, struct trap_frame *regs)
{
	const struct loaded *first;
	s64 err = load_files(), rsp;

	if (err == 0)
		err = load_vdso();
	if (err < 0)
		return err;
	rsp = load_stack(request);
	if (rsp < 0)
		return rsp;
	first = program.interpreter.image ? &program.interpreter : &program.main;
	*regs = (struct trap_frame){.rip = first->elf.entry + first->elf.bias, .rsp = (u64)rsp};
	return 0;
}

static const char *last_part(const char *path)
{
	const char *last = path;

	for (; *path; path++)
		if (*path == '/')
			last = path + 1;
	return last;
}

/* The contents of /proc/self/exe, cmdline, environ and status. */
static s64 name_program(const struct program_request *request)
{
	format(thread_current()->name, sizeof(thread_current()->name), "%s",
	       last_part(program.path));
	return files_name_program(program.path, request->args, request->environment);
}

static s64 load_and_run(const struct program_request *request)
{
	struct trap_frame regs;
	int status;
	s64 err;

	format(program.path, sizeof(program.path), "%s%s", request->name[0] == '/' ? "" : "/",
	       request->name);
	err = load(request, &regs);
	if (err == 0)
		err = name_program(request);
	if (err < 0)
		return err;
	user_enter(&regs, 0, NULL);
	threads_wait();
	return program_ended(&status) ? status : program.exited;
}

int program_begin(const struct program_request *request)
{
	int err;

	calls_begin();
	user_set_ops(&ops);
	memset(&program, 0, sizeof(program));
	program.main = (struct loaded){
		.name = request->name, .image = request->image, .size = request->size};
	if (space_init(&program_space, NULL) < 0)
		return -ENOMEM;
	if (!threads_begin()) {
		space_free(&program_space);
		return -ENOMEM;
	}
	signals_begin();
	timers_begin();
	limits_begin();
	commit_begin();
	err = files_begin(request->files, request->files_size);
	if (err < 0) {
		threads_end();
		space_free(&program_space);
	}
	return err;
}

void program_finish(void)
{
	timers_end();
	mapping_remove_all(&program_space);
	files_end();
	threads_end();
}

int program_run(const struct program_request *request)
{
	s64 result = program_begin(request);

	if (result == 0) {
		result = load_and_run(request);
		files_out_send();
		program_finish();
	}
	return (int)result;
}

int program_run_source(const struct program_source *source)
{
	const u64 began = clock_ns();
	int status = files_out_begin();
	u64 ns;

	if (status == 0)
		status =
			program_run(&(struct program_request){.name = source->name,
							      .image = source->elf,
							      .size = source->elf_size,
							      .files = source->cpio,
							      .files_size = source->cpio_size,
							      .args = &source->args,
							      .environment = &source->environment});
	ns = clock_ns() - began;

	if (status < 0)
		pr_err("program: %s was not started (%d)", source->name, status);
	else
		print("BENCH program_run name=%s status=%d ns=%llu\n"
		      "PROGRAM name=%s status=%d\n",
		      last_part(source->name), status, ns, source->name, status);
	return status;
}

/* ---- as a payload ---- */

bool payload_of_room(void)
{
	struct program_source source;
	int status;

	if (!module_wanted())
		return false;
	if (module_program(&source) < 0) {
		verdict_count(0, 1, 0);
		return true;
	}
	status = program_run_source(&source);
	if (status >= 0)
		verdict_status((u8)status);
	verdict_count(status == 0, status != 0, 0);
	return true;
}

/* ---- calls ---- */

s64 call_exit_group(const struct call_args *args)
{
	program_end((int)(args->arg[0] & 0xff));
	return 0;
}

/*
 * If all threads end like this, the status of the program is that of its first thread. What ends
 * the program before that has the last word.
 */
s64 call_exit(const struct call_args *args)
{
	if (thread_current()->id == THREAD_FIRST_ID)
		program.exited = (int)(args->arg[0] & 0xff);
	thread_exit();
}
