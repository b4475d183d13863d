/*
 * The strategies that choose, and replay: see explore.h.
 *
 * Random walk   Each machine draws a rate, from every second point to one in 256, at which the CPU
 *               that runs is stopped for another, drawn evenly. Short windows are met at the high
 *               rates, and long runs between two preemptions at the low ones.
 * PCT           CPUs have priorities, drawn at first. The highest that can run does. At depth - 1
 *               decisions, drawn at first, the CPU that runs becomes the lowest; so does one that
 *               waits, since those for which it waits must run. Of n CPUs and k decisions, a bug of
 *               depth d is met with probability 1 / (n k^(d-1)) or more (Burckhardt et al.).
 * POS           Each access that a CPU is about to make has a priority, drawn when the CPU comes to
 *               it. The highest goes first, and those that race with it are drawn again, so the
 *               order of accesses that do not race costs no schedules (Yuan, Yang and Gu). When a
 *               CPU waits, all are drawn again: two CPUs that spin and wake each other would go
 *               before an access with a low priority for ever.
 * DFS           Every schedule of at most `depth` choices, one after the other. Each point asks
 *               which of its options is taken; 0 is the default. The next schedule makes one more
 *               choice after the last one. If there are `depth`, or no question is left, the last
 *               choice becomes the next option, or moves to a later question, or is dropped, and
 *               the one before it changes so. All choices count, as in delay-bounded scheduling
 *               (Emmi et al.). CHESS counts only preemptions; a loop that waits would then have
 *               too many choices that cost nothing.
 * Replay        The choices are those of a list. Strict: the first that does not fit ends the
 *               machine. Otherwise it is left out: the runner looks for a shorter list.
 *
 * Random walk, PCT and POS draw alike how many stores stay back, how long interrupts wait, and
 * which CPUs keep a translation, at a rate that each machine draws. A mistake with fences shows
 * only if a CPU stops after a load that overtook an atomic store, with this store kept back. At
 * such a point all three stop the CPU at a higher rate, which each machine draws, too.
 */
#include "tests/host/child.h"
#include "tests/host/explore/explore.h"

enum { RATES = 8, RATES_OVERTAKEN = 5, HOLD_BITS = 6, HOLD_MOST = 32, EXIT_MISFIT = 3 };

static u64 random_state;
static u64 random_stale; /* of its own, so that -f (main.c) leaves the other choices as they are */
static u32 rate, rate_overtaken, rate_stale;
static s64 priority[EXPLORE_CPUS_MAX], lowest;
static u64 change[DEPTH_MAX];
static u32 cursor[EXPLORE_CPUS_MAX]; /* first choice of a replay that each CPU has not passed */

/* splitmix64 (Steele, Lea and Flood, "Fast Splittable Pseudorandom Number Generators", 2014). */
static u64 draw_from(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ z >> 27) * 0x94d049bb133111ebULL;
	return z ^ z >> 31;
}

static u64 draw(void)
{
	return draw_from(&random_state);
}

static u64 draw_below(u64 n)
{
	return n ? draw() % n : 0;
}

static cpu_t nth_of(u64 set, u64 n)
{
	while (n--)
		set &= set - 1;
	return (cpu_t)__builtin_ctzll(set);
}

static void draw_priorities(u64 set)
{
	for (; set; set &= set - 1)
		priority[nth_of(set, 0)] = (s64)(draw() >> 2);
}

void choose_begin(void)
{
	const struct explore_request *r = &explore_request;

	random_state = r->seed;
	random_stale = ~r->seed;
	rate = 1U << (1 + draw_below(RATES));
	rate_overtaken = 1U << (1 + draw_below(RATES_OVERTAKEN));
	rate_stale = 1U << (1 + draw_from(&random_stale) % RATES);
	draw_priorities((1ULL << EXPLORE_CPUS_MAX) - 1);
	for (unsigned i = 0; i + 1 < r->depth && i < DEPTH_MAX; i++)
		change[i] = 1 + draw_below(r->decisions);
}

