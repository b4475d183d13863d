/*
 * Machine-check banks of this CPU; see mce.h.
 *
 * The handler may interrupt any code, including code that holds locks, and runs on a stack of its
 * own. It only writes atomic counters and lists of page numbers, and prints. It does not take pages
 * out of use, because a CPU that was idle has not flushed yet (kernel/core/shootdown.c);
 * mm/contig/bad_report.c does that later, in a context that may.
 */
#include "arch/x86_64/traps/mce.h"

#include <arch/atomic.h>

#include "arch/x86_64/cpu/cpuid.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/cpu/msr.h"
#include "arch/x86_64/traps/mce_decode.h"
#include "arch/x86_64/traps/traps.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/contig/bad_frames.h"
#include "mm/contig/bad_report.h"

enum {
	MSR_MCG_CAP = 0x179,
	MSR_MCG_STATUS = 0x17a,
	MSR_MCG_CTL = 0x17b,
	MSR_MC_CTL = 0x400,
	MSRS_PER_BANK = 4
};
enum {
	MC_STATUS = 1,
	MC_ADDR = 2,
	MC_MISC = 3,
	CAP_BANKS = 0xff,
	CAP_CTL = 1 << 8,
	CAP_COUNTS = 1 << 10,
	CPUID_1_EDX_MCA = 1 << 14,
	CPUID_0_ECX_INTEL = 0x6c65746e, /* "ntel" */
	CPUID_0_ECX_AMD = 0x444d4163,   /* "cAMD" */
	CPUID_0_ECX_HYGON = 0x656e6975  /* "uine" */
};
enum { MCG_RIPV = 1 << 0, NAMED_MAX = 16 };

/* AMD's scalable banks (CPUID 80000007h, EBX[3]); the syndrome is valid if bit 53 says so. */
enum { MSR_SMCA_SYNDROME = 0xc0002006, SMCA_MSRS_PER_BANK = 0x10, CPUID_SMCA = 1 << 3 };

#define STATUS_SYNDROME (1ULL << 53)
#define STATUS_CONTEXT  (1ULL << 57)

static u64 corrected, uncorrected;
static u32 named; /* corrected errors that were printed; in a storm further ones are only counted */
static u64 pages_noted;
static pfn_t pages[MCE_PAGES_MAX];

static unsigned banks(void)
{
	u64 caps;

	return cpuid(1, 0).edx & CPUID_1_EDX_MCA && rdmsr_safe(MSR_MCG_CAP, &caps)
		       ? caps & CAP_BANKS
		       : 0;
}

static u64 bank_read(unsigned bank, unsigned reg)
{
	u64 value;

	return rdmsr_safe(MSR_MC_CTL + bank * MSRS_PER_BANK + reg, &value) ? value : 0;
}

static void note_page(const struct mce_error *error)
{
	const u64 n = atomic_fetch_add(&pages_noted, 1);

	if (n < MCE_PAGES_MAX)
		atomic_store_relaxed(&pages[n], error->addr >> PAGE_SHIFT);
	mm_report_bad(&mm_kernel, error->addr >> PAGE_SHIFT);
}

static void count(const struct mce_error *error)
{
	char text[160];

	if (mce_corrected(error->status))
		atomic_add_relaxed(&corrected, mce_corrected_count(error));
	else
		atomic_add_relaxed(&uncorrected, 1);
	if (mce_names_page(error))
		note_page(error);
	if (mce_corrected(error->status) && atomic_fetch_add(&named, 1) >= NAMED_MAX)
		return;
	mce_describe(error, text, sizeof(text));
	print("machine check on CPU %u: %s\n", cpu_id(), text);
}

static bool has_amd_banks(void)
{
	const u32 vendor = cpuid(0, 0).ecx;

	return vendor == CPUID_0_ECX_AMD || vendor == CPUID_0_ECX_HYGON;
}

static u64 read_syndrome(unsigned bank)
{
	u64 value;

	return (cpuid(0x80000007, 0).ebx & CPUID_SMCA) &&
			       rdmsr_safe(MSR_SMCA_SYNDROME + bank * SMCA_MSRS_PER_BANK, &value)
		       ? value
		       : 0;
}

/*
 * Take the error that a bank holds; false if there is none. Writing zeros makes room for the next
 * error.
 */
static bool take(unsigned bank, struct mce_error *error)
{
	u64 caps;

	*error = (struct mce_error){.bank = bank, .status = bank_read(bank, MC_STATUS)};
	if (!mce_valid(error->status))
		return false;
	error->addr = error->status >> 58 & 1 ? bank_read(bank, MC_ADDR) : 0;
	error->misc = error->status >> 59 & 1 ? bank_read(bank, MC_MISC) : 0;
	error->amd = has_amd_banks();
	error->counted = rdmsr_safe(MSR_MCG_CAP, &caps) && (caps & CAP_COUNTS);
	if (error->amd && (error->status & STATUS_SYNDROME))
		error->syndrome = read_syndrome(bank);
	wrmsr_safe(MSR_MC_CTL + bank * MSRS_PER_BANK + MC_STATUS, 0);
	return true;
}

void mce_poll(void *unused)
{
	const unsigned n = banks();
	struct mce_error error;

	(void)unused;
	for (unsigned bank = 0; bank < n; bank++)
		if (take(bank, &error))
			count(&error);
}

/*
 * The first bank that the kernel may switch on. On Intel's family 6 before Nehalem bank 0 is left
 * to firmware (SDM vol. 3B, 15.3.2.1).
 */
static unsigned first_bank(void)
{
	const u32 id = cpuid(1, 0).eax, model = (id >> 4 & 0xf) | (id >> 12 & 0xf0);

	return cpuid(0, 0).ecx == CPUID_0_ECX_INTEL && (id >> 8 & 0xf) == 6 && model < 0x1a;
}

void mce_init_cpu(void)
{
	const unsigned n = banks();
	u64 caps;

	mce_poll(NULL);
	if (n && rdmsr_safe(MSR_MCG_CAP, &caps) && (caps & CAP_CTL))
		wrmsr_safe(MSR_MCG_CTL, ~0ULL);
	for (unsigned bank = first_bank(); bank < n; bank++)
		wrmsr_safe(MSR_MC_CTL + bank * MSRS_PER_BANK, ~0ULL);
}

void mce_handle(struct trap_frame *frame)
{
	const unsigned n = banks();
	struct mce_error error;
	bool lost = false;
	u64 status = 0;

	(void)frame;
	rdmsr_safe(MSR_MCG_STATUS, &status);
	for (unsigned bank = 0; bank < n; bank++) {
		if (!take(bank, &error))
			continue;
		count(&error);
		lost |= !mce_corrected(error.status) &&
			((error.status & STATUS_CONTEXT) || !mce_names_page(&error));
	}
	if (!(status & MCG_RIPV) || lost)
		panic("machine check: the interrupted code cannot continue");
	/* a further machine check before this would shut the CPU down */
	wrmsr_safe(MSR_MCG_STATUS, 0);
}

struct mce_totals mce_totals(void)
{
	return (struct mce_totals){.corrected = atomic_load_relaxed(&corrected),
				   .uncorrected = atomic_load_relaxed(&uncorrected),
				   .pages = (size_t)atomic_load_relaxed(&pages_noted)};
}

pfn_t mce_page(size_t n)
{
	return n < MIN((u64)MCE_PAGES_MAX, atomic_load_relaxed(&pages_noted))
		       ? atomic_load_relaxed(&pages[n])
		       : PFN_NONE;
}
