/*
 * The machine's consoles beyond <arch/boot.h>: the steps of start-up, and the parts of console.c.
 */
#pragma once

#include "kernel/console/console.h"
#include "kernel/console/console_uart.h"
#include "kernel/lib/types.h"

struct boot_info;

/* ---- parts ---- */
