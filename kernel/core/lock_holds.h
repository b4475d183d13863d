/* How long locks were held, and by which functions, with lock_holds=on. */
#pragma once

#include "kernel/core/lock.h"

struct lock_holds lock_holds_read(enum lock_rank rank);
void lock_holds_forget(void);
const char *lock_rank_name(enum lock_rank rank);
const char *lock_function(virt_t taken_at); /* name of that function, "-" for 0 */

/* Print the holds for people, one line for each rank that has one. */
void lock_holds_print(void);
