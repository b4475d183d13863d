/*
 * Exceptions and interrupts; see traps.h. Gates: Intel SDM vol. 3A, 6.14 "Exception and interrupt
 * handling in 64-bit mode".
 *
 * Invariants: an interrupt handler's first act is cpu_leave_rest(), before it touches any memory
 * that a shootdown may have moved. Exceptions never happen on an idle CPU (it executes HLT and
 * nothing else), so their handlers skip that call. NMIs and machine checks may happen there, so
 * their handlers do not access struct pages (kernel/core/shootdown.c).
 *
 * A trap from ring 3 interrupts no code of the kernel. Its exceptions are no mistakes of the kernel
 * and never cause a panic, except NMI, double fault, machine check and a page table with reserved
 * bits. On the way back, a CPU in ring 3 is in the ordinary context. Ring 3 is quiet, so what comes
 * from there, but for NMIs and machine checks, begins with quiet_end(), before anything else.
 */
#include "arch/x86_64/traps/traps.h"

#include <arch/atomic.h>
#include <arch/percpu.h>
#include <arch/user.h>

#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/descriptors.h"
#include "arch/x86_64/traps/mce.h"
#include "kernel/core/call.h"
#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/quiet.h"
#include "kernel/core/printk.h"
#include "mm/map/vmap.h"
#include "mm/mapping/fault.h"

enum { VECTORS = 256, STUB_SIZE = 16, GATE_INTERRUPT = 0x8e };
enum { GATE_USER = 0xee }; /* INT3 of ring 3 may use it */

struct gate {
	u16 offset0, selector;
	u8 ist, type;
	u16 offset16;
	u32 offset32, reserved;
};

extern const u8 trap_stubs[], trap_entry_end[];
/* linker.ld */
extern const char __image_text_start[], __image_text_end[], __image_rodata_start[],
	__image_rodata_end[], __image_data_start[], __image_end[];

static struct gate idt[VECTORS] __cacheline_aligned;
static trap_handler_fn *handlers[VECTORS];
static u32 unexpected[VECTORS];
static const struct trap_ring3 *ring3;

static const char *const exception_names[] = {
	"divide error",
	"debug exception",
	"non-maskable interrupt",
	"breakpoint",
	"overflow",
	"bound range exceeded",
	"invalid opcode",
	"no FPU",
	"double fault",
	"FPU segment overrun",
	"invalid TSS",
	"segment not present",
	"stack fault",
	"general protection fault",
	"page fault",
	NULL,
	"FPU error",
	"alignment check",
	"machine check",
	"SIMD error",
	"virtualization exception",
	"control protection exception",
};
_Static_assert(ARRAY_LEN(exception_names) == 22, "a name's place is its vector");

/* traps.S knows these vectors, too */
static const u8 ist_of[VECTORS] = {[TRAP_NMI] = IST_NMI,
				   [TRAP_DOUBLE_FAULT] = IST_DOUBLE_FAULT,
				   [TRAP_MACHINE_CHECK] = IST_MACHINE_CHECK};

void traps_init(void)
{
	for (unsigned i = 0; i < VECTORS; i++) {
		const u64 stub = (u64)trap_stubs + i * STUB_SIZE;

		idt[i] = (struct gate){.offset0 = (u16)stub,
				       .selector = SELECTOR_CODE,
				       .ist = ist_of[i],
				       .type = i == TRAP_BREAKPOINT ? GATE_USER : GATE_INTERRUPT,
				       .offset16 = (u16)(stub >> 16),
				       .offset32 = (u32)(stub >> 32)};
	}
}

void traps_load(void)
{
	const struct descriptor_pointer pointer = {sizeof(idt) - 1, (u64)idt};

	__asm__ volatile("lidt %0" ::"m"(pointer));
}

/* The offsets that traps.S uses, as symbols of the linker. */
__attribute__((used, noinline)) static void define_offsets(void)
{
	__asm__ volatile(
		".globl percpu_user_stack, percpu_user_rsp\n"
		".set percpu_user_stack, %c0\n"
		".set percpu_user_rsp, %c1\n" ::"i"(offsetof(struct percpu, arch.user_stack)),
		"i"(offsetof(struct percpu, arch.user_rsp)));
}

