/* Decoding of the status words of machine-check banks; see mce.h. Pure. */
#include "arch/x86_64/traps/mce_decode.h"
#include "kernel/core/printk.h"

#define STATUS_VALID       (1ULL << 63)
#define STATUS_OVERFLOW    (1ULL << 62)
#define STATUS_UNCORRECTED (1ULL << 61)
#define STATUS_MISC_VALID  (1ULL << 59)
#define STATUS_ADDR_VALID  (1ULL << 58)
#define STATUS_CONTEXT     (1ULL << 57) /* processor context corrupt */

enum { COUNT_SHIFT = 38, COUNT_MASK = 0x7fff };
enum { MISC_PHYSICAL = 2, PAGE_BITS = 12 };

bool mce_valid(u64 status)
{
	return status & STATUS_VALID;
}

bool mce_corrected(u64 status)
{
	return !(status & STATUS_UNCORRECTED);
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

/* Compound codes (SDM table 15-9): the highest set bits tell the kind. */
static const char *kind_of(u16 code)
{
	const u16 plain = code & 0xefff; /* bit 12: filtering */

	if (plain == 0)
		return "no error code";
	if (plain == 1)
		return "unclassified";
	if (plain == 2)
		return "parity error in microcode ROM";
	if (plain == 4)
		return "error seen by another CPU";
	if (plain == 0x400)
		return "internal timer";
	if ((plain & 0xf800) == 0x800)
		return "bus or interconnect";
	if ((plain & 0xff80) == 0x80)
		return "memory controller";
	if ((plain & 0xff00) == 0x100)
		return "cache hierarchy";
	if ((plain & 0xfff0) == 0x10)
		return "TLB";
	if ((plain & 0xfff0) == 0x0)
		return "generic cache hierarchy";
	return "unknown kind";
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
