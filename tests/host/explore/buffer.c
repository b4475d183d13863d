/*
 * Store buffers, and the functions that the compiler calls for each access of code that is compiled
 * with -fsanitize=thread. No run-time of a sanitizer is linked.
 *
 * A CPU writes to memory at once, and its log keeps what was there before. While it runs it is
 * alone, so this is the same as a buffer whose stores its own loads see. When it stops, a choice
 * decides how many of the oldest stores are final. The others are taken back, newest first, and
 * laid over again when the CPU goes on:
 *
 *   running   memory [old old NEW]   log {place, old}
 *   stopped   memory [old old old]   log {place, new}     other CPUs see none of these stores
 *   running   memory [old 'X' NEW]   log {place, 'X'}     what came meanwhile is overwritten
 *
 * This gives the outcomes of x86-TSO (Sewell et al.; litmus_test.c runs the known ones): a store
 * becomes final later than loads that follow it, never out of order, and all are final before a
 * locked instruction, a fence or a flush of the TLB. In two ways it is stronger than a machine, so
 * that some mistakes are not found, but none is invented: copies of more than RANGE_MAX bytes and
 * entries of the upper two levels of page tables are final at once, after all stores before them;
 * and streaming stores are ordinary ones.
 *
 * A page-table store is taken back with its mapping. When it is laid over again, the watcher of
 * stale translations (check.c) takes it for a change made now: a CPU that has flushed meanwhile may
 * have read the entry as it was.
 *
 * A store to a stack frame whose function has returned is left out: functions of the explorer may
 * have their frames there. In a live frame the compiler may have reused a slot without a call that
 * is logged. Bytes are exchanged, so such a slot is as before when the CPU goes on.
 *
 * Struct pages are logged by their place in the direct map, because their mapping may change while
 * the CPU is stopped.
 */
#include <arch/pgtable.h>

#include "tests/host/explore/explore.h"

enum { LOG_MAX = 64, PIECE_MAX = 16, RANGE_MAX = 512, JUST_NOW = 8 };

static struct stored {
	u8 *at;
	u32 bytes;
	bool is_atomic;
	u8 was[PIECE_MAX];   /* running: before the store; stopped: after it */
	struct host_pte pte; /* .entry NULL: an ordinary store */
	u64 keepers;         /* CPUs (bits) that go on using what it takes away */
} logs[EXPLORE_CPUS_MAX][LOG_MAX];
static u32 oldest[EXPLORE_CPUS_MAX]; /* of the ring */
u32 buffer_count[EXPLORE_CPUS_MAX];
static u32 loads[EXPLORE_CPUS_MAX]; /* atomic ones since the newest atomic store */

static struct stored *nth(cpu_t cpu, u32 n)
{
	return &logs[cpu][(oldest[cpu] + n) % LOG_MAX];
}

bool buffer_overtaken(cpu_t cpu)
{
	return loads[cpu] > 0 && loads[cpu] <= JUST_NOW && buffer_count[cpu] > 0;
}

u32 buffer_atomic(cpu_t cpu, u32 n)
{
	for (u32 i = buffer_count[cpu]; i-- > 0;)
		if (nth(cpu, i)->is_atomic && n-- == 0)
			return buffer_count[cpu] - i;
	return buffer_count[cpu];
}

u32 buffer_atomics(cpu_t cpu)
{
	u32 n = 0;

	for (u32 i = 0; i < buffer_count[cpu]; i++)
		n += nth(cpu, i)->is_atomic;
	return n;
}

static void swap_bytes(struct stored *s)
{
	u8 now[PIECE_MAX];

	memcpy(now, s->at, s->bytes);
	if (s->pte.entry)
		host_pte_set(&s->pte, *(const u64 *)(const void *)s->was);
	else
		memcpy(s->at, s->was, s->bytes);
	memcpy(s->was, now, s->bytes);
}

void buffer_lay_over(cpu_t cpu)
{
	for (u32 i = 0; i < buffer_count[cpu]; i++)
		swap_bytes(nth(cpu, i));
}

