/* Decoding of the status words of machine-check banks; see mce.h. Pure. */
#include "arch/x86_64/traps/mce_decode.h"
#include "kernel/core/printk.h"

enum { COUNT_SHIFT = 38, COUNT_MASK = 0x7fff };
enum { MISC_PHYSICAL = 2, PAGE_BITS = 12 };

bool mce_corrected(u64 status)
{
	return !(status & STATUS_UNCORRECTED);
}

bool mce_interrupts(u64 status, bool recovers)
{
	return !mce_corrected(status) && (status & STATUS_ENABLED) &&
	       (!recovers || (status & (STATUS_SIGNALED | STATUS_CONTEXT)));
}

/*
 * Does the error name a usable page address? Intel states in MISC how many low bits of the address
 * are invalid, and of what kind the address is. Other vendors leave MISC out.
 */
bool mce_names_page(const struct mce_error *error)
{
	if (error->amd || !(error->status & STATUS_VALID) || mce_corrected(error->status) ||
	    !(error->status & STATUS_ADDR_VALID))
		return false;
	if (!(error->status & STATUS_MISC_VALID))
		return true;
	return (error->misc >> 6 & 7) == MISC_PHYSICAL && (error->misc & 0x3f) <= PAGE_BITS;
}

/* Compound codes (SDM table 15-9), without bit 12, filtering: the first row that fits counts. */
static const struct {
	u16 mask, value;
	const char *kind;
} kinds[] = {
	{0xefff, 0, "no error code"},
	{0xefff, 1, "unclassified"},
	{0xefff, 2, "parity error in microcode ROM"},
	{0xefff, 4, "error seen by another CPU"},
	{0xefff, 0x400, "internal timer"},
	{0xe800, 0x800, "bus or interconnect"},
	{0xef80, 0x80, "memory controller"},
	{0xef00, 0x100, "cache hierarchy"},
	{0xeff0, 0x10, "TLB"},
	{0xeff0, 0, "generic cache hierarchy"},
	{0, 0, "unknown kind"},
};

static const char *kind_of(u16 code)
{
	unsigned i = 0;

	while ((code & kinds[i].mask) != kinds[i].value)
		i++;
	return kinds[i].kind;
}

u64 mce_corrected_count(const struct mce_error *error)
{
	const u64 count = error->status >> COUNT_SHIFT & COUNT_MASK;

	return error->counted && !error->amd && count > 1 ? count : 1;
}

void mce_describe(const struct mce_error *error, char *buf, size_t size)
{
	const u64 s = error->status, times = mce_corrected(s) ? mce_corrected_count(error) : 1;
	char where[48] = "", more[32] = "";

	if (s & STATUS_ADDR_VALID)
		format(where, sizeof(where), ", %s %llx",
		       error->amd ? "the unit's address" : "address", error->addr);
	if (times > 1)
		format(more, sizeof(more), ", %llu times", times);
	format(buf, size, "%s error, %s, bank %u, code %04x%s%s%s%s",
	       mce_corrected(s) ? "corrected" : "uncorrected", kind_of((u16)s), error->bank,
	       (unsigned)(s & 0xffff), where, more, s & STATUS_OVERFLOW ? ", others were lost" : "",
	       s & STATUS_CONTEXT ? ", the CPU's state is corrupt" : "");
}
