/*
 * Memory that goes back to the host: the driver of a virtio balloon (virtio 1.2, 5.5).
 *
 *   free page reporting   Ashlar shows free runs of 2 MiB to 1 GiB (mm/zone/report.h), and the
 *                         host takes the memory behind them back. They stay free, and the next
 *                         touch brings new memory
 *   inflate, deflate      the host asks for an amount of memory, and Ashlar keeps as many pages
 *                         of 2 MiB from its own use until the host asks for less
 *   statistics            the host has a message with Ashlar's figures, and asks for a new one
 *                         by giving it back (5.5.6.3)
 *
 * An idle CPU does all of it, a bounded piece in each round; without one, CPUs that wait in their
 * work do. They look again every BALLOON_PERIOD. Beside an idle CPU, those that wait look every
 * BALLOON_GATHER whether it has been given work. A device adds no other interrupt.
 *
 * Free memory that has struct pages is gathered first: free huge pages in each round; every
 * BALLOON_GATHER also pages in lists of CPUs and free blocks that were split, which may be wanted
 * next. They become bare, so the metadata memory that described them is shown, too.
 *
 * What a bad device can do: nothing but be slow, keep memory that it was shown, or destroy the
 * contents of what it was shown. It cannot end a request that was not made, and a device that is
 * given up and does not reset keeps what it has: those frames are nobody's, and stay counted.
 *
 * Wrenger et al., "HyperAlloc", EuroSys 2025, share the allocator's state with the host. Here the
 * host learns only what it is shown, and the block table makes showing cheap.
 */
#pragma once

#include "kernel/virtio/virtio.h"
#include "kernel/virtio/virtq.h"
#include "mm/zone/report.h"

#define BALLOON_PERIOD (100 * NS_PER_MS)
#define BALLOON_GATHER NS_PER_S

/*
 * In a round: frames that are shown together, pages of 2 MiB that go in or out, and free huge pages
 * that give up their struct pages.
 */
#define BALLOON_REPORT_MOST ((u64)1 << GIGA_ORDER)
enum { BALLOON_PAGES_MOST = 16, BALLOON_BARE_MOST = 8192 };

/* A balloon. Belongs to the CPU that has report_claim(), or to a test. */
struct balloon {
	struct mm *mm;
	struct virtio_device *dev;
	struct virtq inflate, deflate, stats, shown;
	bool started;
	struct report out;
	u64 gather_ns;        /* not earlier than this is memory gathered again */
	u64 gathered;         /* gather_mark() after it was */
	struct page *message; /* frame for the numbers of frames */
	struct page *figures; /* frame for the statistics, which the device has; NULL: none */

	struct page *held; /* pages of 2 MiB in the balloon, a chain */
	u64 held_count;
	u64 asked; /* pages of 2 MiB that the host wants, as of the last round */

	/* For people: all since the start. */
	u64 messages, gathers, reported_frames, report_ns, inflated, deflated, kept_frames,
		told; /* statistics */
};

/*
 * Set the device up. `balloon` is all zeros except `mm` and `dev`. Returns 0; -ENODEV if the device
 * lacks what is needed or misbehaves; -ENOMEM. Context: ordinary.
 */
int balloon_begin(struct balloon *balloon);

/*
 * One round: a bounded piece of what there is to do. Returns true if there may be more. The caller
 * has report_claim(), or the mm is its own. Context: ordinary.
 */
bool balloon_round(struct balloon *balloon);

/*
 * Show memory until nothing is left to show. The end comes for any device and however fast memory
 * changes hands: at most as much is shown as is free at the beginning. The caller has
 * report_claim(), or the mm is its own. Context: ordinary.
 */
void balloon_report_all(struct balloon *balloon);

/*
 * Reset the device and take back what it has: the pages in the balloon and its queues. Returns
 * false if it does not reset; then it keeps them. Context: ordinary.
 */
bool balloon_end(struct balloon *balloon);

/* Start-up, once memory has owners: use the device if there is one, unless balloon=off. */
void balloon_init(void);