static void forget_oldest(cpu_t cpu, u32 n)
{
	for (; n > 0; n--, buffer_count[cpu]--, oldest[cpu]++) {
		const struct stored *s = nth(cpu, 0);

		stale_keep(s->keepers, &s->pte, *(const u64 *)(const void *)s->was);
	}
}

void buffer_drain(cpu_t cpu)
{
	if (cpu != explore_here)
		buffer_lay_over(cpu);
	forget_oldest(cpu, buffer_count[cpu]);
	loads[cpu] = 0;
}

void buffer_take_back(cpu_t cpu, u32 keep, const void *live)
{
	forget_oldest(cpu, buffer_count[cpu] - keep);
	for (u32 i = buffer_count[cpu]; i-- > 0;) {
		struct stored *s = nth(cpu, i);

		if (explore_own_stack(s->at) && (virt_t)s->at < (virt_t)live)
			s->bytes = 0;
		swap_bytes(s);
	}
}

static void log_piece(u8 *at, size_t bytes)
{
	const cpu_t cpu = explore_here;
	struct stored *s;

	if (buffer_count[cpu] == LOG_MAX)
		forget_oldest(cpu, 1);
	s = nth(cpu, buffer_count[cpu]++);
	*s = (struct stored){.at = at, .bytes = (u32)bytes};
	memcpy(s->was, at, bytes);
}

/* This CPU is about to write here. */
static void storing(void *addr, size_t bytes)
{
	u8 *at;

	if (!exploring)
		return;
	if (!explore_own_stack(addr))
		explore_stored(explore_here);
	at = stale_alias(addr);
	if (!at || bytes > RANGE_MAX || (virt_t)addr % PAGE_SIZE + bytes > PAGE_SIZE) {
		buffer_drain(explore_here);
		return;
	}
	for (size_t i = 0; i < bytes; i += PIECE_MAX)
		log_piece(at + i, MIN(bytes - i, (size_t)PIECE_MAX));
}

#define HERE ((const virt_t *)__builtin_frame_address(0))

#define DECLARED(type, name, ...)                                                                  \
	type name(__VA_ARGS__);                                                                    \
	type name(__VA_ARGS__)

/* fence_full() (arch/barrier.h). */
DECLARED(void, explore_fence, void)
{
	explore_point(HOST_FENCE, NULL, HERE);
	if (!explore_weak(__builtin_return_address(0)))
		buffer_drain(explore_here);
}

/* Calls of the C library's functions come here (names.h), also those that the compiler adds. */
DECLARED(void *, explore_memmove, void *to, const void *from, size_t n)
{
	storing(to, n);
	return memmove(to, from, n);
}
DECLARED(void *, explore_memset, void *to, int c, size_t n)
{
	storing(to, n);
	return memset(to, c, n);
}

/* ---- called by instrumented code ---- */

DECLARED(void, __tsan_init, void)
{
}
DECLARED(void, __tsan_read_range, void *addr, size_t n)
{
	(void)addr, (void)n;
}
DECLARED(void, __tsan_write_range, void *addr, size_t n)
{
	storing(addr, n);
}

