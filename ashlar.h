/*
 * The Payload API of Ashlar, version 2: everything that a program linked to this kernel may rely
 * on. It is C (gnu11) and C++ (17).
 *
 * The headers below are the interface, and ashlar.symbols lists the functions that programs may
 * call. They cannot link to anything else of the kernel. Functions whose names are common words,
 * which programs use themselves, have the prefix ashlar_, as in ashlar_print().
 *
 * tests/payload/README.md explains which parts are stable and how to build a program.
 */
#pragma once

#define ASHLAR_API_VERSION 2

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* clang-format off: in the order in which a reader needs them */
#include "kernel/lib/types.h"       /* numbers, sizes, errors */
#include "mm/mm.h"                  /* pages, mappings, device registers */
#include "mm/pools.h"               /* pools of huge pages */
#include "kernel/core/reason.h"     /* why a call failed */
#include "kernel/core/cpus.h"       /* other CPUs */
#include "kernel/core/padata.h"     /* one job on many CPUs */
#include <arch/barrier.h>           /* cpu_relax(), fences */
#include <arch/clock.h>             /* time */
#include <arch/irq.h>               /* the CPU's timer */
#include <arch/mmio.h>              /* access to device registers */
#include "kernel/core/option.h"     /* words of the command line */
#include "kernel/console/command.h" /* commands of the monitor */
#include "kernel/run/bench.h"       /* benchmarks */
#include "kernel/core/verdict.h"    /* how the run ends */
#include "kernel/payload_run.h"     /* payload_run(), which the program defines */
/* clang-format on */

/*
 * Print exactly this text to the log and all consoles; the caller writes the newlines. At most 1023
 * bytes per call; longer text is cut, and its last byte is a newline. Context: any.
 */
void ashlar_print(const char *fmt, ...) __printf(1, 2);
void ashlar_vprint(const char *fmt, va_list args) __printf(1, 0);

/*
 * Record a result: a line "RESULT name key=value ...", which tests/bench/report puts into a table
 * of that name. `name` consists of a-z and _, a key of a-z, 0-9 and _, and a value has no blanks.
 *
 *	ashlar_result("gups", "leaf=%s cpus=%u ns=%llu", "2M", 4, ns);
 *
 * Context: any.
 */
void ashlar_result(const char *name, const char *fmt, ...) __printf(2, 3);

/*
 * Print a line with a time stamp; a newline is added. A warning is counted and repeated at the end
 * of the run. Context: any.
 */
void ashlar_note(const char *fmt, ...) __printf(1, 2);
void ashlar_warn(const char *fmt, ...) __printf(1, 2);

/*
 * Text into a buffer, as snprintf() makes it, without floating point. The text is always terminated
 * when size > 0. Returns the length that the whole text has. Context: any.
 */
int ashlar_format(char *buf, size_t size, const char *fmt, ...) __printf(3, 4);
int ashlar_vformat(char *buf, size_t size, const char *fmt, va_list args) __printf(3, 0);

#ifdef __cplusplus
}
#endif