void trap_set_handler(unsigned vector, trap_handler_fn *fn)
{
	ASSERT(vector < VECTORS, "handler for vector %u", vector);
	atomic_store_release(&handlers[vector], fn);
}

/*
 * Handle an interrupt without a handler. If the APIC delivered it, it is in service there and would
 * hold back all interrupts that are no more urgent, such as the timer's, so it is acknowledged. A
 * spurious interrupt and an INT instruction are not in service; acknowledging one would end another
 * interrupt (SDM vol. 3A, 11.8.5 "Signaling Interrupt Servicing Completion", 11.9).
 */
static void handle_unexpected(unsigned vector)
{
	if (apic_in_service(vector))
		apic_eoi();
	if (atomic_fetch_add(&unexpected[vector], 1) == 0)
		pr_warn("unexpected interrupt, vector %u; further ones are not reported", vector);
}

static inline void run_handler(struct trap_frame *frame)
{
	trap_handler_fn *fn;

	context_enter(CONTEXT_INTERRUPT);
	fn = atomic_load_acquire(&handlers[frame->vector]);
	if (fn)
		fn(frame);
	else
		handle_unexpected((unsigned)frame->vector);
	context_leave(CONTEXT_INTERRUPT);
}

/* An interrupt of a quiet program. */
static __attribute__((noinline)) void handle_and_resume(struct trap_frame *frame)
{
	run_handler(frame);
	quiet_resume(true);
}

static void handle_interrupt(struct trap_frame *frame)
{
	cpu_leave_rest();
	if (quiet_suspend())
		handle_and_resume(frame);
	else
		run_handler(frame);
}

/*
 * Describe an access inside the kernel image that faulted. NULL if `addr` lies elsewhere or the
 * access is allowed.
 */
static const char *image_fault_describe(virt_t addr, bool write, bool exec)
{
	if (addr >= (virt_t)__image_text_start && addr < (virt_t)__image_text_end)
		return write ? "write to the kernel's text" : NULL;
	if (addr >= (virt_t)__image_rodata_start && addr < (virt_t)__image_rodata_end)
		return write  ? "write to a constant of the kernel"
		       : exec ? "execution of a constant"
			      : NULL;
	if (addr >= (virt_t)__image_data_start && addr < (virt_t)__image_end)
		return exec ? "execution of data" : NULL;
	return NULL;
}

static void handle_page_fault(struct trap_frame *frame)
{
	const virt_t addr = read_cr2();
	const bool write = frame->error & PF_WRITE, exec = frame->error & PF_EXEC;
	const bool program = addr < USER_END;
	const char *stack, *image;
	enum fault_result result;
	char text[256];

	if (extable_fixup(frame))
		return;
	/* a retry cannot help, because the entry itself is broken */
	if (frame->error & PF_RESERVED)
		panic("page fault at %llx: a page-table entry on the way has reserved bits set",
		      addr);
	/* The kernel never follows a program's address. SMAP and SMEP refuse even mapped ones. */
	result = program ? FAULT_BUG
			 : fault_resolve(addr, write, exec, frame->rflags & RFLAGS_INTERRUPTS);
	if (result == FAULT_RETRY)
		return;
	if (program && frame->error & PF_PRESENT)
		panic("page fault at %llx: the kernel used the memory of a program", addr);
	if (boot_guard_hit(addr, &stack))
		panic("page fault at %llx: stack guard of CPU 0 (%s)", addr, stack);
	image = image_fault_describe(addr, write, exec);
	if (image)
		panic("page fault at %llx: %s", addr, image);
	fault_describe(result, addr, write, exec, text, sizeof(text));
	panic("page fault at %llx: %s", addr, text);
}

/*
 * A stack that runs into its guard page has no room for the page fault's frame, so the CPU raises a
 * double fault, with the address still in CR2.
 */
