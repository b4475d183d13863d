/*
 * How long locks are held, and how much is done in a hold: lock_holds=on, see lock.h.
 *
 *   taken      taken_at, work, since -> the lock     only the holder reads and writes them
 *   released   longest of its rank   -> this CPU's   summed up by readers; no cache line is shared
 */
#include "kernel/core/lock_holds.h"

#include <arch/clock.h>
#include <arch/console.h>
#include <arch/cpu.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"

bool lock_holds_measured;

/*
 * Number of calls of lock_holds_forget(). Figures that a CPU kept before the last of them do not
 * count. Atomic.
 */
static u32 forgotten;

void lock_work_count(u64 records)
{
	this_cpu()->lock_work += records;
}

void lock_hold_begin(struct spinlock *lock, virt_t from)
{
	lock->taken_at = from;
	lock->work = this_cpu()->lock_work;
	lock->since = clock_cpu_ns();
}

/*
 * Only this CPU writes its own figures. A reader may see the new figure with the previous address.
 */
static void keep_longest(struct lock_longest *longest, u64 now, virt_t taken_at)
{
	if (now <= longest->most && longest->taken_at)
		return;
	atomic_store_relaxed(&longest->most, now);
	atomic_store_relaxed(&longest->taken_at, taken_at);
}

void lock_hold_end(struct spinlock *lock)
{
	const u64 ns = clock_cpu_ns() - lock->since;
	const irq_flags_t flags = irq_save(); /* a drain interrupt records its own holds */
	struct percpu *self = this_cpu();
	struct lock_holds *holds = &self->lock_holds[lock->rank];
	const u32 now = atomic_load_relaxed(&forgotten);

	if (self->lock_holds_forgotten != now) {
		for (unsigned rank = 0; rank < LOCK_RANKS; rank++)
			self->lock_holds[rank] = (struct lock_holds){0};
		atomic_store_release(&self->lock_holds_forgotten, now);
	}
	keep_longest(&holds->ns, ns, lock->taken_at);
	keep_longest(&holds->work, self->lock_work - lock->work, lock->taken_at);
	irq_restore(flags);
	lock->taken_at = 0;
}

void lock_holds_forget(void)
{
	atomic_fetch_add(&forgotten, 1);
}

static void take_longer(struct lock_longest *longest, const struct lock_longest *other)
{
	const u64 most = atomic_load_relaxed(&other->most);
	const virt_t taken_at = atomic_load_relaxed(&other->taken_at);

	if (taken_at && (most > longest->most || !longest->taken_at))
		*longest = (struct lock_longest){most, taken_at};
}

struct lock_holds lock_holds_read(enum lock_rank rank)
{
	struct lock_holds all = {0};
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online) {
		const struct percpu *data = cpu_data(cpu);

		if (atomic_load_acquire(&data->lock_holds_forgotten) !=
		    atomic_load_relaxed(&forgotten))
			continue;
		take_longer(&all.ns, &data->lock_holds[rank].ns);
		take_longer(&all.work, &data->lock_holds[rank].work);
	}
	return all;
}

const char *lock_rank_name(enum lock_rank rank)
{
	static const char *const names[LOCK_RANKS] = {[LOCK_POOL] = "pool",
						      [LOCK_ZONE] = "zone",
						      [LOCK_META] = "metadata",
						      [LOCK_TABLE] = "table",
						      [LOCK_LEAF] = "other"};

	return rank < LOCK_RANKS ? names[rank] : "?";
}

const char *lock_function(virt_t taken_at)
{
	u64 offset;
	const char *name = taken_at ? symbol_lookup(taken_at - 1, &offset) : "-";

	return name ? name : "?";
}

void lock_holds_print(void)
{
	for (enum lock_rank rank = 0; rank < LOCK_RANKS; rank++) {
		const struct lock_holds holds = lock_holds_read(rank);

		if (holds.ns.taken_at)
			print("  longest hold of a lock: %-5s %6llu.%03llu us in %s, %llu records "
			      "in %s\n",
			      lock_rank_name(rank), holds.ns.most / NS_PER_US,
			      holds.ns.most % NS_PER_US, lock_function(holds.ns.taken_at),
			      holds.work.most, lock_function(holds.work.taken_at));
	}
}

static int parse_holds(const struct option *opt, const char *value)
{
	bool on;
	const struct option flag = {.name = opt->name, .target = &on};
	const int err = option_parse_bool(&flag, value);

	if (err)
		return err;
	lock_holds_forget();
	atomic_store_relaxed(&lock_holds_measured, on);
	return 0;
}

static void show_holds(const struct option *opt, char *buf, size_t size)
{
	(void)opt;
	format(buf, size, "%s", lock_holds_wanted() ? "on" : "off");
}

OPTION(lock_holds, .values = "on|off",
       .help = "measure the longest hold of each kind of lock and where it was taken; `locks` "
	       "shows them",
       .parse = parse_holds, .show = show_holds);
