/*
 * The machine page: what this machine is, as measured, on one screen that can be photographed, with the same as records.
 *
 * Printed at the end of a run on real hardware, or with page=on: CPUs, caches, TLBs, clocks, machine checks, the nodes'
 * measured latencies and read rates, and every oddity that was warned about.
 */
#pragma once

/* The run is over, CPUs are idle, memory can be allocated. Nothing if page= says no. */
void machine_page(void);
