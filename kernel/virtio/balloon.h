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
 * An idle CPU does all of it, a bounded piece in each round. It looks again every BALLOON_PERIOD,
 * which is the only interrupt that balloon=on adds. With balloon=off, the default, no device is
 * looked for and no code runs.
 *
 * Zero pages: virtio 1.2 does not say that the host's memory reads as zero after a report, and a
 * host may ignore one. balloon=on therefore leaves the zero note (mm/memmap/block.h) alone.
 * balloon=zero vouches for the host, and pools made of reported memory need no clearing. QEMU keeps
 * that promise for private anonymous memory if its discarding is not inhibited.
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
	bool host_zeroes; /* memory that the host took reads as zero */
	bool started;
	struct report out;
	struct page *message; /* frame for the numbers of frames */
	struct page *figures; /* frame for the statistics, which the device has; NULL: none */

	struct page *held; /* pages of 2 MiB in the balloon, a chain */
	u64 held_count;
	u64 asked; /* pages of 2 MiB that the host wants, as of the last round */

	/* For people: all since the start. */
	u64 messages, reported_frames, report_ns, inflated, deflated, kept_frames,
		told; /* statistics */
};

/*
 * Set the device up. `balloon` is all zeros except `mm`, `dev` and `host_zeroes`. Returns 0;
 * -ENODEV if the device lacks what is needed or misbehaves; -ENOMEM. Context: ordinary.
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

/* Start-up, once memory has owners: do what balloon= says. */
void balloon_init(void);
