/*
 * Access to device registers in memory, by their offset in bytes from the address that mmio_map()
 * returned. Each access is one MOV of the register's width, as devices expect, in a form that every
 * hypervisor decodes.
 */
#pragma once

#include "kernel/lib/types.h"

/* The register's address, for the operand of an instruction. */
static inline volatile void *mmio_at(const volatile void __iomem *regs, unsigned reg)
{
	return (volatile u8 *)(uintptr_t)(const volatile void __force *)regs + reg;
}

/* mmio_read8(), mmio_write8() and so on. The width is part of the instruction. */
#define MMIO_ACCESS(bits, type, insn)                                                              \
	static inline type mmio_read##bits(const volatile void __iomem *regs, unsigned reg)        \
	{                                                                                          \
		type value;                                                                        \
                                                                                                   \
		__asm__ volatile(insn " %1, %0"                                                    \
				 : "=q"(value)                                                     \
				 : "m"(*(const volatile type *)mmio_at(regs, reg))                 \
				 : "memory");                                                      \
		return value;                                                                      \
	}                                                                                          \
	static inline void mmio_write##bits(volatile void __iomem *regs, unsigned reg, type value) \
	{                                                                                          \
		__asm__ volatile(insn " %1, %0"                                                    \
				 : "=m"(*(volatile type *)mmio_at(regs, reg))                      \
				 : "q"(value)                                                      \
				 : "memory");                                                      \
	}

MMIO_ACCESS(8, u8, "movb")
MMIO_ACCESS(16, u16, "movw")
MMIO_ACCESS(32, u32, "movl")
