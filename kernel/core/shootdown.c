/*
 * TLB shootdown rounds: see shootdown.h for the names and the rule.
 *
 *   initiator                              other CPU
 *   clear PTE                              (busy)                  (idle)
 *   full fence, tag = G + 1
 *   g = ++G; full = max(full, g)                                   idle = 1
 *   read online mask, idle flags                                   ...
 *   interrupt those not idle ----------->  load G; flush all;      ...
 *                                          publish
 *   wait: each published >= g,                                     wakes: idle = 0; full fence;
 *         or seen idle                                             published < G: flush all;
 *   done = max(done, g)                                            publish
 *
 * Why a skipped CPU is safe: the increment of G (a locked instruction) precedes the initiator's
 * look at the idle flag, and the sleeper's clearing of its flag and full fence precede its look at
 * G. One of the two must see the other (the store-buffering pattern, SDM vol. 3A, 9.2.3.4), so the
 * sleeper either is interrupted or flushes before it goes on.
 *
 * Why every CPU may trust `done`: a CPU publishes the G it had loaded *before* its flush. published
 * >= g therefore means that it flushed after G became g, hence after every PTE change whose tag is
 * <= g.
 *
 * Rounds are shared. A CPU that waits for a tag waits for any full round with g >= tag that has
 * been started, and starts one only if there is none. One CPU at a time may start such a round
 * (round_claim). If many CPUs wait at once, one of them starts a round and the others wait for it.
 * They cost two rounds at most: one that had started too early for their tags, and one for all of
 * them.
 *
 * A quiet CPU (shootdown.h) is a sleeper that runs a program. Its entry into the kernel is the
 * waking, by the same function. A CPU that is not idle and has published less than `done` is quiet,
 * or has just ceased to rest and not flushed yet: rounds wait for all others. Frames therefore wait
 * for whatever those CPUs publish, and no set of quiet CPUs is kept. shootdown_reusable() reads
 * `done` first.
 *
 * A ranged round takes a generation of its own so that sleepers notice it. But a CPU that drops a
 * few pages has not flushed everything: it acknowledges in the mailbox and publishes nothing, and
 * `done` stays. That is why an interrupted or quiet CPU compares with the last *full* round, and
 * only a CPU that wakes compares with G.
 *
 * Sources: Kravetz, "Batch hugetlb vmemmap modification operations", 2023-09 (what batching buys);
 * nanos src/kernel/flush.c and Linux arch/x86 lazy TLB generations for the idea of numbered rounds;
 * SDM vol. 3A, 4.10.5.
 */
#include "kernel/core/shootdown.h"

#include <arch/barrier.h>
#include <arch/check.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/tlb.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/context.h"
#include "kernel/core/panic.h"
#include "kernel/core/percpu.h"
#include "kernel/core/upward.h"
#include "kernel/core/wait.h"

__cacheline_aligned u64 shootdown_generation; /* G */
/* highest g of a full round; an interrupted CPU must have flushed for this generation */
u64 shootdown_generation_full;
__cacheline_aligned u64 shootdown_generation_done;
/* the highest answer of shootdown_reusable() so far */
static u64 generation_reusable;
/* number + 1 of the CPU that may start a round for all CPUs that wait for a tag; 0: none */
static u32 round_claim;

static __cacheline_aligned struct shootdown_stats stats;
static struct cpumask interrupted_cpus; /* distinct CPUs stopped since the last reset */

bool quiet_on = true;
OPTION_BOOL(tlb.quiet, quiet_on,
	    "rounds for struct pages leave CPUs alone that run in ring 3, or a quiet program");

u64 quiet_ask_ns = NS_PER_S;

bool tlb_skip_idle = true;
OPTION_BOOL(tlb.skip_idle, tlb_skip_idle, "leave idle CPUs alone; they flush when they wake");

/* Raise *value to at least `to`; it never falls. */
static void raise_to(u64 *value, u64 to)
{
	u64 old = atomic_load_relaxed(value);

	while (old < to && !atomic_cas(value, old, to))
		old = atomic_load_relaxed(value);
}

