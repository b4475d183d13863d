/* A program that leaves its stack, for tests/qemu/test_payload_api.py: the machine must say so. */
#include <ashlar.h>

static bool far;

OPTION_BOOL(far, far, "write far below the stack instead of recursing");

static u64 deep(u64 n)
{
	volatile u64 a[8] = {n};

	return a[0] + (n ? deep(n - 1) + a[1] : 0);
}

static void use(void)
{
	deep(100);
	deep(far ? 0 : 1 << 20);
	*(volatile char *)((char *)__builtin_frame_address(0) - MIB(2)) = 1;
}

static void on_stack(void *top, void (*fn)(void))
{
	__asm__ volatile(
		"mov %%rsp, %%rbx; mov %0, %%rsp; call *%1; mov %%rbx, %%rsp" ::"r"(top), "r"(fn)
		: "rbx", "rax", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "memory");
}

void payload_run(void)
{
	char *low = huge_map(KIB(64), PAGE_SIZE, HUGE_POPULATE);

	on_stack(low + KIB(64), use);
}
