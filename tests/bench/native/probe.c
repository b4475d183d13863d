/*
 * Probes: the least code that allocates frames, as a scale for the allocator's rows on any machine.
 *
 * Each frame has a 64-byte descriptor, as the allocator's frames have. A buddy up to order 10 is
 * threaded through the descriptors under one spin lock. In front of it there is nothing, or a list
 * per CPU, or a ring per CPU. There are no zones, types, watermarks or checks.
 */
#include "tests/bench/native/probe.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <arch/atomic.h>

enum { ORDERS = 11, BATCH = 64, HIGH = 512, RING = 1024, CPUS = 8, HUGE_KEPT = 8 };
enum { STATE_USED, STATE_BUDDY, STATE_HELD };

struct frame {
	u32 state, order, references, unused;
	struct frame *next, *prev;
	u64 padding[4];
};

struct held {
	u32 head, tail, ring[RING]; /* PROBE_RING */
	struct frame *list;         /* PROBE_LIST */
	u32 count, huge_count;
	u64 huge[HUGE_KEPT];
} __cacheline_aligned;

static enum probe_kind kind;
static struct frame *frames;
static u64 frame_count;
static struct frame *free_list[ORDERS];
static u32 free_orders;
static __cacheline_aligned u32 locked;
static struct held held_by[CPUS];

static void lock(void)
{
	while (atomic_exchange(&locked, 1u))
		while (atomic_load_relaxed(&locked))
			__builtin_ia32_pause();
}

static void unlock(void)
{
	atomic_store_release(&locked, 0u);
}

static void list_add(struct frame *frame, unsigned order)
{
	frame->state = STATE_BUDDY;
	frame->order = order;
	frame->prev = NULL;
	frame->next = free_list[order];
	if (frame->next)
		frame->next->prev = frame;
	free_list[order] = frame;
	free_orders |= 1u << order;
}

static void list_remove(struct frame *frame)
{
	if (frame->prev)
		frame->prev->next = frame->next;
	else
		free_list[frame->order] = frame->next;
	if (frame->next)
		frame->next->prev = frame->prev;
	if (!free_list[frame->order])
		free_orders &= ~(1u << frame->order);
	frame->state = STATE_USED;
}

static struct frame *take(unsigned order)
{
	const u32 orders = free_orders >> order << order;
	struct frame *frame;
	unsigned at;

	if (!orders)
		return NULL;
	at = (unsigned)__builtin_ctz(orders);
	frame = free_list[at];
	list_remove(frame);
	while (at > order) {
		at--;
		list_add(frame + (1u << at), at);
	}
	return frame;
}

static void give(struct frame *frame, unsigned order)
{
	for (; order < ORDERS - 1; order++) {
		const u64 other = (u64)(frame - frames) ^ (1u << order);

		if (other >= frame_count || frames[other].state != STATE_BUDDY ||
		    frames[other].order != order)
			break;
		list_remove(&frames[other]);
		frame = MIN(frame, &frames[other]);
	}
	list_add(frame, order);
}

bool probe_init(enum probe_kind probe, u64 count)
{
	const size_t bytes = count * sizeof(*frames);

	kind = probe;
	frame_count = count;
	frames = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (frames == MAP_FAILED)
		return false;
	madvise(frames, bytes, MADV_HUGEPAGE);
	memset(frames, 0, bytes);
	memset(held_by, 0, sizeof(held_by));
	memset(free_list, 0, sizeof(free_list));
	free_orders = 0;
	for (u64 i = count; i > 0; i -= 512)
		give(&frames[i - 512], 9);
	return true;
}

void probe_exit(void)
{
	munmap(frames, frame_count * sizeof(*frames));
}

static void hold(struct held *held, struct frame *frame)
{
	frame->state = STATE_HELD;
	if (kind == PROBE_RING) {
		held->ring[held->head++ % RING] = (u32)(frame - frames);
		return;
	}
	frame->next = held->list;
	held->list = frame;
	held->count++;
}

static bool refill(struct held *held)
{
	struct frame *run = NULL;
	u32 taken = 0;

	lock();
	if (kind == PROBE_RING)
		run = take(6);
	if (run) {
		unlock();
		for (u32 i = BATCH; i > 0; i--)
			hold(held, &run[i - 1]);
		return true;
	}
	while (taken < BATCH && (run = take(0))) {
		hold(held, run);
		taken++;
	}
	unlock();
	return taken > 0;
}

static void drain(struct held *held, u32 count)
{
	lock();
	while (count-- > 0) {
		struct frame *frame;

		if (kind == PROBE_RING) {
			frame = &frames[held->ring[held->tail++ % RING]];
		} else {
			frame = held->list;
			held->list = frame->next;
			held->count--;
		}
		give(frame, 0);
	}
	unlock();
}

static u64 use(struct frame *frame)
{
	if (!frame)
		return PROBE_NONE;
	frame->state = STATE_USED;
	frame->references = 1;
	return (u64)(frame - frames);
}

static u64 alloc_locked(unsigned order)
{
	struct frame *frame;

	lock();
	frame = take(order);
	unlock();
	return use(frame);
}

u64 probe_alloc(cpu_t cpu, unsigned order)
{
	struct held *held = &held_by[cpu];
	struct frame *frame;

	if (kind == PROBE_RING && order == 9 && held->huge_count > 0)
		return use(&frames[held->huge[--held->huge_count]]);
	if (kind == PROBE_BUDDY || order > 0)
		return alloc_locked(order);
	if (kind == PROBE_RING) {
		if (held->head == held->tail && !refill(held))
			return PROBE_NONE;
		return use(&frames[held->ring[--held->head % RING]]);
	}
	if (held->count == 0 && !refill(held))
		return PROBE_NONE;
	frame = held->list;
	held->list = frame->next;
	held->count--;
	return use(frame);
}

void probe_free(cpu_t cpu, u64 number, unsigned order)
{
	struct held *held = &held_by[cpu];
	struct frame *frame = &frames[number];

	if (frame->references != 1 || frame->state != STATE_USED)
		abort();
	frame->references = 0;
	if (kind == PROBE_RING && order == 9 && held->huge_count < HUGE_KEPT) {
		held->huge[held->huge_count++] = number;
	} else if (kind == PROBE_BUDDY || order > 0) {
		lock();
		give(frame, order);
		unlock();
	} else {
		hold(held, frame);
		if ((kind == PROBE_RING ? held->head - held->tail : held->count) > HIGH)
			drain(held, BATCH);
	}
}

void probe_drain(cpu_t cpus)
{
	for (cpu_t cpu = 0; cpu < cpus; cpu++) {
		drain(&held_by[cpu], kind == PROBE_RING ? held_by[cpu].head - held_by[cpu].tail
							: held_by[cpu].count);
		while (held_by[cpu].huge_count > 0) {
			lock();
			give(&frames[held_by[cpu].huge[--held_by[cpu].huge_count]], 9);
			unlock();
		}
	}
}
