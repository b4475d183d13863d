/*
 * Backtraces from frame pointers, and a panic's report on this CPU.
 *
 *	rbp -> | caller's rbp | return address |     frames lie at rising addresses
 *
 * A frame chain may be garbage when it is needed most. Every word is therefore read with
 * peek_u64(). Frames must rise, be 8-aligned and lie in the kernel's half, and return addresses
 * must lie in the text. The first frame that breaks a rule ends the walk.
 *
 * A program in ring 3 sets RBP and RSP as it likes. They are not followed where they may be the
 * program's; RIP alone is reported there.
 */
#include "arch/x86_64/interrupts/backtrace.h"

#include <arch/console.h>
#include <arch/cpu.h>
#include <arch/peek.h>
#include <arch/percpu.h>

#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/cpu/trap_frame.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"

#define KERNEL_HALF 0xffff800000000000ULL

enum { BACKTRACE_MAX = 24 };

extern const char __image_text_start[], __image_text_end[];

static bool in_text(virt_t addr)
{
	return addr >= (virt_t)__image_text_start && addr < (virt_t)__image_text_end;
}

static size_t walk_frames(virt_t frame, virt_t *out, size_t max)
{
	virt_t last = KERNEL_HALF;
	size_t n = 0;
	u64 next, ret;

	while (n < max && frame > last && IS_ALIGNED(frame, sizeof(u64))) {
		if (!peek_u64((void *)frame, &next) ||
		    !peek_u64((void *)(frame + sizeof(u64)), &ret) || !in_text(ret))
			break;
		out[n++] = ret;
		last = frame;
		frame = next;
	}
	return n;
}

/* May RBP and RSP in the frame be followed? */
static bool is_kernel(const struct trap_frame *frame)
{
	return !trap_from_ring3(frame) && !trap_is_entry(frame->rip);
}

size_t backtrace_of(const struct trap_frame *frame, virt_t *out, size_t max)
{
	if (max == 0)
		return 0;
	out[0] = frame->rip;
	if (!is_kernel(frame))
		return 1;
	return 1 + walk_frames(frame->rbp, out + 1, max - 1);
}

size_t backtrace_capture(virt_t *out, size_t max)
{
	return walk_frames((virt_t)__builtin_frame_address(0), out, max);
}

/*
 * Print `addr` with its symbol. `back` is 1 for a return address, which belongs to the call before
 * it.
 */
static void print_code(const char *prefix, virt_t addr, u64 back)
{
	u64 offset = 0;
	const char *name = symbol_lookup(addr - back, &offset);

	if (name)
		print("%s%016llx  %s+0x%llx\n", prefix, addr, name, offset + back);
	else
		print("%s%016llx\n", prefix, addr);
}

static void print_registers(const struct trap_frame *f)
{
	print("rax %016llx rbx %016llx rcx %016llx rdx %016llx\n", f->rax, f->rbx, f->rcx, f->rdx);
	print("rsi %016llx rdi %016llx rbp %016llx rsp %016llx\n", f->rsi, f->rdi, f->rbp, f->rsp);
	print("r8  %016llx r9  %016llx r10 %016llx r11 %016llx\n", f->r8, f->r9, f->r10, f->r11);
	print("r12 %016llx r13 %016llx r14 %016llx r15 %016llx\n", f->r12, f->r13, f->r14, f->r15);
	print("rflags %llx cs %llx ss %llx vector %llu error %llx\n", f->rflags, f->cs, f->ss,
	      f->vector, f->error);
}

/*
 * A jump to an address outside the text leaves no frame of its own, but the caller's return address
 * is on top of the stack.
 */
static void print_caller(const struct trap_frame *trap)
{
	u64 ret;

	if (!in_text(trap->rip) && peek_u64((void *)trap->rsp, &ret) && in_text(ret))
		print_code("called from ", ret, 1);
}

static void print_backtrace(const virt_t *ret, size_t n)
{
	print("backtrace:\n");
	for (size_t i = 0; i < n; i++)
		print_code("  ", ret[i], 1);
}

void panic_arch(void)
{
	const struct trap_frame *trap = this_cpu()->arch.trap;
	virt_t ret[BACKTRACE_MAX];

	cpus_stop_others();
	if (trap) {
		print_code(trap_from_ring3(trap) ? "ring 3, rip " : "rip ", trap->rip, 0);
		if (is_kernel(trap))
			print_caller(trap);
		print_registers(trap);
	}
	print("cr0 %llx cr2 %llx cr3 %llx cr4 %llx\n", read_cr0(), read_cr2(), read_cr3(),
	      read_cr4());
	if (trap)
		print_backtrace(ret,
				is_kernel(trap) ? walk_frames(trap->rbp, ret, BACKTRACE_MAX) : 0);
	else
		print_backtrace(ret, backtrace_capture(ret, BACKTRACE_MAX));
}
