/*
 * A machine as a text describes it, which the hosted kernel boots as (ashlar-host -r FILE). The
 * text is any mixture of these lines; all others are skipped, so the log of a Linux kernel with the
 * output of acpidump and cpuid below it is such a text:
 *
 *   BIOS-e820: [mem 0x0000000000100000-0x000000007fffffff] usable        dmesg
 *   efi: mem00: [Conventional Memory|...] range=[0x100000-0x7fffffff]    dmesg, efi=debug; if there
 *                                                                        are no e820 lines
 *   APIC @ 0x0000000000000000                                            acpidump: MADT, SRAT, SLIT
 *       0000: 41 50 49 43 ...
 *   0x0000000b 0x00: eax=0x00000001 ebx=... ecx=... edx=...              cpuid -1 -r
 *   CPUID 0000000B: 00000001-00000002-00000100-00000000                  InstLatx64
 *
 * Lines of our own `machine text` (arch/x86_64/machine_text.c) have a sum at their end.
 *
 * The parsers are pure functions over (text, length). They follow no pointer, and a line that is
 * broken counts as another line.
 */
#pragma once

#include "arch/x86_64/cpu/cpu.h"
#include "arch/x86_64/cpu/topology.h"
#include "boot/boot_info.h"

struct replay_text {
	const char *text;
	size_t len;
};

/*
 * Are all lines with sums there as they were printed? If not, *bad is the number of the first line
 * after which one is missing or wrong, from 1.
 */
bool replay_is_whole(const struct replay_text *text, size_t *bad);

/* Add the ranges of memory to `info`. Returns how many lines named one. */
size_t replay_ranges(const struct replay_text *text, struct boot_info *info);

/* A CPUID leaf of the machine: the first that the text has; zeros if it has none. */
struct cpuid replay_cpuid(u32 leaf, u32 subleaf, const void *text);

/* The boot CPU's APIC ID. False if the text has no leaf that tells it. */
bool replay_boot_apic_id(const struct replay_text *text, u32 *id);

/* ---- the machine: replay.c ---- */

/*
 * Read the file, or end the process with a message. Fills in boot_info's ranges; *end gets the end
 * of the highest RAM.
 */
void replay_load(const char *path, struct boot_info *info, phys_t *end);

/* Set cpu_count, at most `max`, node_count and the nodes from the machine's tables. */
void replay_firmware(cpu_t max);

enum { REPLAY_LINE_MAX = 128 };

/* Text for people, at most REPLAY_LINE_MAX: CPUs described, how APIC IDs are packed. */
void replay_describe(char *line, size_t size);
