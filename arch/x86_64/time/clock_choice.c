/* The choice of the TSC's rate; see clock_choice.h. */
#include "arch/x86_64/time/clock_choice.h"

#define PPM        1000000ULL
#define HZ_PER_MHZ 1000000ULL

/* A crystal is picked for a rate that is as near to its multiple as this. */
enum { NAME_PPM = 10000, MEASURED_PPM = 2000 };

static const u32 crystals[] = {24000000, 25000000, 19200000, 38400000};

static bool is_near(u64 a, u64 b, u64 ppm)
{
	const u64 difference = a > b ? a - b : b - a;

	return difference <= MAX(a, b) / PPM * ppm;
}

/* The ratio times a crystal, if one of them makes about `hz`; else 0. */
static u64 by_crystal(const struct tsc_facts *facts, u64 hz, u64 ppm)
{
	u64 best = 0, distance = ~0ULL;

	for (size_t i = 0; facts->numerator && facts->denominator && i < ARRAY_LEN(crystals); i++) {
		const u64 product = (u64)crystals[i] * facts->numerator / facts->denominator;
		const u64 apart = product > hz ? product - hz : hz - product;

		if (is_near(product, hz, ppm) && apart < distance) {
			best = product;
			distance = apart;
		}
	}
	return best;
}

struct tsc_claim tsc_claim_of(const struct tsc_facts *facts)
{
	const u64 base = facts->base_mhz * HZ_PER_MHZ;
	const u64 rounded = base ? by_crystal(facts, base, NAME_PPM) : 0;

	if (facts->numerator && facts->denominator && facts->crystal_hz)
		return (struct tsc_claim){.hz = (u64)facts->crystal_hz * facts->numerator /
						facts->denominator,
					  .exact = true,
					  .source = "CPUID 15h"};
	if (facts->hypervisor_khz)
		return (struct tsc_claim){.hz = facts->hypervisor_khz * 1000ULL,
					  .exact = true,
					  .source = "hypervisor CPUID"};
	if (rounded)
		return (struct tsc_claim){.hz = rounded, .source = "CPUID 15h and a known crystal"};
	return (struct tsc_claim){.hz = base, .source = "CPUID 16h"};
}

bool tsc_agrees(u64 hz, const struct tsc_measure *measure)
{
	return hz && measure->hz && is_near(hz, measure->hz, CLOCK_AGREE_PPM + measure->ppm);
}

/* The first clock that counts, or NULL. */
static const struct tsc_measure *best_of(const struct tsc_measure *measures, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (measures[i].hz)
			return &measures[i];
	return NULL;
}

/* Does another clock confirm `best`? */
static bool is_confirmed(const struct tsc_measure *best, const struct tsc_measure *measures,
			 size_t count)
{
	for (const struct tsc_measure *other = best + 1; other < measures + count; other++) {
		const struct tsc_measure sum = {other->hz, other->ppm + best->ppm};

		if (tsc_agrees(best->hz, &sum))
			return true;
	}
	return false;
}

u64 tsc_choose(const struct tsc_facts *facts, const struct tsc_measure *measures, size_t count)
{
	const struct tsc_claim claim = tsc_claim_of(facts);
	const struct tsc_measure *best = best_of(measures, count);
	u64 rounded;

	if (!best)
		return claim.hz;
	if (claim.exact && (tsc_agrees(claim.hz, best) || !is_confirmed(best, measures, count)))
		return claim.hz;
	rounded = by_crystal(facts, best->hz, MEASURED_PPM);
	return tsc_agrees(rounded, best) ? rounded : best->hz;
}