static void write_down(enum choice_kind kind, u64 value, u32 keep)
{
	const u32 n = explore_result->choices++;
	struct choice made = explore_choice();

	made.kind = kind;
	made.value = (u16)value;
	made.keep = (u16)keep;
	if (n < CHOICES_MAX)
		explore_result->choice[n] = made;
}

/* ---- replay ---- */

static void misfit(const struct choice *want, const char *why)
{
	const struct choice is = explore_choice();

	exploring = false;
	explore_result->misfit = true;
	child_say(
		"explore: the schedule does not fit: it has a choice of CPU %u at its point %u in "
		"%s(), but %s (CPU %u is at its point %u in %s())\n",
		want->cpu, want->point, want->name ? want->name : "?", why, is.cpu, is.point,
		schedule_function(is.place));
	_exit(EXIT_MISFIT);
}

/* The next choice of this CPU that its points have not passed, or NULL. */
static const struct choice *next_choice(cpu_t cpu)
{
	const struct explore_request *r = &explore_request;
	u32 *at = &cursor[cpu];

	while (*at < r->choices &&
	       (r->replay[*at].cpu != cpu || (*at >= r->left_out && *at < r->left_out_end) ||
		(!r->strict && r->replay[*at].point + r->slack < explore_points(cpu))))
		++*at;
	return *at < r->choices ? &r->replay[*at] : NULL;
}

/* The choice that the replay has for this point, of the kind that is asked for; else NULL. */
static const struct choice *replayed(enum choice_kind kind)
{
	const struct choice is = explore_choice(), *want = next_choice(is.cpu);

	if (!want || want->kind != kind)
		return NULL;
	if (want->point != is.point &&
	    (want->place != is.place || want->point > is.point + explore_request.slack))
		return NULL; /* another point, and not the same place within `slack` points */
	if (explore_request.strict && want->name &&
	    strcmp(want->name, schedule_function(is.place)) != 0)
		misfit(want, "the code is elsewhere");
	cursor[is.cpu]++;
	return want;
}

void choose_passed(bool over)
{
	for (cpu_t i = 0; explore_request.strict && i < EXPLORE_CPUS_MAX; i++) {
		const struct choice *want = next_choice(i);

		if (want && over)
			misfit(want, "the case has ended");
		if (want && want->point + (want->kind == STALE) <= explore_points(i))
			misfit(want, "that choice was not there to be made");
	}
}

/* ---- choices ---- */

static cpu_t highest_of(u64 set)
{
	cpu_t best = nth_of(set, 0);

	for (; set; set &= set - 1)
		if (priority[nth_of(set, 0)] > priority[best])
			best = nth_of(set, 0);
	return best;
}

static bool stops_overtaken(void)
{
	return buffer_overtaken(explore_here) && draw_below(rate_overtaken) == 0;
}

static cpu_t draw_cpu(u64 ready, cpu_t usual)
{
	const u64 others = ready & ~(1ULL << usual);

	if (usual != explore_here) /* this CPU cannot go on */
		return nth_of(ready, draw_below((u64)__builtin_popcountll(ready)));
	if (draw_below(stops_overtaken() ? 1 : rate) != 0)
		return usual;
	return nth_of(others, draw_below((u64)__builtin_popcountll(others)));
}

static cpu_t draw_by_priority(u64 ready, cpu_t usual)
{
	for (unsigned i = 0; i + 1 < explore_request.depth && i < DEPTH_MAX; i++)
		if (change[i] == explore_result->decisions)
			choose_relaxed(explore_here);
	if (usual != explore_here || stops_overtaken())
		choose_relaxed(explore_here);
	return highest_of(ready);
}

static cpu_t draw_by_race(u64 ready, cpu_t usual)
{
	cpu_t to;

	draw_priorities(usual == explore_here ? 1ULL << explore_here : ready);
	if (stops_overtaken())
		choose_relaxed(explore_here);
	to = highest_of(ready);
	for (; ready; ready &= ready - 1)
		if (explore_race(nth_of(ready, 0), to))
			draw_priorities(ready & -ready);
	return to;
}

void choose_relaxed(cpu_t cpu)
{
	priority[cpu] = --lowest;
}

