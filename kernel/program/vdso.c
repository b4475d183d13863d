#include "kernel/program/vdso.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/core/call.h"
#include "kernel/core/percpu.h"
#include "kernel/program/clocks.h"
#include "kernel/program/vdso/vdso_data.h"

/* The assembler finds the file in the folder that the Makefile names. */
__asm__(".pushsection .rodata.vdso, \"a\"\n"
	".balign 4096\n"
	"vdso_image_start:\n"
	".incbin \"vdso.so\"\n"
	".balign 4096\n"
	"vdso_image_end:\n"
	".popsection\n");

extern const u8 vdso_image_start[], vdso_image_end[];

const void *vdso_image(u64 *size)
{
	*size = (u64)(vdso_image_end - vdso_image_start);
	return vdso_image_start;
}

/* *arg becomes false if this CPU cannot tell its number. */
static void publish(void *arg)
{
	if (!cpu_number_publish())
		atomic_store_relaxed((bool *)arg, false);
}

void vdso_fill_data(struct vdso_data *data)
{
	struct clock_tsc tsc;
	bool all = true;

	call_cpus(&cpus_online, publish, &all);
	publish(&all);
	data->cpu_in_rdtscp = atomic_load_relaxed(&all);
	data->date_ns = clock_date_ns();
	if (clock_tsc(&tsc)) {
		data->base_tsc = tsc.base_tsc;
		data->base_ns = tsc.base_ns;
		data->mult = tsc.mult;
	}
}
