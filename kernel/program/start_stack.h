/*
 * The stack with which a program starts, as Linux lays it out. Pure: it fills in a buffer.
 *
 *	top    0 (8 bytes)
 *	       path of the program, environment, arguments, "x86_64"   texts
 *	       16 random bytes
 *	       (up to 15 bytes, so that rsp is a multiple of 16)
 *	       AT_NULL 0 ... AT_PHDR address                           pairs for the C library
 *	       0, addresses of the environment
 *	       0, addresses of the arguments
 *	rsp    number of arguments
 *
 * Sources: H.J. Lu et al., "System V ABI, AMD64 supplement", 3.4.1 "Initial Stack and Register
 * State"; Linux man-pages, getauxval(3).
 */
#pragma once

#include "kernel/lib/types.h"
#include "kernel/program/arguments.h"

enum { START_RANDOM_BYTES = 16 };

/* Contents of the pairs. Addresses are those of the program. */
struct start_stack {
	const char *path;                    /* of the program's file */
	const struct arguments *args;        /* the first is the program's name */
	const struct arguments *environment; /* NAME=value */
	u64 entry, phdr;                     /* of the program, also if it has an interpreter */
	u64 base;                            /* the interpreter's bias; 0: none */
	u64 phdr_count, phdr_size;
	u64 hwcap;
	u64 vdso;             /* 0: none */
	u64 signal_stack_min; /* AT_MINSIGSTKSZ, bytes */
	u8 random[START_RANDOM_BYTES];
};

/* Bytes that are enough for the stack, less than 1 KiB more than it takes. Any context. */
u64 start_stack_size(const struct start_stack *start);

/*
 * Build the stack at the end of `buffer`, which is zero and whose `size` bytes, at least
 * start_stack_size(), will be the program's memory up to the address `top`, a multiple of 16.
 * Returns rsp. Bytes below rsp are not written. Any context.
 */
u64 start_stack_build(const struct start_stack *start, void *buffer, u64 size, u64 top);
