/*
 * Unexpected interrupts: one holds no other back, and only what the APIC delivered is acknowledged.
 * The hosted machine has no APIC.
 */
#ifndef ASHLAR_HOSTED

#include "arch/x86_64/traps/apic.h"
#include "arch/x86_64/traps/traps.h"
#include "tests/kernel/test.h"

#define LIMIT (2 * NS_PER_S)

static bool wait_until(const u32 *flag, u64 limit)
{
	const u64 start = clock_ns();

	while (!atomic_load_acquire(flag) && clock_ns() - start < limit)
		cpu_relax();
	return atomic_load_acquire(flag);
}

/* Both have a higher priority than the timer's vector, 0xe0. */
enum { VECTOR_UNKNOWN = 0xe5, VECTOR_BY_INSTRUCTION = 0xe6 };

static u32 came;

static void note(void *arg)
{
	atomic_store_release(&came, 1);
}

TEST(kernel_irq, one_that_nobody_expects_holds_no_other_back)
{
	if (apic_mode() == APIC_NONE)
		SKIP("needs a local APIC");
	came = 0;
	EXPECT(apic_send(this_cpu()->arch.apic_id, ICR_FIXED | ICR_ASSERT | VECTOR_UNKNOWN));
	clock_delay_ns(NS_PER_MS);
	EXPECT(!apic_requested(VECTOR_UNKNOWN));
	EXPECT(!apic_in_service(VECTOR_UNKNOWN));
	REQUIRE(timer_once(NS_PER_MS, note, NULL) == 0);
	EXPECT(wait_until(&came, LIMIT));
	while (apic_in_service(VECTOR_UNKNOWN))
		apic_eoi(); /* later cases need their timer */
}

/*
 * An INT instruction is no interrupt of the APIC. Acknowledging it would end the interrupt that is
 * in service.
 */
enum { VECTOR_SERVED = 0xe4 };
static bool served[2];

static void interrupt_by_instruction(struct trap_frame *frame)
{
	served[0] = apic_in_service(VECTOR_SERVED);
	__asm__ volatile("int %0" ::"i"(VECTOR_BY_INSTRUCTION) : "memory");
	served[1] = apic_in_service(VECTOR_SERVED);
	if (served[1])
		apic_eoi();
	note(NULL);
}

TEST(kernel_irq, only_what_the_apic_delivered_is_acknowledged)
{
	if (apic_mode() == APIC_NONE)
		SKIP("needs a local APIC");
	came = 0;
	trap_set_handler(VECTOR_SERVED, interrupt_by_instruction);
	EXPECT(apic_send(this_cpu()->arch.apic_id, ICR_FIXED | ICR_ASSERT | VECTOR_SERVED));
	EXPECT(wait_until(&came, LIMIT));
	trap_set_handler(VECTOR_SERVED, NULL);
	EXPECT(served[0]);
	EXPECT(served[1]);
}

#endif
