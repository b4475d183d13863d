/* Payloads of rooms: see payload.h. */
#include "kernel/run/payload.h"

bool payload_run_wanted(void)
{
	const struct payload *payload;

	TABLE_FOREACH(payload, payload_table)
	{
		if (!payload->wanted())
			continue;
		payload->run();
		return true;
	}
	return false;
}