static u32 draw_keep(u32 buffered)
{
	if (buffered == 0 || draw_below(4) == 0)
		return 0;
	if (buffer_overtaken(explore_here) && draw_below(4) != 0)
		return buffer_atomic(explore_here, (u32)draw_below(4));
	return (u32)draw_below(buffered + 1);
}

/* DFS: the option to take. The next branch may belong to a later question, which has it. */
static u64 answer(u64 options)
{
	struct explore_result *r = explore_result;
	struct branch *next = &r->branch[r->taken];
	const u64 question = r->asked++;

	if (r->taken == r->branches || question < next->question)
		return 0;
	if (question > next->question)
		*next = (struct branch){.question = question, .answer = 1};
	if (next->answer >= options)
		return 0;
	r->taken++;
	return next->answer;
}

/* DFS: this CPU goes on, if it can, or any other CPU, with any number of atomic stores kept. */
static cpu_t branch_to(u64 ready, cpu_t usual, u32 *keep)
{
	const cpu_t self = explore_here;
	const u64 others = ready & ~(1ULL << self);
	const u64 n = (u64)__builtin_popcountll(others), first = usual == self;
	const u64 nth = answer(first + n * (1 + buffer_atomics(self)));
	const u64 behind = (u64)__builtin_popcountll(others & ((1ULL << usual) - 1));

	if (nth < first)
		return self;
	*keep = nth - first < n ? 0 : buffer_atomic(self, (u32)((nth - first) / n - 1));
	return nth_of(others, (nth - first + behind) % n);
}

static cpu_t replay_cpu(u64 ready, cpu_t usual, u32 buffered, u32 *keep)
{
	const struct choice *want = replayed(RUN);
	const bool can = want && ready >> want->value & 1 && want->keep <= buffered;

	if (want && !can && explore_request.strict)
		misfit(want, ready >> want->value & 1 ? "fewer stores are buffered"
						      : "the CPU to run cannot run");
	*keep = can ? want->keep : 0;
	return can ? want->value : usual;
}

static cpu_t by_strategy(u64 ready, cpu_t usual, u32 buffered, u32 *keep)
{
	cpu_t to = usual;

	if (explore_request.strategy == REPLAY)
		return replay_cpu(ready, usual, buffered, keep);
	if (explore_request.strategy == DFS)
		return branch_to(ready, usual, keep);
	if (ready & (ready - 1))
		to = explore_request.strategy == PCT   ? draw_by_priority(ready, usual)
		     : explore_request.strategy == POS ? draw_by_race(ready, usual)
						       : draw_cpu(ready, usual);
	*keep = to == explore_here ? 0 : draw_keep(buffered);
	return to;
}

cpu_t choose_cpu(u64 ready, cpu_t usual, u32 buffered, u32 *keep)
{
	const cpu_t to = by_strategy(ready, usual, buffered, keep);

	if (to != usual || *keep > 0)
		write_down(RUN, to, *keep);
	return to;
}

u32 choose_hold(void)
{
	const struct choice *want;
	u64 points = 0;

	if (explore_request.strategy == REPLAY) {
		want = replayed(HOLD);
		points = want ? want->value : 0;
	} else if (explore_request.strategy == DFS) {
		points = answer(1 + HOLD_MOST);
	} else if (draw_below(2)) {
		points = 1 + draw_below(1ULL << draw_below(HOLD_BITS));
	}
	if (points)
		write_down(HOLD, points, 0);
	return (u32)points;
}

static bool keeps_stale(cpu_t cpu)
{
	const struct choice *want = next_choice(explore_here);

	if (explore_request.strategy == REPLAY)
		return want && want->value == cpu && replayed(STALE);
	if (explore_request.fresh)
		return false;
	return explore_request.strategy == DFS ? answer(2)
					       : draw_from(&random_stale) % rate_stale == 0;
}

u64 choose_stale(u64 others)
{
	u64 keepers = 0;

	for (; others; others &= others - 1) {
		if (!keeps_stale(nth_of(others, 0)))
			continue;
		keepers |= others & -others;
		write_down(STALE, nth_of(others, 0), 0);
	}
	return keepers;
}