u64 shootdown_tag(void)
{
	u64 tag;

	fence_full();
	tag = atomic_load_relaxed(&shootdown_generation) + 1;
	check_event(CHECK_TAG, tag, 0);
	return tag;
}

/*
 * Load G, flush all, and publish the loaded value, in this order. The published value never falls.
 */
static void flush_and_publish(struct percpu *self)
{
	u64 g = atomic_load_acquire(&shootdown_generation);

	tlb_flush_local_all();
	atomic_store_relaxed(&self->flushes_full, self->flushes_full + 1);
	check_event(CHECK_PUBLISH, g, 0);
	raise_to(&self->tlb_published, g);
}

void shootdown_serve(void)
{
	struct percpu *self = this_cpu();

	if (atomic_load_relaxed(&self->tlb_published) <
	    atomic_load_acquire(&shootdown_generation_full))
		flush_and_publish(self);
}

void shootdown_flush(void)
{
	flush_and_publish(this_cpu());
}

void shootdown_join(void (*load_tables)(void))
{
	struct percpu *self = this_cpu();
	u64 g;

	cpumask_set_atomic(&cpus_online, self->id);
	fence_full();
	g = atomic_load_acquire(&shootdown_generation);
	load_tables();
	check_event(CHECK_PUBLISH, g, 0);
	raise_to(&self->tlb_published, g);
}

/* The parts of `skip` that the options allow. */
static enum shootdown_skip skip_allowed(enum shootdown_skip skip)
{
	if (!tlb_skip_idle)
		skip &= ~SHOOTDOWN_SKIP_IDLE;
	return quiet_on ? skip : skip & ~SHOOTDOWN_SKIP_QUIET;
}

/*
 * The bits of `skip` by which this CPU rests. If there is one, it flushes everything before it uses
 * memory that the round is about.
 */
static unsigned flushes_later(const struct percpu *cpu, enum shootdown_skip skip)
{
	return atomic_load_acquire(&cpu->rests) & skip;
}

/* A round leaves a quiet CPU alone: note when it was the first one that the CPU missed. */
static void note_missed(struct percpu *cpu)
{
	if (atomic_load_relaxed(&cpu->tlb_published) >= shootdown_done())
		atomic_store_relaxed(&cpu->quiet_missed_ns, clock_ns());
}

/*
 * Choose the CPUs to interrupt for this round: online, not this CPU, and none of those that may be
 * skipped and flush later.
 */
static void round_choose_targets(struct percpu *self, enum shootdown_skip skip)
{
	struct cpumask *targets = &self->round_targets;
	u64 skipped = 0, quiet = 0;
	cpu_t cpu;

	cpumask_copy(targets, &cpus_online);
	cpumask_clear(targets, self->id);
	if (skip) {
		cpumask_foreach(cpu, targets) {
			const unsigned rests = flushes_later(cpu_data(cpu), skip);

			if (unlikely(!rests))
				continue;
			cpumask_clear(targets, cpu);
			skipped++;
			if (unlikely(rests & SHOOTDOWN_SKIP_QUIET)) {
				note_missed(cpu_data(cpu));
				quiet++;
			}
		}
		atomic_add_relaxed(&stats.skipped, skipped);
		if (unlikely(quiet))
			atomic_add_relaxed(&stats.skipped_quiet, quiet);
	}
}

/* This CPU's round has sent so many messages to its targets. */
static void round_count_sent(const struct percpu *self, u64 messages)
{
	if (messages == 0)
		return;
	atomic_add_relaxed(&stats.ipis, messages);
	for (size_t i = 0; i < cpumask_words; i++)
		if (self->round_targets.words[i])
			atomic_fetch_or(&interrupted_cpus.words[i], self->round_targets.words[i]);
}

static void round_wait(struct percpu *self, u64 g, enum shootdown_skip skip)
{
	struct wait wait = wait_begin(WAIT_ANSWER, "a TLB shootdown");
	cpu_t cpu;

	cpumask_foreach(cpu, &self->round_targets) {
		const struct percpu *other = cpu_data(cpu);

		while (atomic_load_acquire(&other->tlb_published) < g &&
		       !flushes_later(other, skip))
			wait_spin(&wait, cpu);
	}
}

