/* What the tables said about CPUs; before they are read, the boot CPU alone. See acpi.h. */
#include "arch/x86_64/acpi/acpi.h"

static struct cpu_desc boot_cpu_desc = {.enabled = true};
struct cpu_desc *cpu_descs = &boot_cpu_desc;
