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

static inline u8 mmio_read8(const volatile void __iomem *regs, unsigned reg)
{
	u8 value;

	__asm__ volatile("movb %1, %0"
			 : "=q"(value)
			 : "m"(*(const volatile u8 *)mmio_at(regs, reg))
			 : "memory");
	return value;
}

static inline u16 mmio_read16(const volatile void __iomem *regs, unsigned reg)
{
	u16 value;

	__asm__ volatile("movw %1, %0"
			 : "=r"(value)
			 : "m"(*(const volatile u16 *)mmio_at(regs, reg))
			 : "memory");
	return value;
}

static inline u32 mmio_read32(const volatile void __iomem *regs, unsigned reg)
{
	u32 value;

	__asm__ volatile("movl %1, %0"
			 : "=r"(value)
			 : "m"(*(const volatile u32 *)mmio_at(regs, reg))
			 : "memory");
	return value;
}

static inline void mmio_write8(volatile void __iomem *regs, unsigned reg, u8 value)
{
	__asm__ volatile("movb %1, %0"
			 : "=m"(*(volatile u8 *)mmio_at(regs, reg))
			 : "q"(value)
			 : "memory");
}

static inline void mmio_write16(volatile void __iomem *regs, unsigned reg, u16 value)
{
	__asm__ volatile("movw %1, %0"
			 : "=m"(*(volatile u16 *)mmio_at(regs, reg))
			 : "r"(value)
			 : "memory");
}

static inline void mmio_write32(volatile void __iomem *regs, unsigned reg, u32 value)
{
	__asm__ volatile("movl %1, %0"
			 : "=m"(*(volatile u32 *)mmio_at(regs, reg))
			 : "r"(value)
			 : "memory");
}
