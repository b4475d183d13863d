/*
 * Parser of x86-64 programs in ELF format: executables at fixed addresses (ET_EXEC) and those that
 * run at any address (pie: ET_DYN). A program that is linked dynamically names an interpreter,
 * which is an ELF of the same kind and loads its libraries. Pure: it reads nothing beyond the
 * image, which may lie at any address, and takes nothing in it for granted.
 *
 *	file      [ header | segments' bytes ......................... | sections, symbols ]
 *	memory    low [ r ]  [ r x ]   [ r ]   [ r w | zero bytes ] high
 *
 * The result of elf_parse() can be mapped page by page:
 *
 * - The segments are in ascending order, none is empty, and no page belongs to two of them.
 * - Address and file offset of a segment agree within a page, if it has bytes in the file.
 * - Rounded to whole pages, all lie within the allowed addresses, with the bias of a pie program
 *   added. No sum of these wraps.
 * - The bytes in the file exist, and are no more than the bytes in memory. The rest is zero. The
 *   offset of a segment without bytes in the file is 0.
 * - The entry lies in an executable segment.
 *
 * Linkers give each segment pages of its own. Linux also takes files in which neighbours share a
 * page, and so does this parser in two cases. If the file has the bytes of both in one page, the
 * page goes to the later segment with its rights, as in Linux: the first is cut at the page, and
 * the second begins there. If the second has no bytes in the file and the same rights, the two
 * become one. Any other shared page is refused, because one of the two would lose its contents.
 *
 * Sources: Tool Interface Standard, "Executable and Linking Format Specification version 1.2"; H.J.
 * Lu et al., "System V ABI, AMD64 supplement", 4.1, 5.1.
 */
#pragma once

#include "kernel/lib/types.h"

enum { ELF_SEGMENTS_MAX = 32, ELF_HEADERS_MAX = 128 };
enum { ELF_R = 1, ELF_W = 2, ELF_X = 4 };

/* Addresses of a pie program are relative to its bias. */
struct elf_segment {
	u64 virt, memory_bytes;
	u64 file_offset, file_bytes;
	unsigned rights; /* ELF_R | ELF_W | ELF_X */
};

struct elf_image {
	bool pie;
	bool stack_exec; /* the program asks for an executable stack */
	u64 entry;
	u64 low, high; /* of all segments, rounded outwards to pages */
	u64 align;     /* of the bias: a power of two, at least 4096 */
	u64 bias;      /* the address where a pie program is put; 0 for others */
	/*
	 * The program headers in the program's memory, for AT_PHDR. phdr_virt is 0 if no segment
	 * contains them.
	 */
	u64 phdr_virt;
	u16 phdr_count, phdr_size;
	const char *interpreter; /* its path, in the image, terminated, not empty; NULL: none */
	size_t segments;
	struct elf_segment segment[ELF_SEGMENTS_MAX];
};

/*
 * Addresses that a program may have: [start, end), whole pages. A pie program is put at the first
 * address from pie_base on that its alignment, at most ELF_ALIGN_MAX, allows.
 */
#define ELF_ALIGN_MAX GIB(1)
struct elf_limits {
	u64 start, end, pie_base;
};

/* Does the image begin like an ELF of any kind? */
bool elf_is(const void *image, u64 size);

/*
 * Parse the image. Returns NULL, or the reason why it is refused, in words; *value then receives
 * the value that offends, and *elf is undefined. Any context.
 */
const char *elf_parse(const void *image, u64 size, struct elf_limits limits, struct elf_image *elf,
		      u64 *value);

/*
 * For backtraces: the function of the image's symbol table that contains `addr`, as the file counts
 * addresses. *name points into the image and *offset is the distance from the symbol. False if the
 * image has no symbols, or none of them is near, or the table makes no sense. The time grows with
 * the number of symbols. Any context.
 */
bool elf_symbol(const void *image, u64 size, u64 addr, const char **name, u64 *offset);
