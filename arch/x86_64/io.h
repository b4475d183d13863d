/* Registers of devices: at ports (Intel SDM vol. 1, 19 "Input/Output") and in memory. */
#pragma once

#include "kernel/types.h"

static inline u8 inb(u16 port)
{
	u8 value;

	__asm__ volatile("inb %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static inline u16 inw(u16 port)
{
	u16 value;

	__asm__ volatile("inw %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static inline u32 inl(u16 port)
{
	u32 value;

	__asm__ volatile("inl %1, %0" : "=a"(value) : "Nd"(port) : "memory");
	return value;
}

static inline void outb(u16 port, u8 value)
{
	__asm__ volatile("outb %0, %1" ::"a"(value), "Nd"(port) : "memory");
}

static inline void outw(u16 port, u16 value)
{
	__asm__ volatile("outw %0, %1" ::"a"(value), "Nd"(port) : "memory");
}

static inline void outl(u16 port, u32 value)
{
	__asm__ volatile("outl %0, %1" ::"a"(value), "Nd"(port) : "memory");
}

/*
 * Registers that mmio_map() made visible, by their offset in bytes: one MOV of the register's width, which is what devices expect, and of
 * a form that every hypervisor decodes.
 */
static inline u8 mmio_read8(const volatile void __iomem *regs, unsigned reg)
{
	u8 value;

	__asm__ volatile("movb %1, %0" : "=q"(value) : "m"(*(const volatile u8 __force *)(regs + reg)) : "memory");
	return value;
}

static inline u32 mmio_read32(const volatile void __iomem *regs, unsigned reg)
{
	u32 value;

	__asm__ volatile("movl %1, %0" : "=r"(value) : "m"(*(const volatile u32 __force *)(regs + reg)) : "memory");
	return value;
}

static inline void mmio_write8(volatile void __iomem *regs, unsigned reg, u8 value)
{
	__asm__ volatile("movb %1, %0" : "=m"(*(volatile u8 __force *)(regs + reg)) : "q"(value) : "memory");
}

static inline void mmio_write32(volatile void __iomem *regs, unsigned reg, u32 value)
{
	__asm__ volatile("movl %1, %0" : "=m"(*(volatile u32 __force *)(regs + reg)) : "r"(value) : "memory");
}
