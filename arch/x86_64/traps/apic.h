/*
 * Local APICs. Each CPU has one, which sends and receives interprocessor interrupts.
 *
 *   xAPIC    registers in memory, IDs of 8 bits (255 addresses all)
 *   x2APIC   registers are MSRs, IDs of 32 bits
 *
 * The mode that firmware left is kept, because firmware may have a reason for xAPIC (code in SMM,
 * interrupt remapping that is off) and x2APIC cannot be left without switching the APIC off. IDs
 * above 254 need x2APIC, and `x2apic=on` asks for it (apic_setup.h). All CPUs are in the same mode.
 *
 * Source: Intel SDM vol. 3A, chapter 11 "Advanced Programmable Interrupt Controller", 11.12 for
 * x2APIC.
 */
#pragma once

#include "kernel/lib/types.h"

enum apic_mode { APIC_NONE, APIC_XAPIC, APIC_X2APIC };

/*
 * Vectors. VECTOR_IPI is 0xf0 because no interrupt that the kernel takes is more urgent. The low
 * nibble of the spurious vector should be 0xf.
 */
enum { VECTOR_TIMER = 0xe0, VECTOR_IPI = 0xf0, VECTOR_SPURIOUS = 0xff };

/* Highest ID of a CPU in xAPIC mode; 255 addresses all CPUs and so cannot be a CPU's own. */
enum { XAPIC_ID_MAX = 254 };

/*
 * Put all other CPUs back into their wait for a start-up message. Firmware may leave them spinning
 * in memory that is about to be the kernel's; under an emulator with 288 CPUs on 2 real ones they
 * take 99% of the machine. Boot CPU, as early as possible, on the boot page tables, which reach the
 * registers.
 */
void apic_silence_others(void);

/*
 * Is there a local APIC, and in which mode is it? Maps its registers if they are in memory. Boot
 * CPU, once.
 */
enum apic_mode apic_probe(void);

/*
 * Choose the mode for CPUs with IDs up to `highest_id`. `opted_out`: firmware asks for xAPIC. Boot
 * CPU, after apic_probe(), before apic_init_cpu().
 */
void apic_choose_mode(u32 highest_id, bool opted_out);

/*
 * The local pin that delivers NMIs on every CPU, or -1 for none. apic_init_cpu() opens it, so NMIs
 * must have their handler by then.
 */
extern int apic_nmi_pin;

/*
 * On every CPU: enter the chosen mode, software-enable the APIC, mask all local sources but NMI,
 * and acknowledge any interrupt left in service.
 */
void apic_init_cpu(void);

/* Raise one interrupt on this CPU, VECTOR_TIMER, after this many ticks of the APIC's clock. */
void apic_timer_once(u32 ticks); /* 0: never */
u32 apic_timer_left(void);

/* This CPU's ID in its current mode. */
u32 apic_id(void);

/* Acknowledge the interrupt being served. */
void apic_eoi(void);

/*
 * Is an interrupt of this vector waiting in this CPU's APIC, or is one in service there (delivered
 * and not yet acknowledged)?
 */
bool apic_requested(unsigned vector);
bool apic_in_service(unsigned vector);

/*
 * Commands, which are the low half of the ICR (table 11-1). `to` is ignored with a shorthand. False
 * if the APIC stays busy.
 */
enum {
	ICR_FIXED = 0 << 8,
	ICR_NMI = 4 << 8,
	ICR_INIT = 5 << 8,
	ICR_STARTUP = 6 << 8,
	ICR_ASSERT = 1 << 14,
	ICR_ALL_BUT_SELF = 3 << 18,
};
bool apic_send(u32 to, u32 command);

/*
 * Send in xAPIC mode, where a message is two writes, through `regs` (tests pass their own).
 * `nested` says that the caller is in an NMI, which may have come between the two writes of the
 * interrupted code; the value of the first write is restored.
 */
bool xapic_send(volatile void __iomem *regs, u32 to, u32 command, bool nested);

/* Registers for the AP start-up code (trampoline.S), or NULL unless in xAPIC mode. */
volatile void __iomem *apic_registers(void);
enum apic_mode apic_mode(void);

/* Keep device interrupts out by masking the two legacy controllers. Boot CPU. */
void pic_mask_all(void);
