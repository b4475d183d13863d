/*
 * Long calls of a program that ends: each stops after a page or so, however many bytes it was to
 * transfer. The cases say that the thread must end before the call begins, so no case needs luck.
 */
#include "tests/kernel/mm_test.h"
#include "tests/kernel/program_memory.h"

enum { STDOUT = 1, READ_WRITE = 2, APPEND = 02000 };

#define AT    GIB(16)
#define BYTES MIB(4)
#define PATH  (PROGRAM_BOX_MEMORY + PAGE_SIZE)

/* Memory of BYTES for transfers. */
static bool begin(void)
{
	return program_box_begin() && map_at(AT, BYTES, RW, FIXED) == (s64)AT;
}

FIXTURE(program_end, begin, program_box_end);

static u64 file_at(const char *path, size_t bytes, u64 flags)
{
	EXPECT_EQ(user_write(PATH, path, bytes), 0);
	return (u64)program_call("open", PATH, flags | 0100, 0600);
}
#define FILE_AT(path, flags) file_at(path, sizeof(path), flags)

/* A file of BYTES, none of which takes memory. */
static u64 sparse_file(void)
{
	const u64 fd = FILE_AT("/sparse", READ_WRITE);

	EXPECT_EQ(program_call("ftruncate", fd, BYTES), 0);
	return fd;
}

/* A call of a thread that must end. */
static s64 last_call(const char *call, u64 first, u64 second, u64 third, u64 fourth)
{
	struct thread *self = thread_current();
	s64 result;

	atomic_store_relaxed(&self->ending, true);
	result = program_call(call, first, second, third, fourth);
	atomic_store_relaxed(&self->ending, false);
	return result;
}

TEST(program_end, a_long_transfer_of_a_file_stops)
{
	u64 fd;

	fd = sparse_file();
	EXPECT_EQ(last_call("read", fd, AT, BYTES, 0), PAGE_SIZE);
	EXPECT_EQ(last_call("pread64", fd, AT, BYTES, 0), PAGE_SIZE);
	EXPECT_EQ(last_call("write", fd, AT, BYTES, 0), PAGE_SIZE);
	/* the offset stands behind what was transferred */
	EXPECT_EQ(program_call("read", fd, AT, BYTES), (BYTES - 2 * PAGE_SIZE));
}

TEST(program_end, a_long_write_at_the_end_of_a_file_leaves_what_it_has_written)
{
	u64 fd;

	fd = FILE_AT("/log", READ_WRITE | APPEND);
	EXPECT_EQ(last_call("write", fd, AT, BYTES, 0), PAGE_SIZE);
	EXPECT_EQ(program_call("pread64", fd, AT, BYTES, 0), PAGE_SIZE);
}

TEST(program_end, a_long_fallocate_stops)
{
	u64 fd;

	fd = FILE_AT("/reserved", READ_WRITE);
	EXPECT_EQ(last_call("fallocate", fd, 0, 0, GIB(64)), -EINTR);
	EXPECT_EQ(program_call("pread64", fd, AT, BYTES, 0), 0); /* its size is as it was */
}

TEST(program_end, long_transfers_of_devices_stop)
{
	EXPECT_EQ(last_call("read", FILE_AT("/dev/zero", READ_WRITE), AT, BYTES, 0), PAGE_SIZE);
	EXPECT_EQ(last_call("read", FILE_AT("/dev/urandom", 0), AT, BYTES, 0), PAGE_SIZE);
	EXPECT_EQ(last_call("getrandom", AT, BYTES, 0, 0), PAGE_SIZE);
	/* zeros print nothing */
	EXPECT(last_call("write", STDOUT, AT, BYTES, 0) < (s64)PAGE_SIZE);
}

TEST(program_end, random_bytes_are_not_the_same_twice)
{
	u64 value[2][4] = {{0}};

	for (unsigned i = 0; i < 2; i++) {
		EXPECT_EQ(program_call("getrandom", AT, sizeof(value[i]), 0), sizeof(value[i]));
		EXPECT_EQ(user_read(value[i], AT, sizeof(value[i])), 0);
	}
	for (unsigned k = 0; k < ARRAY_LEN(value[0]); k++)
		EXPECT(value[0][k] != value[1][k]);
}

/* A signal with a handler cuts transfers of devices, too, but none of a page or less. */
TEST(program_end, a_signal_cuts_a_long_transfer_of_a_device)
{
	const struct signal_info info = {.signal = SIGUSR1, .code = SI_USER};
	u64 zero;

	zero = FILE_AT("/dev/zero", READ_WRITE);
	signal_send(thread_current(), SIGUSR1, &info);
	EXPECT_EQ(program_call("read", zero, AT, PAGE_SIZE - 1), PAGE_SIZE - 1);
	EXPECT_EQ(program_call("read", zero, AT, BYTES), PAGE_SIZE);
	EXPECT_EQ(program_call("getrandom", AT, BYTES, 0), PAGE_SIZE);
}

TEST(program_end, clearing_of_promised_pages_stops)
{
	if (!pool_borrow(&pool_2m, 2))
		return;
	EXPECT_EQ(unmap(AT, BYTES), 0);
	EXPECT_EQ(map_at(AT, BYTES, RW, HUGETLB | 0x10), AT);
	EXPECT_EQ(put(AT, 1), 0);
	EXPECT_EQ(put(AT + MIB(2), 2), 0);
	EXPECT_EQ(last_call("madvise", AT, BYTES, DONTNEED, 0), -EINTR);
	EXPECT_EQ(get(AT), 1);
	EXPECT_EQ(program_call("madvise", AT, BYTES, DONTNEED), 0);
	EXPECT_EQ(get(AT), 0);
	EXPECT_EQ(get(AT + MIB(2)), 0);
	REQUIRE(program_box_again());
	pool_return(&pool_2m, 2);
}

TEST(program_end, a_long_row_of_guards_stops)
{
	EXPECT_EQ(unmap(AT, BYTES), 0);
	EXPECT_EQ(map_at(AT, GIB(64), RW, FIXED | NORESERVE), AT);
	EXPECT_EQ(last_call("madvise", AT, GIB(64), GUARD_INSTALL, 0), -EINTR);
}
