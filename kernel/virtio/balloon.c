/*
 * The driver of a virtio balloon: see balloon.h.
 */
#include "kernel/virtio/balloon.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/cpu.h>
#include <arch/pgtable.h>
#include <arch/timer.h>

#include "kernel/console/command.h"
#include "kernel/core/call.h"
#include "kernel/core/cmdline.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/virtio/virtio_mmio.h"
#include "kernel/virtio/virtio_pci.h"
#include "mm/debug/leaks.h"
#include "mm/hvo/hvo_unshare.h"
#include "mm/memmap/meta.h"
#include "mm/memmap/page.h"
#include "mm/mm.h"
#include "mm/page/page_alloc.h"
#include "mm/zone/section_close.h"

enum { KIND_BALLOON = 5 };
enum { CONFIG_PAGES = 0, CONFIG_ACTUAL = 4 };

#define FEATURE_TELL_HOST (1ULL << 0)
#define FEATURE_STATS     (1ULL << 1)
#define FEATURE_HINT      (1ULL << 3)
#define FEATURE_REPORTING (1ULL << 5)

/* A message names frames by their numbers in 32 bits, 512 for each page of 2 MiB. */
enum { MESSAGE_PAGES = 2 };
_Static_assert(MESSAGE_PAGES *BLOCK_FRAMES * sizeof(u32) <= PAGE_SIZE, "a message is one frame");

/* ---- setting up ---- */

enum { STATS_QUEUE = 2 };

/*
 * The queues of features that the device offers have numbers, whether they are agreed on or not:
 * QEMU makes all of them.
 */
static u16 reporting_queue(u64 offered)
{
	u16 number = 2;

	if (offered & FEATURE_STATS)
		number++;
	if (offered & FEATURE_HINT)
		number++;
	return number;
}

static int begin_queues(struct balloon *b, u64 offered, u64 agreed)
{
	int err = virtq_begin(&b->inflate, b->dev, 0);

	if (!err)
		err = virtq_begin(&b->deflate, b->dev, 1);
	if (!err && (agreed & FEATURE_STATS))
		err = virtq_begin(&b->stats, b->dev, STATS_QUEUE);
	if (!err && (agreed & FEATURE_REPORTING))
		err = virtq_begin(&b->shown, b->dev, reporting_queue(offered));
	return err;
}

static struct page *frame_begin(void)
{
	struct page *frame = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);

	if (frame)
		leaks_keep(1);
	return frame;
}

static void frame_end(struct page **frame)
{
	if (!*frame)
		return;
	leaks_keep(-1ULL);
	page_free(*frame);
	*frame = NULL;
}

bool balloon_end(struct balloon *b)
{
	if (!virtio_end(b->dev))
		return false;
	while (balloon_round(b))
		;
	virtq_end(&b->inflate);
	virtq_end(&b->deflate);
	virtq_end(&b->stats);
	virtq_end(&b->shown);
	frame_end(&b->message);
	frame_end(&b->figures);
	b->started = false;
	return true;
}

int balloon_begin(struct balloon *b)
{
	u64 offered, agreed;
	int err = virtio_begin(b->dev, FEATURE_TELL_HOST | FEATURE_STATS | FEATURE_REPORTING,
			       &offered, &agreed);

	if (!err)
		err = begin_queues(b, offered, agreed);
	if (!err) {
		b->message = frame_begin();
		b->figures = frame_begin();
		if (!b->message || !b->figures)
			err = -ENOMEM;
	}
	if (err) {
		virtio_give_up(b->dev, "it cannot be set up");
		balloon_end(b);
		return err;
	}
	b->out = (struct report){.mm = b->mm};
	virtio_ready(b->dev);
	b->started = true;
	return 0;
}

/* ---- free page reporting ---- */

/* Show the runs of `b->out` and wait for the answer. */
static int show_runs(struct balloon *b)
{
	struct virtq_buffer buffer[REPORT_RUNS];

	for (u32 i = 0; i < b->out.count; i++) {
		const struct report_run *run = &b->out.run[i];

		buffer[i] =
			(struct virtq_buffer){.start = block_pfn(run->index) << PAGE_SHIFT,
					      .bytes = (u32)(order_pages(run->order) << PAGE_SHIFT),
					      .device_writes = true};
	}
	virtq_send(&b->shown, buffer, b->out.count);
	b->messages++;
	return virtq_wait(&b->shown);
}

static u64 frames_of(const struct report *out)
{
	u64 frames = 0;

	for (u32 i = 0; i < out->count; i++)
		frames += order_pages(out->run[i].order);
	return frames;
}

/* Changes when there is something to gather: memory was in use and is free again. */
static u64 gather_mark(const struct balloon *b)
{
	u64 mark = b->reported_frames;

	for (unsigned z = 0; z < b->mm->zones; z++)
		mark += atomic_load_relaxed(&b->mm->zone[z].free_class[FREE_FULL]);
	return mark;
}

