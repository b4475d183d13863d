/*
 * Selectors of the GDT (descriptors.c), for C and for assembly.
 *
 * SYSCALL loads CS from STAR and takes the next entry for SS. SYSRET takes the entries 16 and 8
 * bytes above STAR's other half, hence user data stands before user code (Intel SDM vol. 3A,
 * 5.8.8). The values of ring 3 are those of Linux, because programs see them in signal frames.
 */
#pragma once

#define SELECTOR_CODE      0x08
#define SELECTOR_DATA      0x10
#define SELECTOR_TSS       0x18 /* two slots */
#define SELECTOR_USER_DATA 0x2b /* 0x28, ring 3 */
#define SELECTOR_USER_CODE 0x33 /* 0x30, ring 3 */

#define SELECTOR_SYSRET (SELECTOR_USER_CODE - 16) /* the half of STAR that SYSRET uses */
