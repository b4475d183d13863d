/*
 * The CPUs that the tables list. Until the tables are read, only the boot CPU is known. See acpi.h.
 */
#include "arch/x86_64/acpi/acpi.h"

static struct cpu_desc boot_cpu_desc = {.enabled = true};
struct cpu_desc *cpu_descs = &boot_cpu_desc;
