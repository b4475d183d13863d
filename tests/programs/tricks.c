/*
 * Tricks that a program can play on a CPU in ring 3. Each trick must end in a signal or in nothing.
 *
 *	gcc -static -O1 tests/programs/tricks.c -o tricks
 *	make run PROGRAM=./tricks
 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static sigjmp_buf back;
static volatile int got, traps;
static char alt[65536], handler_stack[65536];

static void on_signal(int signal, siginfo_t *info, void *context)
{
	ucontext_t *c = context;

	if (signal == SIGTRAP && traps > 0) { /* single steps: a few, then no more */
		if (--traps == 0)
			c->uc_mcontext.gregs[REG_EFL] &= ~0x100L;
		got = signal;
		return;
	}
	got = signal;
	siglongjmp(back, 1);
}

#define TRICK(text)                                                                                \
	do {                                                                                       \
		got = 0;                                                                           \
		if (sigsetjmp(back, 1) == 0)                                                       \
			__asm__ volatile(text ::                                                   \
						 : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", \
						   "r11", "memory", "cc");                         \
		__asm__ volatile("cld");                                                           \
		printf("%2d  %s\n", got, #text);                                                   \
	} while (0)

static void jump_to(uint64_t address)
{
	got = 0;
	if (sigsetjmp(back, 1) == 0)
		((void (*)(void))address)();
	printf("%2d  jump to %lx\n", got, address);
}

static void use(uint64_t address)
{
	got = 0;
	if (sigsetjmp(back, 1) == 0)
		*(volatile char *)address = 1;
	printf("%2d  write to %lx\n", got, address);
}

static void interrupts(void)
{
	unsigned char *code = mmap(NULL, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (int n = 0; n < 256; n++) {
		code[0] = 0xcd;
		code[1] = (unsigned char)n;
		code[2] = 0xc3;
		got = 0;
		if (sigsetjmp(back, 1) == 0)
			((void (*)(void))code)();
		if (got != SIGSEGV)
			printf("%2d  int %d\n", got, n);
	}
}

/* SYSCALL as the last instruction below addresses that are not mapped, or at the end of all. */
static void call_at_end(uint64_t page)
{
	unsigned char *code =
		mmap((void *)page, 4096, 7, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	if (code == MAP_FAILED) {
		printf("    no page at %lx\n", page);
		return;
	}
	memcpy(code + 4096 - 2, "\x0f\x05", 2);
	got = 0;
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("mov $39, %%eax\njmp *%0" ::"r"(code + 4096 - 2)
				 : "rax", "rcx", "r11", "memory");
	printf("%2d  call at the end of %lx\n", got, page);
}

/* Frames that a program has made up. */
static void return_with(void (*change)(ucontext_t *))
{
	static struct {
		ucontext_t context;
		char info[128];
	} frame __attribute__((aligned(64)));
	static char vectors[8192] __attribute__((aligned(64)));

	memset(&frame, 0, sizeof(frame));
	memset(vectors, 0xff, sizeof(vectors));
	frame.context.uc_mcontext.gregs[REG_RIP] = 0x1000;
	frame.context.uc_mcontext.gregs[REG_RSP] = (long)handler_stack + 60000;
	frame.context.uc_mcontext.fpregs = (void *)vectors;
	change(&frame.context);
	got = 0;
	if (sigsetjmp(back, 1) == 0)
		__asm__ volatile("mov %0, %%rsp\nmov $15, %%eax\nsyscall\nhlt" ::"r"(&frame)
				 : "rax", "memory");
	printf("%2d  a frame of one's own\n", got);
}

static void ones(ucontext_t *c)
{
	memset(&c->uc_mcontext, 0xff, sizeof(c->uc_mcontext));
}

static void no_vectors(ucontext_t *c)
{
	c->uc_mcontext.fpregs = NULL;
	c->uc_mcontext.gregs[REG_EFL] = -1L & ~0x100L;
}

static void kernel_segments(ucontext_t *c)
{
	c->uc_mcontext.fpregs = NULL;
	c->uc_mcontext.gregs[REG_CSGSFS] = 0x0010000000000008;
	c->uc_mcontext.gregs[REG_RIP] = (long)0xffffffff80200000;
	c->uc_mcontext.gregs[REG_RSP] = (long)0xffffffff80400000;
}

static void odd_rip(ucontext_t *c)
{
	c->uc_mcontext.fpregs = NULL;
	c->uc_mcontext.gregs[REG_RIP] = 0x800000000000;
	c->uc_mcontext.gregs[REG_RSP] = 0x4000000000000000;
}

static void bad_vectors(ucontext_t *c)
{
}

static void kernel_vectors(ucontext_t *c)
{
	c->uc_mcontext.fpregs = (void *)0xffffffff80200000;
}

int main(void)
{
	const stack_t stack = {.ss_sp = alt, .ss_size = sizeof(alt)};
	struct sigaction action = {.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
	unsigned kept = 0;

	sigaltstack(&stack, NULL);
	action.sa_sigaction = on_signal;
	for (int n = 1; n < 32; n++)
		sigaction(n, &action, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	interrupts();
	TRICK("cli");
	TRICK("sti");
	TRICK("hlt");
	TRICK("in $0x80, %%al");
	TRICK("mov %%cr0, %%rax");
	TRICK("mov %%rax, %%cr3");
	TRICK("mov %%rax, %%dr7");
	TRICK("mov $0xc0000080, %%ecx\nrdmsr");
	TRICK("mov $0xc0000101, %%ecx\nmov $0xffffffff, %%edx\nwrmsr");
	TRICK("xor %%ecx, %%ecx\nrdpmc");
	TRICK("xor %%ecx, %%ecx\nmov $7, %%eax\nxor %%edx, %%edx\nxsetbv");
	TRICK("wbinvd");
	TRICK("invlpg (%%rsp)");
	TRICK("swapgs");
	TRICK("wrgsbase %%rsp");
	TRICK("mov $-1, %%rax\nwrfsbase %%rax");
	TRICK("sub $16, %%rsp\nsgdt (%%rsp)\nadd $16, %%rsp");
	TRICK("sub $16, %%rsp\nlgdt (%%rsp)\nadd $16, %%rsp");
	TRICK("str %%ax");
	TRICK("smsw %%rax");
	TRICK("clts");
	TRICK("sysenter");
	TRICK("sysretq");
	TRICK("ud2");
	TRICK("int3");
	TRICK(".byte 0xf1"); /* INT1 */
	TRICK("vmcall");
	TRICK("vmmcall");
	TRICK("monitor");
	TRICK("mwait");
	TRICK("rsm");
	for (volatile unsigned selector = 0; selector < 0x80; selector++) {
		got = 0;
		if (sigsetjmp(back, 1) == 0)
			__asm__ volatile(
				"mov %0, %%gs\nmov %0, %%es\nmov %0, %%ds" ::"r"(selector));
		kept += got == 0;
	}
	printf("    %u selectors can be loaded\n", kept);
	TRICK("pushfq\norq $0x44000, (%%rsp)\npopfq\nmov $39, %%eax\nsyscall\npushfq\nandq "
	      "$~0x44000, (%%rsp)\npopfq");
	TRICK("pushfq\norq $0x3f7fd5, (%%rsp)\nandq $~0x40100, (%%rsp)\npopfq\nmov $39, "
	      "%%eax\nsyscall\npushfq\nandq $~0x44000, (%%rsp)\npopfq");
	TRICK("pushfq\norq $0x40000, (%%rsp)\npopfq\nmov 1(%%rsp), %%rax");
	__asm__ volatile("pushfq\nandq $~0x40000, (%rsp)\npopfq");
	traps = 20;
	TRICK("pushfq\norq $0x100, (%%rsp)\npopfq\nmov $39, %%eax\nsyscall\nmov $39, "
	      "%%"
	      "eax\nsyscall\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\nnop\n"
	      "nop\nnop\nnop\nnop");
	traps = 3;
	TRICK("pushfq\norq $0x100, (%%rsp)\nmov %%ss, %%eax\npopfq\nmov %%eax, "
	      "%%ss\nsyscall\nnop\nnop\nnop");
	traps = 3;
	TRICK("pushfq\norq $0x100, (%%rsp)\nmov %%ss, %%eax\npopfq\nmov %%eax, %%ss\nint "
	      "$0x80\nnop\nnop\nnop");
	traps = 0;
	__asm__ volatile("pushfq\nandq $~0x100, (%rsp)\npopfq");
	TRICK("std\nmov $39, %%eax\nsyscall");
	TRICK("mov %%rsp, %%rbx\nmov $0xffffffff80400000, %%rsp\nmov $39, %%eax\nsyscall\nmov "
	      "%%rbx, %%rsp");
	TRICK("mov %%rsp, %%rbx\nmov $0x8000000000000000, %%rsp\nmov $39, %%eax\nsyscall\nmov "
	      "%%rbx, %%rsp");
	TRICK("mov %%rsp, %%rbx\nxor %%esp, %%esp\nmov $39, %%eax\nsyscall\nmov %%rbx, %%rsp");
	TRICK("mov $0xffffffff80400000, %%rsp\npush %%rax");
	TRICK("mov $0x4000000000000000, %%rsp\npush %%rax");
	TRICK("mov $0x4000000000000000, %%rax\nmov (%%rax), %%al");
	TRICK("mov $-1, %%rax\nsyscall");
	TRICK("xor %%edx, %%edx\nxor %%ecx, %%ecx\ndiv %%ecx");
	jump_to(0);
	jump_to(0xffffffff80200000);
	jump_to(0xffff800000000000);
	jump_to(0x7ffffffff000);
	jump_to(0x800000000000);
	jump_to(0x7fffff7ff000); /* the data of the vDSO */
	use(0xffffffff80200000);
	use(0xffff800000100000);
	use(0x7fffff7ff000);
	use(0x7fffff800000);
	call_at_end(0x7fffffffe000);
	call_at_end(0x10000000);
	return_with(ones);
	return_with(no_vectors);
	return_with(kernel_segments);
	return_with(odd_rip);
	return_with(bad_vectors);
	return_with(kernel_vectors);
	printf("tricks: done\n");
	return 0;
}
