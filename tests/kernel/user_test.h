/* Contract between user_test.c and its programs (user_programs.S). */
#pragma once

/* Pages: code, data, stack, one that is present without any right, one that the handler brings. */
#define USER_CODE_AT  0x400000
#define USER_DATA_AT  0x401000
#define USER_STACK_AT 0x402000
#define USER_NONE_AT  0x403000
#define USER_FAR_AT   0x404000

/* Numbers of calls. */
#define CALL_LEAVE       0
#define CALL_ANSWER      1 /* returns ANSWER, by SYSRET */
#define CALL_SLOW_ANSWER 2 /* returns ANSWER by IRETQ, with other values in RCX and R11 */
#define CALL_LOOK        3 /* notes the flags of ring 0 */
#define CALL_ODD_RIP     5 /* returns to an address beyond USER_END */

#define ANSWER     0x12345
#define GS_MAGIC   0x6d616769
#define ANY_VECTOR 256 /* any exception, or a page fault */

/* Words of the data page. */
#define DATA_RAX    0x00
#define DATA_RCX    0x08
#define DATA_R11    0x10
#define DATA_FLAGS  0x18
#define DATA_COUNT  0x20
#define DATA_STOP   0x28
#define DATA_VECTOR 0x40  /* 64 bytes */
#define DATA_BASE   0x100 /* where FS and GS point in the case about them */

/* What the program `enters` does if DATA_STOP says so. */
#define DATA_STOP_CALL  1
#define DATA_STOP_FAULT 2
#define DATA_STOP_UD    3
#define DATA_STOPS      4 /* none: an interrupt */
