/* Setting the word of reason.h, for the calls that fail. Context: any. */
#pragma once

#include "kernel/core/percpu.h"
#include "kernel/core/reason.h"

static inline void reason_set(enum reason reason)
{
	this_cpu()->reason = reason;
}

/* Set the reason of a call that fails by returning NULL. */
static inline void *reason_null(enum reason reason)
{
	reason_set(reason);
	return NULL;
}

/* Set the reason of a call that fails by returning `err`. Returns `err`. */
static inline int reason_error(enum reason reason, int err)
{
	reason_set(reason);
	return err;
}

/*
 * Set the reason for a call that also returns an error; `invalid` stands for -EINVAL. Returns
 * `err`.
 */
static inline int reason_of_error(int err, enum reason invalid)
{
	if (err == -EINVAL)
		reason_set(invalid);
	else if (err == -ENOMEM)
		reason_set(REASON_NO_MEMORY);
	else if (err < 0)
		reason_set(REASON_BUSY);
	return err;
}
