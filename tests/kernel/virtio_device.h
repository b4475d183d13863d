/*
 * A virtio balloon in software, for cases and fuzzers: it does what a device does with its queues,
 * well or badly, while the driver notifies it.
 */
#pragma once

#include "kernel/virtio/balloon.h"
#include "tests/kernel/random.h"

enum soft_manner {
	SOFT_GOOD,
	SOFT_SILENT,     /* does not answer */
	SOFT_AHEAD,      /* answers more requests than were made */
	SOFT_WRONG_NAME, /* answers with a buffer that was not its */
	SOFT_RANDOM, /* writes anything anywhere in the frame of the queue, then answers anyhow */
};

enum { SOFT_QUEUES = 5, SOFT_RUNS = 512, SOFT_FIGURES = 10 };

struct soft_balloon {
	struct virtio_device dev;
	enum soft_manner manner;
	struct random_source *random; /* of SOFT_RANDOM */
	bool stubborn;                /* never says that it is reset */
	bool wild;                    /* SOFT_RANDOM: its registers say anything, too */
	void (*meanwhile)(void);      /* what the machine does while the device is at work */
	u64 offers, agreed;
	u8 status;
	u8 *ring[SOFT_QUEUES];
	u16 size[SOFT_QUEUES], seen[SOFT_QUEUES];
	u32 pages, actual; /* its configuration */

	/* What it was shown, and told, by a driver that it believed. */
	struct {
		phys_t start;
		u64 bytes;
	} shown[SOFT_RUNS];
	u32 shown_count;
	u64 shown_frames, told_in, told_out; /* frames */
	u64 figure[SOFT_FIGURES];            /* statistics, by tag */
	u32 figures, messages_of_figures;    /* in the last message; messages */
	u32 faults;                          /* rules that the driver broke */
};

/* A good device that offers reports. */
void soft_balloon_init(struct soft_balloon *soft);

/* Give the statistics back, to be told others. */
void soft_balloon_ask_figures(struct soft_balloon *soft);
