/*
 * Machine-check banks of this CPU; see mce.h.
 *
 * The handler may interrupt any code, including code that holds locks, and runs on a stack of its
 * own. It only counts, reports the page and prints. It does not take pages out of use, because a
 * CPU that was idle has not flushed yet (kernel/core/shootdown.c); mm/contig/bad_frames.c does that
 * later, in a context that may.
 */
#include "arch/x86_64/traps/mce.h"

#include <arch/atomic.h>

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/extable.h"
#include "arch/x86_64/traps/mce_decode.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "mm/contig/bad_frames.h"

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
	CAP_RECOVERS = 1 << 24,
	CPUID_1_EDX_MCA = 1 << 14
};
enum { MCG_RIPV = 1 << 0, NAMED_MAX = 16 };
enum { POLLED = 1 << 0, INTERRUPTING = 1 << 1, ANY = POLLED | INTERRUPTING };

struct mce_totals mce_totals;             /* atomic until the run is over */
u32 mce_reader, mce_turn_spins = 1 << 22; /* some 0.2 s */
static u32 named; /* corrected errors that were printed; in a storm further ones are only counted */

static u64 capabilities(void)
{
	u64 caps;

	return cpuid(1, 0).edx & CPUID_1_EDX_MCA && rdmsr_safe(MSR_MCG_CAP, &caps) ? caps : 0;
}

static unsigned banks(void)
{
	return capabilities() & CAP_BANKS;
}

static u64 bank_read(unsigned bank, unsigned reg)
{
	u64 value;

	return rdmsr_safe(MSR_MC_CTL + bank * MSRS_PER_BANK + reg, &value) ? value : 0;
}

static void count(const struct mce_error *error)
{
	char text[160];

	if (mce_corrected(error->status))
		atomic_add_relaxed(&mce_totals.corrected, mce_corrected_count(error));
	else
		atomic_add_relaxed(&mce_totals.uncorrected, 1);
	if (mce_names_page(error)) {
		atomic_add_relaxed(&mce_totals.pages, 1);
		mm_report_bad(&mm_kernel, error->addr >> PAGE_SHIFT);
	}
	if (mce_corrected(error->status) && atomic_fetch_add(&named, 1) >= NAMED_MAX)
		return;
	mce_describe(error, text, sizeof(text));
	print("machine check on CPU %u: %s\n", cpu_id(), text);
}

/*
 * Take the error that a bank holds; false if there is none of these kinds. One read tells both,
 * because a worse error may come meanwhile. Writing zeros makes room for the next error.
 */
static bool take(unsigned bank, struct mce_error *error, unsigned which)
{
	*error = (struct mce_error){.bank = bank, .status = bank_read(bank, MC_STATUS)};
	if (!(error->status & STATUS_VALID) ||
	    !(which & (mce_interrupts(error->status, capabilities() & CAP_RECOVERS) ? INTERRUPTING
										    : POLLED)))
		return false;
	error->addr = error->status & STATUS_ADDR_VALID ? bank_read(bank, MC_ADDR) : 0;
	error->misc = error->status & STATUS_MISC_VALID ? bank_read(bank, MC_MISC) : 0;
	error->amd = cpu_features.amd;
	error->counted = capabilities() & CAP_COUNTS;
	wrmsr_safe(MSR_MC_CTL + bank * MSRS_PER_BANK + MC_STATUS, 0);
	return true;
}

/*
 * Begin this CPU's turn at a bank, after *spins checks at most, which count down. False if it did
 * not come, or if what was interrupted has it.
 */
static bool turn_begin(u32 *spins)
{
	const u32 mine = cpu_id() + 1;

	for (;; --*spins) {
		const u32 reader = atomic_load_relaxed(&mce_reader);

		if (!reader && atomic_cas(&mce_reader, 0, mine))
			return true;
		if (*spins == 0 || reader == mine)
			return false;
		cpu_relax();
	}
}

static void turn_end(void)
{
	atomic_store_release(&mce_reader, 0);
}

/* Take any error, without a turn if none comes. If a poll was interrupted, leave what it takes. */
static bool take_at_once(unsigned bank, struct mce_error *error, u32 *spins)
{
	bool turn, taken;
	unsigned which = ANY;

	if (!(bank_read(bank, MC_STATUS) & STATUS_VALID)) /* needs no turn, and most are empty */
		return false;
	turn = turn_begin(spins);
	if (!turn && atomic_load_relaxed(&mce_reader) == cpu_id() + 1)
		which = INTERRUPTING;
	taken = take(bank, error, which);
	if (turn)
		turn_end();
	return taken;
}

/* An NMI that polls may come before the handler, which alone decides, has read its error. */
static bool poll_bank(unsigned bank, u32 spins)
{
	struct mce_error error;
	bool taken;

	if (!turn_begin(&spins))
		return false;
	taken = take(bank, &error, POLLED);
	turn_end();
	if (taken)
		count(&error);
	return true;
}

bool mce_poll(void)
{
	const unsigned n = banks();

	for (unsigned bank = 0; bank < n; bank++)
		if (!poll_bank(bank, 0))
			return false;
	return true;
}

void mce_poll_all(void *unused)
{
	const unsigned n = banks();

	for (unsigned bank = 0; bank < n; bank++)
		if (bank_read(bank, MC_STATUS) & STATUS_VALID)
			poll_bank(bank, mce_turn_spins);
}

/*
 * The first bank that the kernel may switch on. On Intel's family 6 before Nehalem bank 0 is left
 * to firmware (SDM vol. 3B, 15.3.2.1).
 */
static unsigned first_bank(void)
{
	const u32 id = cpuid(1, 0).eax, model = (id >> 4 & 0xf) | (id >> 12 & 0xf0);

	return cpu_features.intel && (id >> 8 & 0xf) == 6 && model < 0x1a;
}

void mce_init_cpu(void)
{
	const unsigned n = banks();
	u32 spins = mce_turn_spins;
	struct mce_error error;

	for (unsigned bank = 0; bank < n; bank++) /* of before, whatever they did then */
		if (take_at_once(bank, &error, &spins))
			count(&error);
	if (n && (capabilities() & CAP_CTL))
		wrmsr_safe(MSR_MCG_CTL, ~0ULL);
	for (unsigned bank = first_bank(); bank < n; bank++)
		wrmsr_safe(MSR_MC_CTL + bank * MSRS_PER_BANK, ~0ULL);
}

void mce_handle(struct trap_frame *frame)
{
	const u64 stops = STATUS_CONTEXT | (capabilities() & CAP_RECOVERS ? STATUS_ACTION : 0);
	const unsigned n = banks();
	u32 spins = mce_turn_spins;
	struct mce_error error;
	bool lost = false;
	u64 status = 0;

	rdmsr_safe(MSR_MCG_STATUS, &status);
	for (unsigned bank = 0; bank < n; bank++) {
		if (!take_at_once(bank, &error, &spins))
			continue;
		count(&error);
		lost |= !mce_corrected(error.status) &&
			((error.status & stops) || !mce_names_page(&error));
	}
	if (!(status & MCG_RIPV) || lost)
		panic("machine check: the interrupted code cannot continue");
	/* a further machine check before this would shut the CPU down */
	wrmsr_safe(MSR_MCG_STATUS, 0);
}
