/* Port I/O (Intel SDM vol. 1, 19 "Input/Output"). */
#pragma once

#include "kernel/lib/types.h"

/* inb(), outb() and so on. The width is part of the instruction. */
#define PORT_ACCESS(width, type)                                                                   \
	static inline type in##width(u16 port)                                                     \
	{                                                                                          \
		type value;                                                                        \
                                                                                                   \
		__asm__ volatile("in" #width " %1, %0" : "=a"(value) : "Nd"(port) : "memory");     \
		return value;                                                                      \
	}                                                                                          \
	static inline void out##width(u16 port, type value)                                        \
	{                                                                                          \
		__asm__ volatile("out" #width " %0, %1" ::"a"(value), "Nd"(port) : "memory");      \
	}

PORT_ACCESS(b, u8)
PORT_ACCESS(w, u16)
PORT_ACCESS(l, u32)
