/*
 * The devices null, zero, full and random (open_file.h). random and urandom are the same: they
 * never wait.
 *
 * The sequence without RDRAND is splitmix64 (Guy Steele, Doug Lea, Christine Flood, "Fast
 * splittable pseudorandom number generators", 2014), with the time mixed into each step.
 */
#include "kernel/program/open_file.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/random.h>

#include "kernel/program/thread.h"

static u64 sequence;

static u64 random_step(void)
{
	const u64 step = 0x9e3779b97f4a7c15ULL;
	u64 x = (atomic_fetch_add(&sequence, step) + step) ^ (clock_ns() << 20);

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ULL;
	x = (x ^ x >> 27) * 0x94d049bb133111ebULL;
	return x ^ x >> 31;
}

/*
 * Random bytes: the CPU's own (RDRAND), or without these a sequence that begins with the time and
 * is good for tests only.
 */
static void random_fill(void *to, size_t size)
{
	u8 *at = to;

	while (size) {
		const size_t part = MIN(size, sizeof(u64));
		u64 value;

		if (!random_hardware(&value))
			value = random_step();
		memcpy(at, &value, part);
		at += part;
		size -= part;
	}
}

static s64 read_nothing(struct file *file, struct span *to, u64 at)
{
	return 0;
}

/* As on Linux, a signal cuts a long transfer short. A short one is never cut. */
static bool is_cut_short(u64 done)
{
	return done % PAGE_SIZE == 0 && thread_is_wanted(thread_current());
}

enum { PART = 256 }; /* divides PAGE_SIZE */

/* Fill all of `to` with zeros or, in parts, with random bytes. */
static s64 fill(struct span *to, bool random)
{
	u8 part[PART];
	u64 done = 0;

	while (to->total > 0) {
		const u64 bytes = MIN(to->total, random ? PART : PAGE_SIZE);
		int err;

		if (random)
			random_fill(part, bytes);
		err = random ? span_write(to, part, bytes) : span_zero(to, bytes);
		if (err)
			return done > 0 ? (s64)done : err;
		done += bytes;
		if (is_cut_short(done))
			break;
	}
	return (s64)done;
}

static s64 read_zeros(struct file *file, struct span *to, u64 at)
{
	return fill(to, false);
}

static s64 read_random(struct file *file, struct span *to, u64 at)
{
	return fill(to, true);
}

static s64 write_nowhere(struct file *file, struct span *from, u64 at)
{
	return (s64)from->total;
}

static s64 write_full(struct file *file, struct span *from, u64 at)
{
	return from->total > 0 ? -ENOSPC : 0;
}

/* The numbers are those of Linux (Documentation/admin-guide/devices.txt). */
#define DEVICE(minor) (1u << 8 | (minor))

const struct file_ops null_ops = {
	.read = read_nothing, .write = write_nowhere, .device = DEVICE(3)};
const struct file_ops zero_ops = {.read = read_zeros, .write = write_nowhere, .device = DEVICE(5)};
const struct file_ops full_ops = {.read = read_zeros, .write = write_full, .device = DEVICE(7)};
const struct file_ops random_ops = {
	.read = read_random, .write = write_nowhere, .device = DEVICE(9)};