static void handle_double_fault(const struct trap_frame *frame)
{
	const virt_t addr[2] = {read_cr2(), frame->rsp - sizeof(u64)};
	const char *stack;
	unsigned index;

	for (size_t i = 0; i < ARRAY_LEN(addr); i++) {
		if (boot_guard_hit(addr[i], &stack))
			panic("double fault: stack overflow, guard page of CPU 0's %s stack hit at "
			      "%llx",
			      stack, addr[i]);
		if (vmap_guard_hit(addr[i], &index))
			panic("double fault: stack overflow on CPU %u, guard page of stack %u hit "
			      "at %llx",
			      cpu_id(), index, addr[i]);
	}
	panic("double fault, CR2 %llx", addr[0]);
}

static void handle_exception(struct trap_frame *frame)
{
	const char *name =
		frame->vector < ARRAY_LEN(exception_names) ? exception_names[frame->vector] : NULL;
	trap_handler_fn *fn = atomic_load_acquire(&handlers[frame->vector]);

	if (fn) {
		fn(frame);
		return;
	}
	switch (frame->vector) {
	case TRAP_PAGE_FAULT:
		handle_page_fault(frame);
		return;
	case TRAP_DOUBLE_FAULT:
		handle_double_fault(frame);
		return;
	case TRAP_MACHINE_CHECK:
		mce_handle(frame);
		return;
	default:
		if (!extable_fixup(frame))
			panic("%s (vector %llu, error code %llx)",
			      name ? name : "reserved exception", frame->vector, frame->error);
	}
}

/*
 * If the NMI or machine check came between STI and HLT, skip the HLT. An interrupt that it let in
 * has been handled and would not end the halt.
 */
static void skip_halt(struct trap_frame *frame)
{
	enum { HLT_SIZE = 1 };

	if (frame->rip == (u64)halt_insn)
		frame->rip += HLT_SIZE;
}

/*
 * An NMI or a machine check may come between a page fault and its handler's read of CR2, and may
 * fault itself (peek_u64()). CR2 is therefore restored, but only if it has changed, because writing
 * it is slow.
 */
static void handle_anywhere(struct trap_frame *frame)
{
	const u64 cr2 = read_cr2();

	context_enter(CONTEXT_NMI);
	handle_exception(frame);
	context_leave(CONTEXT_NMI);
	if (read_cr2() != cr2)
		write_cr2(cr2);
	skip_halt(frame);
}

void trap_set_ring3(const struct trap_ring3 *functions)
{
	atomic_store_release(&ring3, functions);
}

bool trap_is_entry(u64 rip)
{
	return rip - (u64)trap_stubs < (u64)(trap_entry_end - trap_stubs);
}

static void dispatch_ring3(struct trap_frame *frame)
{
	struct arch_percpu *arch = &this_cpu()->arch;

	quiet_end();
	if (frame->vector >= TRAP_FIRST_INTERRUPT) {
		handle_interrupt(frame);
	} else if (frame->vector == TRAP_PAGE_FAULT && (frame->error & PF_RESERVED)) {
		arch->trap = frame;
		panic("page fault of a program at %llx: a page-table entry on the way has reserved "
		      "bits set",
		      read_cr2());
	} else {
		ring3->exception(frame);
	}
	ring3->before_return(frame);
}

bool trap_call(struct trap_frame *frame)
{
	quiet_end();
	ring3->call(frame);
	ring3->before_return(frame);
	return frame->rcx == frame->rip && frame->r11 == frame->rflags &&
	       !(frame->rflags & (RFLAGS_TRAP | RFLAGS_RESUME));
}

bool trap_dispatch(struct trap_frame *frame)
{
	struct arch_percpu *arch = &this_cpu()->arch;
	struct trap_frame *outer = arch->trap;

	if (trap_from_ring3(frame) && ist_of[frame->vector] == IST_NONE) {
		dispatch_ring3(frame);
		return false;
	}
	if (frame->vector >= TRAP_FIRST_INTERRUPT) {
		handle_interrupt(frame);
		return context_in(CONTEXT_NMIS);
	}
	arch->trap = frame;
	if (frame->vector == TRAP_NMI || frame->vector == TRAP_MACHINE_CHECK)
		handle_anywhere(frame);
	else
		handle_exception(frame);
	arch->trap = outer;
	return context_in(CONTEXT_NMIS);
}