#define ACCESS(kind, bytes)                                                                        \
	DECLARED(void, __tsan_##kind##read##bytes, void *addr)                                     \
	{                                                                                          \
	}                                                                                          \
	DECLARED(void, __tsan_##kind##write##bytes, void *addr)                                    \
	{                                                                                          \
		storing(addr, bytes);                                                              \
	}
#define ACCESSES(bytes) ACCESS(, bytes) ACCESS(unaligned_, bytes)

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

/* A locked instruction: everything before it is final, and so is its own store. */
static void locked(void)
{
	buffer_drain(explore_here);
	if (exploring)
		explore_stored(explore_here);
}

static void stored_atomically(void)
{
	const cpu_t cpu = explore_here;

	if (exploring)
		explore_stored(explore_here); /* also on its stack: others may wait for it there */
	if (buffer_count[cpu] > 0)
		nth(cpu, buffer_count[cpu] - 1)->is_atomic = true;
	loads[cpu] = 0;
}

void host_pte_buffer(const struct host_pte *pte, u64 value)
{
	const cpu_t cpu = explore_here;
	struct stored *s;

	stale_drop(pte->virt, pt_level_size(pte->level));
	storing(pte->entry, sizeof(*pte->entry));
	stored_atomically();
	if (pte->level >= PT_PUD)
		buffer_drain(cpu);
	else if (exploring) {
		s = nth(cpu, buffer_count[cpu] - 1);
		s->pte = *pte;
		s->keepers = stale_choose(pte, value);
	}
}

static void loaded_atomically(void)
{
	loads[explore_here]++;
}

/* On x86 a sequentially consistent store is an exchange; other stores are plain ones. */
#define STORE(bits, type)                                                                          \
	DECLARED(void, __tsan_atomic##bits##_store, type *p, type v, int order)                    \
	{                                                                                          \
		explore_point(HOST_STORE, p, HERE);                                                \
		storing(p, sizeof(*p));                                                            \
		stored_atomically();                                                               \
		__atomic_store_n(p, v, __ATOMIC_RELEASE);                                          \
		if (order == __ATOMIC_SEQ_CST)                                                     \
			locked();                                                                  \
	}

/* A locked instruction that is weakened is a load and, after another point, a store (explore.h). */
static void between_load_and_store(void *p, size_t bytes, const virt_t *frame)
{
	loaded_atomically();
	explore_point(HOST_STORE, p, frame);
	storing(p, bytes);
	stored_atomically();
}

#define LOCKED(bits, type, name, builtin, operator)                                                \
	DECLARED(type, __tsan_atomic##bits##_##name, type *p, type v, int order)                   \
	{                                                                                          \
		explore_point(HOST_LOCKED, p, HERE);                                               \
		if (explore_weak(__builtin_return_address(0))) {                                   \
			const type was = *p;                                                       \
			between_load_and_store(p, sizeof(*p), HERE);                               \
			*p = (type)(operator v);                                                   \
			return was;                                                                \
		}                                                                                  \
		locked();                                                                          \
		return builtin(p, v, __ATOMIC_SEQ_CST);                                            \
	}

#define ATOMIC(bits, type)                                                                         \
	DECLARED(type, __tsan_atomic##bits##_load, const type *p, int order)                       \
	{                                                                                          \
		explore_point(HOST_LOAD, p, HERE);                                                 \
		loaded_atomically();                                                               \
		return __atomic_load_n(p, __ATOMIC_ACQUIRE);                                       \
	}                                                                                          \
	STORE(bits, type)                                                                          \
	LOCKED(bits, type, exchange, __atomic_exchange_n, +)                                       \
	LOCKED(bits, type, fetch_add, __atomic_fetch_add, was +)                                   \
	LOCKED(bits, type, fetch_sub, __atomic_fetch_sub, was -)                                   \
	LOCKED(bits, type, fetch_or, __atomic_fetch_or, was |)                                     \
	LOCKED(bits, type, fetch_and, __atomic_fetch_and, was &)                                   \
	LOCKED(bits, type, fetch_xor, __atomic_fetch_xor, was ^)                                   \
	DECLARED(bool, __tsan_atomic##bits##_compare_exchange_strong, type *p, type *expected,     \
		 type v, int order, int order_failed)                                              \
	{                                                                                          \
		(void)order, (void)order_failed;                                                   \
		explore_point(HOST_LOCKED, p, HERE);                                               \
		if (explore_weak(__builtin_return_address(0)) && *p == *expected) {                \
			between_load_and_store(p, sizeof(*p), HERE);                               \
			*p = v;                                                                    \
			return true;                                                               \
		}                                                                                  \
		locked();                                                                          \
		return __atomic_compare_exchange_n(p, expected, v, 0, __ATOMIC_SEQ_CST,            \
						   __ATOMIC_SEQ_CST);                              \
	}

ATOMIC(8, u8)
ATOMIC(16, u16)
ATOMIC(32, u32)
ATOMIC(64, u64)
