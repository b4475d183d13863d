/* Payloads of rooms: see payload.h. */
#include "kernel/run/payload.h"

#include "kernel/core/printk.h"

bool payload_run_wanted_of(const struct payload *first, const struct payload *end)
{
	const struct payload *chosen = NULL;

	for (const struct payload *payload = first; payload < end; payload++) {
		if (!payload->wanted())
			continue;
		if (!chosen)
			chosen = payload;
		else
			pr_warn("payload %s is wanted too and does not run: %s runs", payload->name,
				chosen->name);
	}
	if (!chosen)
		return false;
	chosen->run();
	return true;
}

bool payload_run_wanted(void)
{
	return payload_run_wanted_of(__start_payload_table, __stop_payload_table);
}
