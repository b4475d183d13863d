/*
 * Local APICs: one per CPU, the part that sends and receives interprocessor interrupts.
 *
 *   xAPIC    registers in memory, IDs of 8 bits (255 addresses all)
 *   x2APIC   registers are MSRs, IDs of 32 bits
 *
 * x2APIC is used wherever the CPU has it: it is needed for IDs above 254, cannot be left without switching the APIC off
 * if firmware has turned it on, and its one-write ICR is the simpler and faster. `x2apic=off` keeps xAPIC where that is
 * possible. All CPUs are in the same mode.
 *
 * Source: Intel SDM vol. 3A, chapter 11 "Advanced Programmable Interrupt Controller", 11.12 for x2APIC.
 */
#pragma once

#include "kernel/types.h"

enum apic_mode { APIC_NONE, APIC_XAPIC, APIC_X2APIC };

/* Vectors. 0xf0: nothing we take is more urgent, and the low nibble of the spurious one should be 0xf. */
enum { VECTOR_TIMER = 0xe0, VECTOR_IPI = 0xf0, VECTOR_SPURIOUS = 0xff };

/* IDs that address all CPUs and so cannot be one's own: 255 in xAPIC mode. */
enum { XAPIC_ID_MAX = 254 };

/*
 * Put all other CPUs back into their wait for a start-up message. Firmware may leave them spinning (under an emulator
 * with 288 CPUs on 2 real ones they take 99% of the machine), and in memory that is about to be ours. Boot CPU, as
 * early as possible; on the boot page tables, which reach the registers.
 */
void apic_silence_others(void);

/* Is there one, and in which mode? Maps its registers if they are in memory. Boot CPU, once. */
enum apic_mode apic_probe(void);

/* Settle the mode for CPUs with IDs up to `highest_id`. Boot CPU, after apic_probe(), before apic_init_cpu(). */
enum apic_mode apic_choose_mode(u32 highest_id);

/* Pin that delivers NMIs on every CPU, or -1: taken over by apic_init_cpu(). */
void apic_set_nmi_pin(int pin);

/* Every CPU: mode as chosen, software-enabled, all local sources masked but NMI, nothing left in service. */
void apic_init_cpu(void);

/* One interrupt on this CPU, VECTOR_TIMER, after so many ticks of the APIC's clock. */
void apic_timer_once(u32 ticks); /* 0: never */
u32 apic_timer_left(void);

/* This CPU's ID in the mode it is in. */
u32 apic_id(void);

/* Acknowledge the interrupt being served. */
void apic_eoi(void);

/* Does this CPU's APIC hold an interrupt of that vector back, or count one as being served (delivered, not acknowledged)? */
bool apic_requested(unsigned vector);
bool apic_in_service(unsigned vector);

/* Commands: low half of the ICR (table 11-1); `to` is ignored with a shorthand. False if the APIC stays busy. */
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
 * The same in xAPIC mode, where a message is two writes, through `regs` (tests have their own). `nested`: in an NMI, which may have come
 * between the two writes of what it interrupted: the first is put back.
 */
bool xapic_send(volatile void __iomem *regs, u32 to, u32 command, bool nested);

/* Registers for the AP start-up code (trampoline.S), or NULL in x2APIC mode. */
volatile void __iomem *apic_registers(void);
enum apic_mode apic_mode(void);

/* Keep device interrupts out: the two legacy controllers, and all pins of an I/O APIC until irq_register(). Boot CPU. */
void pic_mask_all(void);
void io_apic_add(phys_t phys, u32 gsi_base); /* irq.c */

/* Lines of the first I/O APIC (0: none); and let one of them raise NMIs on this CPU. False if it cannot be routed. */
u32 io_apic_lines(void);
u32 io_apic_entry(u32 gsi); /* low half of the line's entry, as it is now; 0: no such line */
bool io_apic_route_nmi(u32 gsi);
