/*
 * Faults of the hosted machine. SIGSEGV and SIGBUS are its page faults, decoded by the same mm/
 * code as on hardware. If the load of peek_u64() faults, it is skipped instead.
 *
 * Handlers run on a stack of their own, so that a simulated CPU that overran its stack can still
 * report it.
 */
#define _GNU_SOURCE
#include <arch/peek.h>
#include <ucontext.h>

#include "mm/mapping/fault.h"
#include "tests/host/host.h"

enum { FAULT_STACK_BYTES = 256 * 1024, DESCRIPTION_MAX = 256, STACK_NEAR = 64 * 1024 };

/* Bits of the error code (Intel SDM vol. 3A, 4.7). */
enum { ERROR_WRITE = 1 << 1, ERROR_FETCH = 1 << 4 };

/*
 * bool host_peek(const void *addr, u64 *value), with labels at the load that may fault and at the
 * place to continue at if it does. It lies outside any C function, so that no compiler copies the
 * labels and no sanitizer instruments the load.
 */
__asm__(".text\n"
	".globl host_peek, host_peek_load, host_peek_failed\n"
	".type host_peek, @function\n"
	"host_peek:\n"
	"host_peek_load:\n\t"
	"movq (%rdi), %rax\n\t"
	"movq %rax, (%rsi)\n\t"
	"movl $1, %eax\n\t"
	"ret\n"
	"host_peek_failed:\n\t"
	"xorl %eax, %eax\n\t"
	"ret\n"
	".size host_peek, . - host_peek");

extern bool host_peek(const void *addr, u64 *value);
extern const char host_peek_load[], host_peek_failed[];

bool peek_u64(const void *addr, u64 *value)
{
	host_shadow_written(value, sizeof(*value));
	return host_peek(addr, value);
}

static void on_fault(int signal, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	const u64 error = (u64)uc->uc_mcontext.gregs[REG_ERR];
	const bool write = error & ERROR_WRITE, exec = error & ERROR_FETCH;
	const virt_t addr = (virt_t)info->si_addr;
	char what[DESCRIPTION_MAX];
	enum fault_result result;
	u64 flags;

	if ((virt_t)uc->uc_mcontext.gregs[REG_RIP] == (virt_t)host_peek_load) {
		uc->uc_mcontext.gregs[REG_RIP] = (greg_t)(virt_t)host_peek_failed;
		return;
	}
	if (!host_me) /* the runner itself */
		host_die("fault at %p", info->si_addr);
	if (addr - DIRECT_MAP_BASE < PAGE_SIZE)
		panic("page fault: frame 0, the address of no page, from 0x%llx",
		      uc->uc_mcontext.gregs[REG_RIP]);
	flags = host_irq_save_quiet();
	result = fault_resolve(addr, write, exec, flags);
	if (result == FAULT_RETRY) {
		host_irq_restore_quiet(flags);
		return;
	}
	fault_describe(result, addr, write, exec, what, sizeof(what));
	if (addr - (virt_t)uc->uc_mcontext.gregs[REG_RSP] + STACK_NEAR < 2 * STACK_NEAR)
		panic("CPU %u ran off its stack at 0x%llx", host_me->id, addr);
	panic("page fault: %s (%s 0x%llx from 0x%llx)", what,
	      exec    ? "execution of"
	      : write ? "write to"
		      : "read of",
	      addr, uc->uc_mcontext.gregs[REG_RIP]);
}

void host_fault_stack(void)
{
	stack_t stack = {.ss_size = FAULT_STACK_BYTES};

	stack.ss_sp = mmap(NULL, FAULT_STACK_BYTES, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (stack.ss_sp == MAP_FAILED || sigaltstack(&stack, NULL) < 0)
		host_die("no stack for faults");
}

void host_fault_init(void)
{
	struct sigaction action = {.sa_sigaction = on_fault,
				   .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}
