/* Ring 3, arch-internal part; the rest is <arch/user.h>. */
#pragma once

/* Switch SYSCALL on, and every other way into ring 0 off. Every CPU, after cpu_features_init(). */
void user_init_cpu(void);

/* The table that user_set_ops() has set, or NULL. For tests, which put it back. */
struct user_ops;
const struct user_ops *user_ops_set(void);