/*
 * Free huge pages give up their struct pages, with one round for all, and if `full`, free blocks
 * that were split do. They merge to longer runs then, so that a message names more memory, and the
 * frames of their heads go back, too. Returns true if there may be more.
 */
static bool bare_free_pages(struct mm *mm, bool full)
{
	u64 bared = 0;
	bool more = false;

	for (unsigned z = 0; z < mm->zones; z++) {
		struct zone *zone = &mm->zone[z];
		u64 pages;

		if (full)
			more |= hvo_huge_free_full(zone, BALLOON_BARE_MOST) == BALLOON_BARE_MOST;
		pages = atomic_load_relaxed(&zone->free_class[FREE_HUGE]) / BLOCK_FRAMES;
		if (pages > 0)
			bared += hvo_bare_free_huge(zone, MIN(pages, (u64)BALLOON_BARE_MOST));
	}
	if (bared > 0)
		meta_end_batch_all(mm); /* blocks that held the heads are free, too */
	return more;
}

/*
 * Make free memory bare. In mapped sections no block is ever bare, and huge pages are shown as they
 * are.
 */
static void gather(struct balloon *b)
{
	const u64 now = clock_ns();
	const bool all = now >= b->gather_ns && gather_mark(b) != b->gathered;

	if (b->mm->style != SECTION_ON_DEMAND || bare_free_pages(b->mm, all) || !all)
		return;
	sections_give_back(b->mm, SECTION_ON_DEMAND); /* the rest, and lists of CPUs */
	b->gathers++;
	b->gathered = gather_mark(b);
	b->gather_ns = now + BALLOON_GATHER;
}

/*
 * Runs that a device has which was given up and did not reset stay in transit: nobody gets them,
 * and accounting still counts them.
 */
static bool report_round(struct balloon *b)
{
	const u64 start = clock_ns();
	u64 frames;

	if (virtq_most(&b->shown) < REPORT_RUNS)
		return false;
	gather(b);
	if (report_take(&b->out, BALLOON_REPORT_MOST) == 0)
		return report_has_more(&b->out);
	frames = frames_of(&b->out);
	if (show_runs(b) == 0) {
		report_give(&b->out, REPORT_TAKEN);
		b->reported_frames += frames;
		b->report_ns += clock_ns() - start;
		return true;
	}
	if (b->dev->was_reset) {
		report_give(&b->out, REPORT_REFUSED);
	} else {
		b->out.count = 0;
		b->kept_frames += frames;
	}
	return false;
}

static u64 free_frames(const struct mm *mm)
{
	u64 frames = 0;

	for (unsigned z = 0; z < mm->zones; z++)
		frames += zone_free(&mm->zone[z]);
	return frames;
}

/* Frames that are free or were never opened. *ram receives how many frames there are. */
static u64 free_and_total(const struct mm *mm, u64 *ram)
{
	u64 free = free_frames(mm);

	*ram = 0;
	for (unsigned z = 0; z < mm->zones; z++) {
		free += atomic_load_relaxed(&mm->zone[z].unopened);
		*ram += mm->zone[z].ram;
	}
	return free;
}

void balloon_report_all(struct balloon *b)
{
	const u64 end = b->reported_frames + free_frames(b->mm);

	b->gather_ns = 0;
	b->out.looked = 0;
	while (b->started && !b->dev->given_up && b->reported_frames < end && report_round(b))
		;
}

/* ---- statistics ---- */

/* Virtio 1.2, 5.5.6.4 "Memory Statistics Tags": those whose figures are true here. */
enum {
	STAT_SWAP_IN = 0,
	STAT_SWAP_OUT = 1,
	STAT_FREE = 4,
	STAT_TOTAL = 5,
	STAT_AVAILABLE = 6,
	STAT_CACHES = 7
};

struct figure {
	u16 tag;
	u64 value;
} __packed;

/* Memory that was never opened is free, too. Nothing is ever swapped, and no memory is a cache. */
static u32 write_figures(const struct balloon *b)
{
	struct figure *figure = page_address(b->figures);
	u64 ram, free = free_and_total(b->mm, &ram) << PAGE_SHIFT;
	u32 count = 0;

	ram -= b->held_count * BLOCK_FRAMES;
	figure[count++] = (struct figure){STAT_SWAP_IN, 0};
	figure[count++] = (struct figure){STAT_SWAP_OUT, 0};
	figure[count++] = (struct figure){STAT_FREE, free};
	figure[count++] = (struct figure){STAT_TOTAL, ram << PAGE_SHIFT};
	figure[count++] = (struct figure){STAT_AVAILABLE, free};
	figure[count++] = (struct figure){STAT_CACHES, 0};
	return count * (u32)sizeof(*figure);
}

