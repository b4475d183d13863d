/* Ring 3, arch-internal part; the rest is <arch/user.h>. */
#pragma once

/* Switch SYSCALL on, and every other way into ring 0 off. Every CPU, after cpu_features_init(). */
void user_init_cpu(void);