void shootdown_full(enum shootdown_skip wanted)
{
	struct percpu *self = this_cpu();
	const enum shootdown_skip skip = skip_allowed(wanted);
	u64 g;

	context_assert(CONTEXT_ORDINARY);
	atomic_add_relaxed(&stats.flushes, 1);
	atomic_add_relaxed(&stats.full, 1);
	g = atomic_fetch_add(&shootdown_generation, 1) + 1;
	check_event(skip ? CHECK_ROUND_SKIPPING : CHECK_ROUND_ALL, g, 0);
	raise_to(&shootdown_generation_full, g);
	flush_and_publish(self);
	if (cpu_count > 1) {
		round_choose_targets(self, skip);
		round_count_sent(self, ipi_send_mask(&self->round_targets));
		round_wait(self, g, skip);
	}
	check_event(CHECK_DONE, g, 0);
	raise_to(&shootdown_generation_done, g);
	wait_moved(WAIT_ROUND);
}

/*
 * Start a round, unless one that serves the tag was started while the caller took the claim. The
 * caller holds the claim; it is released here.
 */
static void round_for(u64 tag)
{
	if (atomic_load_acquire(&shootdown_generation_full) < tag)
		shootdown_full(SHOOTDOWN_SKIP_BOTH);
	atomic_store_release(&round_claim, 0);
}

/*
 * Try to take the claim. True if no round serves the tag and the caller now has the right to start
 * one.
 */
static bool claim_round(u64 tag)
{
	return atomic_load_acquire(&shootdown_generation_full) < tag &&
	       atomic_load_relaxed(&round_claim) == 0 &&
	       atomic_cas(&round_claim, 0, this_cpu()->id + 1);
}

/*
 * The claim is held until the round is done. CPUs whose tags came too late for that round gather
 * meanwhile, and the next round serves them all. A round whose g is high enough is only waited for,
 * whichever CPU started it and for whatever reason.
 */
void shootdown_wait(u64 tag)
{
	struct wait wait;

	context_assert(CONTEXT_ORDINARY);
	if (shootdown_done() >= tag)
		return;
	ASSERT(tag <= atomic_load_relaxed(&shootdown_generation) + 1,
	       "tag %llu is ahead of every round (done %llu)", tag, shootdown_done());
	wait = wait_begin(WAIT_ROUND, "another CPU's TLB shootdown");
	while (shootdown_done() < tag) {
		if (claim_round(tag))
			round_for(tag);
		else
			wait_spin(&wait, CPU_NONE);
	}
}

/* ---- frames that quiet CPUs hold back ---- */

/* An idle CPU holds no frames back: it executes nothing, and flushes when it wakes. */
static bool holds_back(const struct percpu *cpu, u64 tag)
{
	return atomic_load_acquire(&cpu->tlb_published) < tag &&
	       !(atomic_load_acquire(&cpu->rests) & SHOOTDOWN_SKIP_IDLE);
}

u64 shootdown_reusable(void)
{
	u64 reusable = shootdown_done(); /* before the look at the CPUs */
	cpu_t cpu;

	if (atomic_load_acquire(&generation_reusable) >= reusable)
		return reusable;
	cpumask_foreach(cpu, &cpus_online) {
		const struct percpu *other = cpu_data(cpu);

		if (unlikely(holds_back(other, reusable)))
			reusable = MIN(reusable, atomic_load_relaxed(&other->tlb_published));
	}
	raise_to(&generation_reusable, reusable);
	return reusable;
}

/* Interrupt the CPU if it is quiet; another one that holds back frames is about to flush. */
static void ask_quiet_cpu(const struct percpu *cpu)
{
	if (flushes_later(cpu, SHOOTDOWN_SKIP_QUIET)) {
		atomic_add_relaxed(&stats.asked, 1);
		ipi_send(cpu->id);
	}
}