/* The device keeps the message until it wants another; nobody waits for that. */
static void stats_round(struct balloon *b)
{
	struct virtq_buffer buffer = {.start = page_to_pfn(b->figures) << PAGE_SHIFT};

	if (b->dev->given_up || virtq_most(&b->stats) == 0 ||
	    (b->told > 0 && virtq_poll(&b->stats) != 1))
		return;
	buffer.bytes = write_figures(b);
	virtq_send(&b->stats, &buffer, 1);
	b->told++;
}

/* ---- inflating and deflating ---- */

/* Name the frames of some pages of 2 MiB to the host, and wait until it has read the message. */
static int send_pages(struct balloon *b, struct virtq *q, struct page *const *pages, u32 count)
{
	u32 *number = page_address(b->message);
	struct virtq_buffer buffer = {.start = page_to_pfn(b->message) << PAGE_SHIFT,
				      .bytes = count * BLOCK_FRAMES * (u32)sizeof(*number)};

	for (u32 i = 0; i < count * BLOCK_FRAMES; i++)
		number[i] = (u32)(page_to_pfn(pages[i / BLOCK_FRAMES]) + i % BLOCK_FRAMES);
	virtq_send(q, &buffer, 1);
	b->messages++;
	return virtq_wait(q);
}

/* The balloon leaves an eighth of memory to the machine, whatever the host asks for. */
static bool may_take_more(const struct balloon *b)
{
	u64 ram;

	return free_and_total(b->mm, &ram) > ram / 8;
}

/* A page for the balloon, whose frames have numbers of 32 bits; NULL if there is none. */
static struct page *take_page(struct balloon *b)
{
	struct page *page = NULL;

	if (may_take_more(b))
		page = mm_page_alloc(b->mm, BLOCK_ORDER, USE_UNMOVABLE, 0, NODE_NONE);
	if (page && page_to_pfn(page) + BLOCK_FRAMES - 1 > 0xffffffff) {
		mm_page_free(b->mm, page);
		page = NULL;
	}
	return page;
}

/* Pages that the host knows of, or may know of, go into the balloon. */
static void hold(struct balloon *b, struct page *const *pages, u32 count)
{
	for (u32 i = 0; i < count; i++)
		page_chain_push(&b->held, pages[i]);
	b->held_count += count;
	if (b->mm == &mm_kernel)
		leaks_keep(count * BLOCK_FRAMES);
}

static void let_go(struct balloon *b, struct page *const *pages, u32 count)
{
	if (b->mm == &mm_kernel)
		leaks_keep(-(u64)count * BLOCK_FRAMES);
	for (u32 i = 0; i < count; i++)
		mm_page_free(b->mm, pages[i]);
}

static bool inflate(struct balloon *b, u64 wanted)
{
	struct page *pages[MESSAGE_PAGES];
	u32 count = 0;

	while (count < MIN(wanted, (u64)MESSAGE_PAGES)) {
		struct page *page = take_page(b);

		if (!page)
			break;
		pages[count++] = page;
	}
	if (count == 0)
		return false;
	hold(b, pages, count);
	b->inflated += count;
	return send_pages(b, &b->inflate, pages, count) == 0;
}

/* The host learns of it before the pages are used again, whether it insists on that or not. */
static bool deflate(struct balloon *b, u64 wanted)
{
	struct page *pages[MESSAGE_PAGES];
	u32 count = 0;

	while (count < MIN(wanted, (u64)MESSAGE_PAGES) && b->held)
		pages[count++] = page_chain_pop(&b->held);
	if (count == 0)
		return false;
	b->held_count -= count;
	if (send_pages(b, &b->deflate, pages, count) != 0 && !b->dev->was_reset) {
		for (u32 i = 0; i < count; i++)
			page_chain_push(&b->held, pages[i]);
		b->held_count += count;
		return false;
	}
	let_go(b, pages, count);
	b->deflated += count;
	return !b->dev->given_up;
}

/* Returns true if the balloon has not the size yet that the host wants, and came nearer. */
static bool size_round(struct balloon *b)
{
	const u64 before = b->held_count;
	bool going = true;

	b->asked = b->dev->ops->config_read(b->dev, CONFIG_PAGES) / BLOCK_FRAMES;
	for (u32 i = 0; i < BALLOON_PAGES_MOST && going && b->asked != b->held_count;
	     i += MESSAGE_PAGES)
		going = b->held_count < b->asked ? inflate(b, b->asked - b->held_count)
						 : deflate(b, b->held_count - b->asked);
	if (b->held_count != before && !b->dev->given_up)
		b->dev->ops->config_write(b->dev, CONFIG_ACTUAL,
					  (u32)(b->held_count * BLOCK_FRAMES));
	return going && b->held_count != before;
}

