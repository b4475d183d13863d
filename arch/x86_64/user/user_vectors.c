/*
 * The vector and x87 registers of a program; see <arch/user.h>.
 *
 *	byte 0     FXSAVE's 512 bytes: x87, MXCSR (byte 24), SSE
 *	    512    header of XSAVE: which components follow, and zeros
 *	    576    AVX and AVX-512, where the CPU has them
 *
 * XRSTOR refuses some contents with a general protection fault (Intel SDM vol. 1, 13.8.1 "Standard
 * Form of XRSTOR"; for MXCSR 11.6.6). user_vectors_load() looks for all of them first, so that it
 * need not undo anything. The exception table is there for a refusal that the manuals do not
 * mention.
 *
 * Components whose bit is clear in the header get their initial state. MXCSR has no bit and is
 * always loaded.
 */
#include "arch/x86_64/user/user_vectors.h"

#include <arch/atomic.h>
#include <arch/user.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/extable.h"
#include "kernel/lib/string.h"

enum { FXSAVE_SIZE = 512, HEADER_SIZE = 64, ALIGNMENT = 64 };
enum { CONTROL_RESET = 0x37f, MXCSR_RESET = 0x1f80, MXCSR_MASK_DEFAULT = 0xffbf };

struct fxsave {
	u16 control, status;
	u32 tags;
	u64 ip, dp;
	u32 mxcsr, mxcsr_mask;
	u8 registers[FXSAVE_SIZE - 32];
};

struct vectors {
	struct fxsave legacy;
	/* with XSAVE */
	u64 components, compact, zeros[6];
};

_Static_assert(sizeof(struct vectors) == FXSAVE_SIZE + HEADER_SIZE, "an area of XSAVE");

static const struct vectors reset __attribute__((aligned(ALIGNMENT))) = {
	.legacy = {.control = CONTROL_RESET, .mxcsr = MXCSR_RESET}};

/* CPUID is slow under a hypervisor; racing CPUs write the same value. */
size_t user_vectors_size(void)
{
	static u32 size;

	if (atomic_load_relaxed(&size) == 0)
		atomic_store_relaxed(&size, cpu_features.xsave ? cpuid(0xd, 0).ebx : FXSAVE_SIZE);
	return atomic_load_relaxed(&size);
}

u64 user_vectors_features(void)
{
	u32 low, high;

	if (!cpu_features.xsave)
		return 0;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (u64)high << 32 | low;
}

static void fxsave(struct fxsave *area)
{
	__asm__ volatile("fxsave64 (%0)" ::"r"(area) : "memory");
}

/* The bits of MXCSR that may be set. */
static u32 mxcsr_mask(void)
{
	static u32 mask;

	if (atomic_load_relaxed(&mask) == 0) {
		struct fxsave area __attribute__((aligned(16))) = {0};

		fxsave(&area);
		atomic_store_relaxed(&mask, area.mxcsr_mask ? area.mxcsr_mask : MXCSR_MASK_DEFAULT);
	}
	return atomic_load_relaxed(&mask);
}

/* XSAVE leaves gaps and most of the header as they are, and the area goes to the program. */
void user_vectors_save(void *area)
{
	memset(area, 0, user_vectors_size());
	if (cpu_features.xsave)
		__asm__ volatile("xsave64 (%0)" ::"r"(area), "a"(~0u), "d"(~0u) : "memory");
	else
		fxsave(area);
}

/* By XRSTOR or FXRSTOR, which looks at no other register. False if it faulted. */
static bool restore(const struct vectors *from)
{
	u32 low = ~0u, high = ~0u;

	return cpu_features.xsave
		       ? MAY_FAULT("xrstor64 (%[from])", [from] "+r"(from), "+a"(low), "+d"(high))
		       : MAY_FAULT("fxrstor64 (%[from])", [from] "+r"(from));
}

static bool header_is_possible(const struct vectors *from)
{
	u64 others = from->compact;

	for (size_t i = 0; i < ARRAY_LEN(from->zeros); i++)
		others |= from->zeros[i];
	return others == 0 && (from->components & ~user_vectors_features()) == 0;
}

bool user_vectors_load(const void *area)
{
	const struct vectors *from = area;

	if (from->legacy.mxcsr & ~mxcsr_mask())
		return false;
	if (cpu_features.xsave && !header_is_possible(from))
		return false;
	return restore(from);
}

void user_vectors_reset(void)
{
	restore(&reset);
}