void shootdown_settle(u64 tag)
{
	struct wait wait;
	cpu_t cpu;

	shootdown_wait(tag);
	cpumask_foreach(cpu, &cpus_online)
		if (holds_back(cpu_data(cpu), tag))
			ask_quiet_cpu(cpu_data(cpu));
	wait = wait_begin(WAIT_ANSWER, "a quiet CPU to flush");
	cpumask_foreach(cpu, &cpus_online)
		while (holds_back(cpu_data(cpu), tag))
			wait_spin(&wait, cpu);
}

/* Has the CPU missed rounds for long? One asker learns it, and the time begins again. */
static bool take_turn_to_ask(struct percpu *cpu)
{
	const u64 missed = atomic_load_relaxed(&cpu->quiet_missed_ns), now = clock_ns();

	return now - missed >= quiet_ask_ns && atomic_cas(&cpu->quiet_missed_ns, missed, now);
}

void shootdown_ask_quiet(void)
{
	const u64 done = shootdown_done();
	cpu_t cpu;

	cpumask_foreach(cpu, &cpus_online)
		if (holds_back(cpu_data(cpu), done) && take_turn_to_ask(cpu_data(cpu)))
			ask_quiet_cpu(cpu_data(cpu));
}

void shootdown_batch_add(struct shootdown_batch *batch, virt_t start, u64 pages)
{
	if (pages == 0)
		return;
	batch->pages += pages;
	if (batch->ranges > 0) {
		__typeof__(batch->range[0]) *last = &batch->range[batch->ranges - 1];

		if (last->start + last->pages * PAGE_SIZE == start) {
			last->pages += pages;
			return;
		}
	}
	if (batch->ranges == SHOOTDOWN_RANGES_MAX) {
		batch->pages = SHOOTDOWN_PAGES_MAX + 1; /* too many ranges: a full flush */
		return;
	}
	batch->range[batch->ranges].start = start;
	batch->range[batch->ranges].pages = pages;
	batch->ranges++;
}

static void flush_ranges(void *arg)
{
	const struct shootdown_batch *batch = arg;
	struct percpu *self = this_cpu();

	for (unsigned i = 0; i < batch->ranges; i++)
		for (u64 page = 0; page < batch->range[i].pages; page++)
			tlb_flush_local_page(batch->range[i].start + page * PAGE_SIZE);
	atomic_store_relaxed(&self->flushes_page, self->flushes_page + batch->pages);
}

static void shootdown_ranged(struct shootdown_batch *batch, enum shootdown_skip skip)
{
	struct percpu *self = this_cpu();
	u64 g;

	context_assert(CONTEXT_ORDINARY);
	atomic_add_relaxed(&stats.flushes, 1);
	atomic_add_relaxed(&stats.ranged, 1);
	g = atomic_fetch_add(&shootdown_generation, 1) + 1;
	check_event(CHECK_ROUND_RANGED, g, 0);
	flush_ranges(batch);
	if (cpu_count > 1) {
		round_choose_targets(self, skip);
		round_count_sent(self, call_cpus(&self->round_targets, flush_ranges, batch));
	}
	check_event(CHECK_RANGED, g, 0);
}

void shootdown_batch_flush(struct shootdown_batch *batch, enum shootdown_skip skip)
{
	if (batch->pages == 0)
		return;
	atomic_add_relaxed(&stats.ops, 1);
	if (batch->pages > SHOOTDOWN_PAGES_MAX)
		shootdown_full(skip);
	else
		shootdown_ranged(batch, skip_allowed(skip & ~SHOOTDOWN_SKIP_QUIET));
	*batch = (struct shootdown_batch){0};
}

void shootdown_stats_read(struct shootdown_stats *out)
{
	for (size_t i = 0; i < sizeof(stats) / sizeof(u64); i++)
		((u64 *)out)[i] = atomic_load_relaxed(&((const u64 *)&stats)[i]);
	out->interrupted = cpumask_weight(&interrupted_cpus);
}

void shootdown_stats_reset_interrupted(void)
{
	cpumask_zero(&interrupted_cpus);
}

void shootdown_init(void)
{
	interrupted_cpus.words = kernel_upward.early_alloc(cpumask_words * sizeof(u64), NODE_NONE,
							   "the mask of interrupted CPUs");
}