/* A device that was reset has forgotten the pages in the balloon. */
static bool empty_round(struct balloon *b)
{
	struct page *page;

	if (!b->dev->was_reset || !b->held)
		return false;
	page = page_chain_pop(&b->held);
	b->held_count--;
	let_go(b, &page, 1);
	return true;
}

bool balloon_round(struct balloon *b)
{
	bool more;

	if (!b->started)
		return false;
	if (b->dev->given_up)
		return empty_round(b);
	more = size_round(b);
	stats_round(b);
	return !b->dev->given_up && (report_round(b) || more);
}

/* ---- the machine's own ---- */

static bool balloon = true;
OPTION_BOOL(balloon, balloon, "give free memory back to a host that offers a virtio-balloon",
	    .boot_only = true);

static struct virtio_device device;
static struct balloon machine = {.mm = &mm_kernel, .dev = &device};

/* Halt as an idle CPU until an interrupt, or until it is time to look again. */
static bool nap(void)
{
	bool napped = false;

	irq_disable();
	if (!work_waits() &&
	    timer_set(TIMER_WAIT, clock_ns() + BALLOON_PERIOD, timer_ends_halt, NULL) == 0) {
		cpu_halt_idle();
		timer_clear(TIMER_WAIT);
		napped = true;
	}
	irq_enable();
	return napped;
}

static u32 keeper; /* 1: an idle CPU looks every BALLOON_PERIOD */

/* A round, by whichever CPU has the claim. */
static bool claimed_round(void)
{
	bool more = false;

	if (report_claim()) {
		more = balloon_round(&machine);
		report_release();
	}
	return more;
}

/*
 * While no idle CPU is the keeper, any CPU that waits looks, one every BALLOON_PERIOD. A keeper
 * that is given work when no other CPU is idle has no successor: CPUs that wait look for that, too.
 */
static u64 balloon_in_wait(void)
{
	static u64 next_ns;

	if (atomic_load_relaxed(&keeper))
		return clock_ns() + BALLOON_GATHER;
	if (clock_ns() >= atomic_load_relaxed(&next_ns) && !claimed_round())
		atomic_store_relaxed(&next_ns, clock_ns() + BALLOON_PERIOD);
	return MAX(atomic_load_relaxed(&next_ns), 1ULL);
}

/*
 * One CPU is the keeper; the others halt as usual. A keeper that is given work wakes another CPU to
 * take its place.
 */
static bool balloon_idle(void)
{
	bool again;

	if (!atomic_cas(&keeper, 0, 1))
		return false;
	again = claimed_round() || nap() || work_waits();
	atomic_store_release(&keeper, 0);
	if (work_waits())
		idle_task_wake(1);
	return again;
}

void balloon_init(void)
{
	if (!balloon ||
	    (!virtio_pci_find(KIND_BALLOON, &device) && !virtio_mmio_find(KIND_BALLOON, &device)) ||
	    balloon_begin(&machine) < 0)
		return;
	pr_info("balloon: %s, %s", device.name,
		virtq_most(&machine.shown) ? "free pages are reported"
					   : "the host wants no reports of free pages");
	idle_task_set(balloon_idle, balloon_in_wait);
	idle_task_wake(1);
}

/* ---- the monitor's command ---- */

static void print_balloon(const struct balloon *b)
{
	print("  device   %s%s\n", b->dev->name, b->dev->given_up ? ", given up" : "");
	print("  reported %llu MiB in %llu ms, %llu messages in all, gathered %llu times\n",
	      b->reported_frames >> (20 - PAGE_SHIFT), b->report_ns / NS_PER_MS, b->messages,
	      b->gathers);
	print("  balloon  %llu MiB, the host wants %llu MiB; %llu in and %llu out since start\n",
	      b->held_count * 2, b->asked * 2, b->inflated * 2, b->deflated * 2);
	print("  figures  told %llu times\n", b->told);
	if (b->kept_frames)
		print("  kept     %llu MiB that the device was shown and did not give back\n",
		      b->kept_frames >> (20 - PAGE_SHIFT));
}

static int cmd_balloon(const struct words *words)
{
	if (!machine.started) {
		print("  there is no balloon: balloon=off, or no modern virtio-balloon device "
		      "on PCI or where virtio_mmio.device= says\n");
		return 0;
	}
	if (words_plain_count(words) > 1) {
		if (cmd_choice(words, 1, "thing to do", "report") < 0)
			return -EINVAL;
		if (report_claim()) {
			balloon_report_all(&machine);
			report_release();
		}
	}
	print_balloon(&machine);
	return 0;
}

COMMAND(balloon, .usage = "[report]",
	.help = "memory given back to the host; report: show it all that is free, now", .max = 1,
	.run = cmd_balloon, .choices = {"report"});
