/* The record of the previous run: see run_record.h. */
#include "kernel/core/run_record.h"

#include <arch/boot.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"

#define RUN_MAGIC 0x52414c4853410001ULL

enum { UNFINISHED_FAILS, UNFINISHED_OK };

static unsigned unfinished_choice;
OPTION_CHOICE(end.unfinished, unfinished_choice, "fails|ok",
	      "whether a run may pass after one that ended in a reset", .boot_only = true);

static struct run_record ours;
bool run_record_unfinished;

static u32 sum_of(const struct run_record *r)
{
	return (u32)r->magic ^ (u32)(r->magic >> 32) ^ r->boots * 3 ^ r->state * 5 ^
	       r->verdict * 7u ^ r->status * 11u;
}

bool run_record_valid(const struct run_record *found)
{
	return found->magic == RUN_MAGIC && found->sum == sum_of(found) &&
	       (found->state == RUN_RUNNING || found->state == RUN_ENDED);
}

static struct run_record make(u32 boots, u32 state, u16 verdict, u16 status)
{
	struct run_record made = {.magic = RUN_MAGIC,
				  .boots = boots,
				  .state = state,
				  .verdict = verdict,
				  .status = status};

	made.sum = sum_of(&made);
	return made;
}

struct run_record run_record_next(const struct run_record *found)
{
	const bool follows = run_record_valid(found) && found->boots < ~0u;

	return make(follows ? found->boots + 1 : 1, RUN_RUNNING, 0, RUN_NO_STATUS);
}

struct run_record run_record_closed(const struct run_record *record, u16 verdict, u16 status)
{
	return make(record->boots, RUN_ENDED, verdict, status);
}

void run_record_begin(void)
{
	struct run_record found = {0};

	if (!arch_record_load(&found, sizeof(found)))
		return;
	ours = run_record_next(&found);
	arch_record_store(&ours, sizeof(ours));
	if (ours.boots == 1)
		return;
	run_record_unfinished = found.state == RUN_RUNNING && unfinished_choice == UNFINISHED_FAILS;
	if (found.state == RUN_RUNNING)
		pr_warn("run %u since memory was last cleared; the run before it ended in a reset",
			ours.boots);
	else
		pr_info("run %u since memory was last cleared; the run before it ended with code "
			"0x%x",
			ours.boots, found.verdict);
	if (found.state == RUN_ENDED && found.status != RUN_NO_STATUS)
		pr_info("its program ended with status %u", found.status);
}

void run_record_end(u16 verdict, u16 status)
{
	if (!ours.magic)
		return;
	ours = run_record_closed(&ours, verdict, status);
	arch_record_store(&ours, sizeof(ours));
}
