/*
 * Files of a program: kernel/program/file.h and the calls behind it.
 *
 * A case keeps its texts and results in memory of the kernel. U() lends them to the program for the
 * next call: the bytes are copied to the program's memory, and back when the call has returned.
 */
#include "kernel/program/file.h"

#include "kernel/core/fail.h"
#include "kernel/program/arguments.h"
#include "kernel/program/console_file.h"
#include "kernel/program/contents.h"
#include "kernel/program/cpio.h"
#include "kernel/program/files_out.h"
#include "kernel/program/layout.h"
#include "kernel/program/path.h"
#include "kernel/program/store.h"
#include "mm/mm.h"
#include "tests/kernel/cpio_build.h"
#include "tests/kernel/program_box.h"
#include "tests/kernel/random.h"

enum { BAD_ADDRESS = 1 };
enum { RDONLY = 0, RDWR = 2, CREAT = 0100, EXCL = 0200 };
enum {
	APPEND = 02000,
	NONBLOCK = 04000,
	DIRECTORY = 0200000,
	NOFOLLOW = 0400000,
	PATH = 010000000
};

/* ---- memory of the program ---- */

/* Each CPU has a part. Loans take its first half, and cases use the second as they like. */
enum { PART = 262144, LOANS_MAX = 8, LENDERS = 64 };
#define MEMORY 0x10000000ULL
#define KEPT   (MEMORY + cpu_id() * (u64)PART + PART / 2)

struct loan {
	u8 *from;
	user_t to;
	size_t size;
};

static struct lender {
	struct loan loan[LOANS_MAX];
	unsigned count;
	u64 used;
} lenders[LENDERS];

static u64 lend(const void *from, size_t size)
{
	struct lender *lender = &lenders[cpu_id() % LENDERS];
	const user_t to = MEMORY + cpu_id() * (u64)PART + lender->used;

	if (lender->count == LOANS_MAX || lender->used + size > PART / 2) {
		test_fail(__FILE__, __LINE__, "too much is lent");
		return BAD_ADDRESS;
	}
	lender->loan[lender->count++] = (struct loan){(u8 *)(uintptr_t)from, to, size};
	lender->used = ALIGN_UP(lender->used + size, 64);
	if (user_write(to, from, size))
		test_fail(__FILE__, __LINE__, "nothing can be lent");
	return to;
}

/* Take back what has changed. What has not may lie in read-only memory. */
static void take_back(void)
{
	struct lender *lender = &lenders[cpu_id() % LENDERS];
	u8 part[256];

	for (unsigned i = 0; i < lender->count; i++) {
		const struct loan *loan = &lender->loan[i];

		for (size_t at = 0; at < loan->size; at += sizeof(part)) {
			const size_t bytes = MIN(sizeof(part), loan->size - at);

			if (user_read(part, loan->to + at, bytes) == 0 &&
			    memcmp(part, loan->from + at, bytes) != 0)
				memcpy(loan->from + at, part, bytes);
		}
	}
	lender->count = 0;
	lender->used = 0;
}

/* Lend an array, a text, or what a pointer points to. */
#define U(p) lend((p), LENT_BYTES(p))
#define LENT_BYTES(p)                                                                              \
	__builtin_choose_expr(__builtin_types_compatible_p(__typeof__(p), __typeof__(&(p)[0])),    \
			      _Generic((p), const char *                                           \
				       : text_bytes(p), default                                    \
				       : sizeof(*(p))),                                            \
			      sizeof(p))

static inline size_t text_bytes(const void *text)
{
	return strlen(text) + 1;
}

/* ---- a program with files ---- */

static char image[16384];
static size_t image_size;

static void image_add(const char *name, u32 mode, const char *data, size_t size)
{
	image_size = cpio_append(image, image_size, name, mode, data, size);
}

static void image_make(void)
{
	static char long_text[5000];

	memset(image, 0, sizeof(image));
	memset(long_text, 'y', sizeof(long_text));
	image_size = 0;
	image_add("dir", 0040755, "", 0);
	image_add("dir/a.txt", 0100755, "contents of a", 13);
	image_add("long", 0100644, long_text, sizeof(long_text));
	image_add("deep/er/b", 0100600, "b", 1);
	image_add("dir/up", 0120777, "../dir/a.txt", 12);
	image_add("abs", 0120777, "/dir", 4);
	image_add("loop", 0120777, "loop", 4);
	image_add("TRAILER!!!", 0, "", 0);
}

/* A program without code, whose CPUs all have threads, with the files of the image. */
static bool begin_files(void)
{
	struct area memory = {.start = MEMORY,
			      .end = MEMORY + cpu_count * (u64)PART,
			      .rights = USER_RIGHT_READ | USER_RIGHT_WRITE};
	cpu_t cpu;

	memset(lenders, 0, sizeof(lenders));
	if (program_begin(&(struct program_request){.image = NULL}) < 0 ||
	    mapping_make(&program_space, &memory, MAPPING_FIXED) < 0)
		return false;
	cpumask_foreach(cpu, &cpus_online)
		if (!thread_record(cpu))
			return false;
	files_end();
	image_make();
	return files_begin(image, image_size) == 0;
}

/* The program has ended. Nothing that it left open or created may stay. */
static void end_files(void)
{
	files_end();
	EXPECT_EQ(store_objects(), 0);
	program_finish();
}

FIXTURE(program_file, begin_files, end_files);

/* ---- calls ---- */

static s64 make_call(const char *name, const u64 *arg)
{
	const s64 result = program_call_with(NULL, name, arg);

	take_back();
	return result;
}

#define CALL_OF(name, ...) make_call(name, (const u64[6]){__VA_ARGS__})

static s64 do_open(const char *path, u64 flags)
{
	return CALL_OF("open", U(path), flags, 0644);
}

static s64 do_write(s64 fd, const char *text)
{
	return CALL_OF("write", fd, lend(text, strlen(text)), strlen(text));
}

static s64 do_close(s64 fd)
{
	return CALL_OF("close", fd);
}

/* Read a text from an offset and compare it. */
static bool reads(s64 fd, u64 at, const char *text)
{
	char buf[256] = {0};
	const s64 length = CALL_OF("pread64", (u64)fd, U(buf), sizeof(buf) - 1, at);

	return length == (s64)strlen(text) && strcmp(buf, text) == 0;
}

/* Read that many bytes, from an offset or from where the file stands, and compare them. */
static bool holds(s64 fd, u64 at, const void *bytes, size_t size)
{
	static u8 found[16384];

	memset(found, 0xa5, size);
	return CALL_OF("pread64", fd, lend(found, size), size, at) == (s64)size &&
	       memcmp(found, bytes, size) == 0;
}

static bool gives(s64 fd, const void *bytes, size_t size)
{
	u8 found[16] = {0};

	return CALL_OF("read", fd, U(found), sizeof(found)) == (s64)size &&
	       memcmp(found, bytes, size) == 0;
}

struct stat_words {
	u64 device, number, links;
	u32 mode, user, group, pad;
	u64 node, size, block_size, blocks, rest[9];
};

static struct stat_words stat_of(const char *path)
{
	struct stat_words stat = {0};

	EXPECT_EQ(CALL_OF("stat", U(path), U(&stat)), 0);
	return stat;
}

/* ---- descriptors ---- */

TEST(program_file, descriptors_run_out)
{
	int count = 3;

	while (do_open("/dev/null", RDWR) == count)
		count++;
	EXPECT_EQ(count, DESCRIPTORS_MAX);
	EXPECT_EQ(do_open("/dev/null", RDWR), -EMFILE);
	EXPECT_EQ(CALL_OF("pipe", U(&count)), -EMFILE);
	EXPECT_EQ(CALL_OF("memfd_create", U("x"), 0), -EMFILE);
	EXPECT_EQ(CALL_OF("eventfd2", 0, 0), -EMFILE);
	EXPECT_EQ(do_close(500), 0);
	EXPECT_EQ(CALL_OF("pipe", U(&count)), -EMFILE);
	EXPECT_EQ(do_open("/dev/null", RDWR), 500);
}

TEST(program_file, copies_of_a_descriptor_share_flags_and_offset)
{
	enum { DUPFD, GETFL = 3, SETFL, GETLK, LARGE = 0100000 };
	enum { FIONBIO = 0x5421, FIOCLEX = 0x5451 };
	const s64 fd = do_open("/tmp/a", RDWR | CREAT);
	u16 lock = 1;
	int on = 0;

	EXPECT_EQ(CALL_OF("dup", fd), 4);
	EXPECT_EQ(CALL_OF("dup2", fd, 9), 9);
	EXPECT_EQ(CALL_OF("dup2", fd, DESCRIPTORS_MAX), -EBADF);
	EXPECT_EQ(CALL_OF("dup3", fd, fd, 0), -EINVAL);
	EXPECT_EQ(CALL_OF("dup3", fd, 10, NONBLOCK), -EINVAL);
	EXPECT_EQ(CALL_OF("dup3", fd, 10, 02000000), 10);
	EXPECT_EQ(CALL_OF("fcntl", fd, DUPFD, 9), 11);
	EXPECT_EQ(CALL_OF("fcntl", fd, DUPFD, DESCRIPTORS_MAX), -EINVAL);
	EXPECT_EQ(do_write(fd, "abc"), 3);
	EXPECT_EQ(CALL_OF("fcntl", fd, SETFL, APPEND | NONBLOCK | 1), 0);
	EXPECT_EQ(CALL_OF("fcntl", 4, GETFL), RDWR | APPEND | NONBLOCK | LARGE);
	EXPECT_EQ(CALL_OF("lseek", 10, 0, 1), 3);
	EXPECT_EQ(CALL_OF("ioctl", 11, FIONBIO, U(&on)), 0);
	EXPECT_EQ(CALL_OF("ioctl", fd, FIOCLEX), 0);
	EXPECT_EQ(CALL_OF("fcntl", fd, GETFL), RDWR | APPEND | LARGE);
	EXPECT_EQ(CALL_OF("fcntl", fd, GETLK, U(&lock)), 0);
	EXPECT_EQ(lock, 2); /* F_UNLCK */
}

/* ---- regular files ---- */

TEST(program_file, a_file_keeps_what_is_written)
{
	char buf[16] = {0};
	s64 fd;

	EXPECT_EQ(do_open("/tmp/a", RDONLY), -ENOENT);
	fd = do_open("/tmp/a", RDWR | CREAT | EXCL);
	REQUIRE(fd == 3);
	EXPECT_EQ(do_open("/tmp/a", RDWR | CREAT | EXCL), -EEXIST);
	EXPECT_EQ(do_write(fd, "hello, world"), 12);
	EXPECT_EQ(CALL_OF("read", fd, U(buf), 5), 0);
	EXPECT_EQ(CALL_OF("lseek", fd, 7, 0), 7);
	EXPECT(gives(fd, "world", 5));
	EXPECT_EQ(CALL_OF("lseek", fd, (u64)-2, 1), 10);
	EXPECT_EQ(CALL_OF("lseek", fd, (u64)-20, 1), -EINVAL);
	EXPECT_EQ(CALL_OF("lseek", fd, 0, 2), 12);
	EXPECT_EQ(CALL_OF("lseek", fd, 3, 3), 3);
	EXPECT_EQ(CALL_OF("lseek", fd, 3, 4), 12);
	EXPECT_EQ(CALL_OF("lseek", fd, 12, 3), -ENXIO);
	EXPECT_EQ(CALL_OF("lseek", fd, 0, 9), -EINVAL);
	EXPECT_EQ(CALL_OF("pwrite64", fd, U("HE"), 2, 0), 2);
	EXPECT(reads(fd, 0, "HEllo, world"));
	EXPECT_EQ(CALL_OF("pread64", fd, U(buf), 2, (u64)-1), -EINVAL);
	EXPECT_EQ(stat_of("/tmp/a").size, 12);
	EXPECT_EQ(stat_of("/tmp/a").mode, 0100644);
	/* shorter, and longer again: zeros */
	EXPECT_EQ(CALL_OF("ftruncate", fd, 3), 0);
	EXPECT_EQ(CALL_OF("truncate", U("/tmp/a"), 6), 0);
	EXPECT(holds(fd, 0, "HEl\0\0\0", 6));
	EXPECT_EQ(CALL_OF("ftruncate", fd, (u64)-1), -EINVAL);
	EXPECT_EQ(CALL_OF("ftruncate", fd, 1ULL << 60), -EFBIG);
	EXPECT_EQ(CALL_OF("pwrite64", fd, U("x"), 1, 1ULL << 60), -EFBIG);
	/* a file without a name lives as long as it is open */
	EXPECT_EQ(CALL_OF("unlink", U("/tmp/a")), 0);
	EXPECT_EQ(CALL_OF("unlink", U("/tmp/a")), -ENOENT);
	EXPECT_EQ(do_write(fd, "X"), 1);
	EXPECT_EQ(do_close(fd), 0);
}

/* Places on each side of the borders between nodes of the tree. */
static const u64 places[] = {0, 511, 512, 513, 262143, 262144, 1ULL << 27, (1ULL << 35) - 1};

TEST(program_file, a_sparse_file_has_only_the_pages_that_were_written)
{
	const s64 fd = do_open("/tmp/sparse", RDWR | CREAT);
	char text[16] = {0};

	REQUIRE(fd == 3);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		format(text, sizeof(text), "place %zu", i);
		EXPECT_EQ(CALL_OF("pwrite64", fd, U(text), 7, places[i] * PAGE_SIZE), 7);
	}
	EXPECT_EQ(stat_of("/tmp/sparse").blocks, ARRAY_LEN(places) * 8);
	EXPECT(holds(fd, 100 * PAGE_SIZE, "\0\0\0\0\0\0\0\0", 8));
	for (size_t i = ARRAY_LEN(places); i-- > 0;) {
		format(text, sizeof(text), "place %zu", i);
		EXPECT(holds(fd, places[i] * PAGE_SIZE, text, 7));
		/* cut in the middle of the text */
		EXPECT_EQ(CALL_OF("ftruncate", fd, places[i] * PAGE_SIZE + 5), 0);
		EXPECT_EQ(stat_of("/tmp/sparse").blocks, (i + 1) * 8);
		EXPECT(reads(fd, places[i] * PAGE_SIZE, "place"));
		EXPECT_EQ(CALL_OF("ftruncate", fd, places[i] * PAGE_SIZE), 0);
		EXPECT_EQ(stat_of("/tmp/sparse").blocks, i * 8);
	}
	EXPECT_EQ(CALL_OF("fallocate", fd, 0, PAGE_SIZE - 1, 2), 0);
	EXPECT_EQ(stat_of("/tmp/sparse").blocks, 16);
	EXPECT_EQ(stat_of("/tmp/sparse").size, PAGE_SIZE + 1);
}

/* Random writes, cuts and holes, beside a plain array. */
TEST(program_file, random_writes_and_cuts_agree_with_an_array)
{
	enum { MOST = 65536, TURNS = 400, HOLE = 3 };
	static u8 model[MOST], buf[MOST];
	const s64 fd = do_open("/tmp/random", RDWR | CREAT);
	u64 state = 88172645463325252ULL, size = 0;

	REQUIRE(fd == 3);
	memset(model, 0, sizeof(model));
	for (unsigned turn = 0; turn < TURNS && !test_failed(); turn++) {
		const u64 at = next_random(&state) % MOST;
		const u64 bytes = next_random(&state) % (MOST - at) % 10000;

		if (next_random(&state) % 5 == 0) {
			EXPECT_EQ(CALL_OF("fallocate", fd, HOLE, at, bytes + 1), 0);
			memset(model + at, 0, bytes + 1);
		} else if (next_random(&state) % 4 == 0) {
			EXPECT_EQ(CALL_OF("ftruncate", fd, at), 0);
			if (at < size)
				memset(model + at, 0, size - at);
			size = at;
		} else {
			memset(buf, (int)turn, bytes);
			memcpy(model + at, buf, bytes);
			EXPECT_EQ(CALL_OF("pwrite64", fd, U(buf), bytes, at), bytes);
			if (bytes > 0)
				size = MAX(size, at + bytes);
		}
		EXPECT_EQ(CALL_OF("pread64", fd, U(buf), MOST, 0), size);
		EXPECT_EQ(memcmp(buf, model, size), 0);
	}
}

struct iov {
	u64 base, size;
};

TEST(program_file, a_file_is_sent_from_the_place_named_or_from_its_offset)
{
	const s64 from = do_open("/long", RDONLY), to = do_open("/tmp/to", RDWR | CREAT);
	u64 place = 4094;
	int fd[2] = {0};

	REQUIRE(from >= 0 && to >= 0);
	EXPECT_EQ(CALL_OF("sendfile", to, from, U(&place), 4), 4);
	EXPECT_EQ(place, 4098);
	EXPECT_EQ(CALL_OF("lseek", from, 0, 1), 0);
	EXPECT_EQ(CALL_OF("sendfile", to, from, 0, 1 << 30), 5000);
	EXPECT_EQ(CALL_OF("lseek", from, 0, 1), 5000);
	EXPECT_EQ(stat_of("/tmp/to").size, 5004);
	EXPECT(holds(to, 5000, "yyyy", 4));
	EXPECT_EQ(CALL_OF("lseek", from, 0, 0), 0);
	EXPECT_EQ(CALL_OF("sendfile", do_open("/dev/full", RDWR), from, 0, 1), -ENOSPC);
	REQUIRE(CALL_OF("pipe", U(fd)) == 0);
	EXPECT_EQ(CALL_OF("sendfile", to, fd[0], 0, 1), -EINVAL);
	EXPECT_EQ(CALL_OF("sendfile", fd[0], from, 0, 1), -EBADF);
}

/* Vectors are transferred as one. What cannot be read leaves no trace beyond the end. */
TEST(program_file, vectors_are_transferred_as_one)
{
	const struct iov out[] = {{KEPT, 4}, {BAD_ADDRESS, 0}, {KEPT + 4, 3}};
	const struct iov bad[] = {{KEPT, 4}, {BAD_ADDRESS, 5}}, less[] = {{KEPT, ~0ULL}};
	const s64 fd = do_open("/tmp/v", RDWR | CREAT);

	EXPECT_EQ(user_write(KEPT, "one two", 7), 0);
	EXPECT_EQ(CALL_OF("writev", fd, U(out), 3), 7);
	EXPECT(reads(fd, 0, "one two"));
	EXPECT_EQ(CALL_OF("preadv", fd, U(out), 3, 4), 3);
	EXPECT_EQ(CALL_OF("preadv", fd, U(out), 3, (u64)-1), -EINVAL);
	EXPECT_EQ(CALL_OF("readv", fd, U(out), 1025), -EINVAL);
	EXPECT_EQ(CALL_OF("readv", fd, BAD_ADDRESS, 1), -EFAULT);
	EXPECT_EQ(CALL_OF("writev", fd, U(less), 1), -EINVAL);
	/* the result counts what came before the page of the file that meets the bad address */
	EXPECT_EQ(CALL_OF("pwritev", fd, U(bad), 2, PAGE_SIZE - 4), 4);
	EXPECT_EQ(stat_of("/tmp/v").size, PAGE_SIZE);
	EXPECT_EQ(CALL_OF("ftruncate", fd, 2 * PAGE_SIZE), 0);
	EXPECT_EQ(CALL_OF("preadv", fd, U(bad), 2, PAGE_SIZE - 4), 4);
	for (u64 flags = 0; flags <= APPEND; flags += APPEND) {
		EXPECT_EQ(CALL_OF("ftruncate", fd, 0), 0);
		EXPECT_EQ(CALL_OF("fcntl", fd, 4, flags), 0);
		EXPECT_EQ(CALL_OF("lseek", fd, 0, 0), 0);
		EXPECT_EQ(CALL_OF("writev", fd, U(bad), 2), -EFAULT);
		EXPECT_EQ(stat_of("/tmp/v").size, 0);
		EXPECT_EQ(CALL_OF("ftruncate", fd, 4), 0);
		EXPECT(holds(fd, 0, "\0\0\0\0", 4));
	}
	/* a write at a place goes to the end as well, and leaves the offset (pwrite(2), BUGS) */
	EXPECT_EQ(CALL_OF("lseek", fd, 1, 0), 1);
	EXPECT_EQ(CALL_OF("pwrite64", fd, U("xy"), 2, 0), 2);
	EXPECT(holds(fd, 0, "\0\0\0\0xy", 6));
	EXPECT_EQ(CALL_OF("lseek", fd, 0, 1), 1);
	EXPECT_EQ(do_write(fd, "z"), 1);
	EXPECT_EQ(CALL_OF("lseek", fd, 0, 1), 7);
}

/* ---- FILES= ---- */

TEST(program_file, files_of_the_image_are_there)
{
	static char before[sizeof(image)];
	struct stat_words stat = {0};
	char buf[32] = {0};
	u64 system[15] = {0};
	s64 fd;

	memcpy(before, image, sizeof(image));
	stat = stat_of("/dir/a.txt");
	EXPECT_EQ(stat.mode, 0100755);
	EXPECT_EQ(stat.size, 13);
	EXPECT_EQ(stat.rest[2], 1000); /* st_mtime */
	EXPECT_EQ(CALL_OF("statfs", U("/dir"), U(system)), 0);
	EXPECT(system[1] == PAGE_SIZE && system[8] == 255 && system[9] == PAGE_SIZE);
	fd = do_open("dir/a.txt", RDWR);
	EXPECT(reads(fd, 0, "contents of a"));
	EXPECT(reads(fd, 9, "of a"));
	EXPECT_EQ(CALL_OF("pwrite64", fd, U("CON"), 3, 0), 3);
	EXPECT(reads(fd, 0, "CONtents of a"));
	EXPECT_EQ(memcmp(image, before, image_size), 0); /* the image itself stays as it is */
	do_close(fd);
	fd = do_open("/abs/up", RDONLY);
	EXPECT(reads(fd, 0, "CONtents of a"));
	do_close(fd);
	EXPECT_EQ(CALL_OF("readlink", U("/abs"), U(buf), sizeof(buf)), 4);
	EXPECT_EQ(strcmp(buf, "/dir"), 0);
	EXPECT_EQ(CALL_OF("readlink", U("/abs"), U(buf), 2), 2);
	EXPECT_EQ(CALL_OF("readlink", U("/dir"), U(buf), 2), -EINVAL);
	EXPECT_EQ(CALL_OF("readlink", U("/abs"), U(buf), 0), -EINVAL);
	EXPECT_EQ(do_open("/loop", RDONLY), -ELOOP);
	EXPECT_EQ(do_open("/abs", RDONLY | NOFOLLOW), -ELOOP);
	EXPECT_EQ(do_open("/deep/er/b/", RDONLY), -ENOTDIR);
	fd = do_open("/abs", RDWR | PATH | NOFOLLOW);
	EXPECT(fd >= 0);
	EXPECT_EQ(CALL_OF("read", fd, U(buf), 1), -EBADF);
	EXPECT_EQ(do_write(fd, "x"), -EBADF);
	/* a shorter file does not get the bytes of the image back */
	fd = do_open("/long", RDWR);
	EXPECT_EQ(CALL_OF("ftruncate", fd, 4098), 0);
	EXPECT_EQ(CALL_OF("ftruncate", fd, 5000), 0);
	EXPECT(holds(fd, 4096, "yy\0\0", 4));
	/* an image without its end is refused, though the files before it are whole */
	files_end();
	EXPECT_EQ(files_begin(image, image_size - CPIO_ALIGNMENT), -EINVAL);
}

/* As the kernel finds a program's interpreter: links lead to it, and nothing is copied. */
TEST(program_file, a_file_of_the_image_is_found_before_the_program)
{
	const char *bytes;
	u64 size = 0;

	bytes = files_bytes("/abs/up", &size);
	REQUIRE(bytes);
	EXPECT(bytes > image && bytes < image + image_size);
	EXPECT_EQ(size, 13);
	EXPECT_EQ(memcmp(bytes, "contents of a", 13), 0);
	EXPECT(files_bytes("deep/er/b", &size));
	EXPECT(!files_bytes("/loop", &size));
	EXPECT(!files_bytes("/dir", &size));
	EXPECT(!files_bytes("/dev/null", &size));
	EXPECT(!files_bytes("/none/x", &size));
	EXPECT(!files_bytes("/proc/self/maps", &size));
}

/* ---- what a program leaves behind ---- */

static char behind[65536], behind_scratch[2 * PAGE_SIZE];
static size_t behind_size;
static u32 refuse_put; /* the n-th piece is not taken; 0: all are */

static int keep_piece(const void *bytes, u64 size)
{
	if (refuse_put > 0 && --refuse_put == 0)
		return -EIO;
	if (!bytes)
		return 0;
	if (behind_size + size > sizeof(behind))
		return -ENOSPC;
	memcpy(behind + behind_size, bytes, size);
	behind_size += size;
	return 0;
}

/* What the program leaves behind now. */
static struct cpio_reader left_behind(void)
{
	behind_size = 0;
	EXPECT_EQ(files_out_write(keep_piece, behind_scratch), 0);
	return cpio_reader(behind, behind_size);
}

/* The next file of the image. */
static bool leaves(struct cpio_reader *reader, const char *name, u32 mode, const char *contents,
		   size_t size)
{
	struct cpio_entry entry;

	return cpio_next(reader, &entry) && strcmp(entry.name, name) == 0 && entry.mode == mode &&
	       entry.size == size && memcmp(entry.data, contents, size) == 0;
}

static bool leaves_no_more(struct cpio_reader *reader)
{
	struct cpio_entry entry;

	return !cpio_next(reader, &entry) && !reader->error;
}

/* The image has what is new, renamed or changed, in the order of the names, and nothing else. */
TEST(program_file, what_is_new_or_changed_is_left_behind)
{
	struct cpio_reader reader = left_behind();

	EXPECT(leaves_no_more(&reader));
	EXPECT(do_open("/dev/shm/new", RDWR | CREAT) >= 0); /* the kernel's directories stay */
	EXPECT(do_open("/proc/new", RDWR | CREAT) >= 0 && do_open("/sys/new", RDWR | CREAT) >= 0);
	EXPECT_EQ(CALL_OF("pwrite64", do_open("/dir/a.txt", RDWR), U("CON"), 3, 0), 3);
	EXPECT_EQ(CALL_OF("truncate", U("/long"), 2), 0);
	EXPECT_EQ(CALL_OF("truncate", U("/long"), 4), 0);
	EXPECT_EQ(CALL_OF("rename", U("/deep/er/b"), U("/deep/c")), 0);
	EXPECT_EQ(do_write(do_open("/tmp/new", RDWR | CREAT), "new"), 3);
	EXPECT_EQ(CALL_OF("link", U("/tmp/new"), U("/tmp/again")), 0);
	EXPECT_EQ(do_write(do_open("/dev/shm/x", RDWR | CREAT), "new"), 3);
	reader = left_behind();
	EXPECT(leaves(&reader, "tmp/new", 0100644, "new", 3));
	EXPECT(leaves(&reader, "tmp/again", 0100644, "new", 3));
	EXPECT(leaves(&reader, "dir/a.txt", 0100755, "CONtents of a", 13));
	EXPECT(leaves(&reader, "long", 0100644, "yy\0\0", 4));
	EXPECT(leaves(&reader, "deep/c", 0100600, "b", 1));
	EXPECT(leaves_no_more(&reader));
	/* what lies in a renamed folder has another name, too */
	files_end();
	REQUIRE(files_begin(image, image_size) == 0);
	EXPECT_EQ(CALL_OF("rename", U("/deep/er"), U("/dir/er")), 0);
	EXPECT_EQ(CALL_OF("rename", U("/dir"), U("/else")), 0);
	reader = left_behind();
	EXPECT(leaves(&reader, "else/a.txt", 0100755, "contents of a", 13));
	EXPECT(leaves(&reader, "else/er/b", 0100600, "b", 1));
	EXPECT(leaves_no_more(&reader));
	/* a second name: neither tells which of them was given */
	files_end();
	REQUIRE(files_begin(image, image_size) == 0);
	EXPECT_EQ(CALL_OF("link", U("/deep/er/b"), U("/twice")), 0);
	reader = left_behind();
	EXPECT(leaves(&reader, "deep/er/b", 0100600, "b", 1));
	EXPECT(leaves(&reader, "twice", 0100600, "b", 1));
	EXPECT(leaves_no_more(&reader));
	for (u32 nth = 1; nth < 6; nth++) {
		refuse_put = nth;
		EXPECT_EQ(files_out_write(keep_piece, behind_scratch), -EIO);
	}
}

/* ---- paths and names ---- */

static bool is_here(const char *path)
{
	char buf[64] = {0};

	return CALL_OF("getcwd", U(buf), sizeof(buf)) == (s64)strlen(path) + 1 &&
	       strcmp(buf, path) == 0;
}

TEST(program_file, paths_are_walked)
{
	static char long_name[PAGE_SIZE + 300];
	char buf[4] = {0};
	s64 fd;

	EXPECT(is_here("/"));
	EXPECT_EQ(CALL_OF("chdir", U("deep//er/.")), 0);
	EXPECT(is_here("/deep/er"));
	EXPECT_EQ(CALL_OF("getcwd", U(buf), sizeof(buf)), -ERANGE);
	EXPECT_EQ(CALL_OF("access", U("b"), 0), 0);
	EXPECT_EQ(CALL_OF("access", U("b"), 1), -EACCES);
	EXPECT_EQ(CALL_OF("access", U("b"), 6), 0);
	EXPECT_EQ(CALL_OF("access", U("../../dir/a.txt"), 1), 0);
	EXPECT_EQ(CALL_OF("access", U("../../../../dir/../abs/./up"), 4), 0);
	EXPECT_EQ(CALL_OF("access", U("b/x"), 0), -ENOTDIR);
	EXPECT_EQ(CALL_OF("access", U("b/.."), 0), -ENOTDIR);
	EXPECT_EQ(CALL_OF("access", U("none/x"), 0), -ENOENT);
	EXPECT_EQ(CALL_OF("access", U(""), 0), -ENOENT);
	EXPECT_EQ(CALL_OF("access", U("b"), 8), -EINVAL);
	EXPECT_EQ(CALL_OF("chdir", U("b")), -ENOTDIR);
	EXPECT_EQ(CALL_OF("chdir", U("/abs/")), 0);
	EXPECT(is_here("/dir"));
	fd = do_open("/deep", RDONLY | DIRECTORY);
	EXPECT_EQ(CALL_OF("read", fd, U(buf), 1), -EISDIR);
	EXPECT_EQ(CALL_OF("faccessat", fd, U("er/b"), 0), 0);
	EXPECT_EQ(CALL_OF("faccessat", fd, U("../long"), 0), 0);
	EXPECT_EQ(CALL_OF("faccessat2", fd, U(""), 0, 0x1000), 0);
	EXPECT_EQ(CALL_OF("faccessat2", fd, BAD_ADDRESS, 0, 0x1000), -EFAULT);
	EXPECT_EQ(CALL_OF("faccessat", 99, U("er/b"), 0), -EBADF);
	EXPECT_EQ(CALL_OF("faccessat", 99, U("/long"), 0), 0);
	EXPECT_EQ(CALL_OF("openat", fd, U("er/new"), RDWR | CREAT, 0600), fd + 1);
	EXPECT_EQ(CALL_OF("faccessat", fd + 1, U("x"), 0), -ENOTDIR);
	EXPECT_EQ(CALL_OF("fchdir", fd), 0);
	EXPECT(is_here("/deep"));
	EXPECT_EQ(CALL_OF("fchdir", fd + 1), -ENOTDIR);
	EXPECT_EQ(CALL_OF("getdents64", fd + 1, U(buf), 4), -ENOTDIR);
	EXPECT_EQ(CALL_OF("fchdir", 99), -EBADF);
	memset(long_name, 'n', 256);
	EXPECT_EQ(do_open(long_name, RDWR | CREAT), -ENAMETOOLONG);
	long_name[255] = 0;
	EXPECT_EQ(do_open(long_name, RDWR | CREAT), fd + 2);
	memset(long_name, '/', PAGE_SIZE);
	EXPECT_EQ(do_open(long_name, RDONLY), -ENAMETOOLONG);
	/* the target of a dangling link is created, under a name longer than the link's */
	EXPECT_EQ(CALL_OF("symlink", U("/tmp/a-rather-long-name"), U("/tmp/l")), 0);
	EXPECT_EQ(CALL_OF("symlink", BAD_ADDRESS, U("/tmp/m")), -EFAULT);
	EXPECT_EQ(CALL_OF("symlink", U(""), U("/tmp/m")), -ENOENT);
	EXPECT_EQ(do_open("/tmp/l", RDWR | CREAT | EXCL), -EEXIST);
	EXPECT_EQ(do_open("/tmp/l", RDWR | CREAT), fd + 3);
	EXPECT_EQ(CALL_OF("access", U("/tmp/a-rather-long-name"), 0), 0);
	/* a directory that is gone has nothing in it and nothing above it */
	EXPECT_EQ(CALL_OF("mkdir", U("/tmp/gone"), 0777), 0);
	EXPECT_EQ(CALL_OF("chdir", U("/tmp/gone")), 0);
	EXPECT_EQ(CALL_OF("rmdir", U("/tmp/gone")), 0);
	EXPECT_EQ(CALL_OF("getcwd", U(long_name), 100), -ENOENT);
	EXPECT_EQ(do_open("x", RDWR | CREAT), -ENOENT);
	EXPECT_EQ(CALL_OF("access", U(".."), 0), -ENOENT);
}

/* As Linux has it: a slash behind a name asks for a directory, and a link is none. */
TEST(program_file, a_name_is_changed_and_not_what_its_link_leads_to)
{
	static const char *const paths[] = {"/tmp/dangling/", "/abs/", "/dir/up/", "/long/"};
	char buf[8] = {0};

	EXPECT_EQ(CALL_OF("symlink", U("none"), U("/tmp/dangling")), 0);
	for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
		EXPECT_EQ(CALL_OF("rename", U("/deep"), U(paths[i])), -ENOTDIR);
		EXPECT_EQ(CALL_OF("rename", U(paths[i]), U("/tmp/x")), -ENOTDIR);
		EXPECT_EQ(CALL_OF("unlink", U(paths[i])), -ENOTDIR);
		EXPECT_EQ(CALL_OF("rmdir", U(paths[i])), -ENOTDIR);
		EXPECT_EQ(CALL_OF("mkdir", U(paths[i]), 0777), -EEXIST);
		EXPECT_EQ(CALL_OF("symlink", U("none"), U(paths[i])), -EEXIST);
		EXPECT_EQ(CALL_OF("link", U("/long"), U(paths[i])), -EEXIST);
	}
	EXPECT_EQ(CALL_OF("readlink", U("/tmp/dangling"), U(buf), sizeof(buf)), 4);
	/* calls that only look follow it for the sake of the slash */
	EXPECT_EQ(CALL_OF("readlink", U("/abs/"), U(buf), sizeof(buf)), -EINVAL);
	EXPECT_EQ(CALL_OF("readlink", U("/dir/up/"), U(buf), sizeof(buf)), -ENOTDIR);
	EXPECT_EQ(CALL_OF("unlink", U("/deep/")), -EISDIR);
	EXPECT_EQ(CALL_OF("rename", U("/deep/"), U("/tmp/moved/")), 0);
	EXPECT_EQ(CALL_OF("rmdir", U("/tmp/moved/er/")), -ENOTEMPTY);
	/* so do files that are there before the program starts */
	EXPECT_EQ(path_make("/abs/", inode_new(INODE_DIRECTORY, 0755)), 0);
	EXPECT(CALL_OF("readlink", U("/abs"), U(buf), sizeof(buf)) > 0);
	EXPECT_EQ(path_make("/long/", inode_new(INODE_REGULAR, 0644)), -ENOTDIR);
}

/* ---- devices and texts ---- */

TEST(program_file, texts_are_made_when_they_are_opened)
{
	const char words[] = "prog\0-x", environment[] = "HOME=/";
	struct arguments args, more;
	char text[512] = {0};
	s64 fd;

	test_option("program.overcommit", "0");
	fd = do_open("/proc/self/status", RDONLY);
	EXPECT(CALL_OF("read", fd, U(text), 511) > 100);
	EXPECT(glob_match("Name:*\nThreads:\t1\n", text));
	arguments_of(&args, words, sizeof(words));
	arguments_of(&more, environment, sizeof(environment));
	EXPECT_EQ(files_name_program("/bin/prog", &args, &more), 0);
	fd = do_open("/proc/meminfo", RDONLY);
	EXPECT(CALL_OF("read", fd, U(text), 511) > 400);
	EXPECT(glob_match("MemTotal:*\nBuffers:               0 kB\n*", text));
	EXPECT(glob_match("*\nHugePages_Rsvd:        0\n*\nHugepagesize:       2048 kB\n*", text));
	EXPECT_EQ(do_open("/proc/meminfo", RDWR), -EACCES);
	fd = do_open("/proc/sys/vm/overcommit_memory", RDONLY);
	EXPECT(reads(fd, 0, "0\n"));
	fd = do_open("/sys/devices/system/cpu/online", RDONLY);
	format(text, sizeof(text), cpu_count > 1 ? "0-%u\n" : "0\n", cpu_count - 1);
	if (cpumask_weight(&cpus_online) == cpu_count)
		EXPECT(reads(fd, 0, text));
	EXPECT_EQ(CALL_OF("readlink", U("/proc/self/exe"), U(text), 64), 9);
	EXPECT_EQ(memcmp(text, "/bin/prog", 9), 0);
	fd = do_open("/proc/self/cmdline", RDONLY);
	EXPECT_EQ(CALL_OF("read", fd, U(text), 64), sizeof(words));
	EXPECT_EQ(memcmp(text, words, sizeof(words)), 0);
	fd = do_open("/proc/self/environ", RDONLY);
	EXPECT_EQ(CALL_OF("read", fd, U(text), 64), sizeof(environment));
	EXPECT_EQ(memcmp(text, environment, sizeof(environment)), 0);
}

/* Whether a file begins with a text of less than 512 bytes. */
static bool begins_with(const char *path, const char *text)
{
	const s64 fd = do_open(path, RDONLY);
	char buf[512] = {0};

	EXPECT(CALL_OF("read", fd, U(buf), strlen(text)) > 0);
	EXPECT_EQ(do_close(fd), 0);
	return strcmp(buf, text) == 0;
}

/* The lowest area has eight pages, of which two were written. */
TEST(program_file, the_text_of_an_area_says_its_bounds_and_what_is_there)
{
	enum { FIXED_PRIVATE = 0x32, RIGHTS_RW = 3 };
	const u64 area = MEMORY - MIB(16);
	const u8 byte = 1;
	char name[251] = {0}, line[400];
	s64 fd;

	EXPECT_EQ(CALL_OF("mmap", area, KIB(32), RIGHTS_RW, FIXED_PRIVATE, ~0ULL, 0), area);
	EXPECT_EQ(user_write(area, &byte, 1), 0);
	EXPECT_EQ(user_write(area + KIB(28), &byte, 1), 0);
	EXPECT(begins_with("/proc/self/maps", "0f000000-0f008000 rw-p 00000000 00:00 0\n"));
	EXPECT(begins_with("/proc/self/smaps", "0f000000-0f008000 rw-p 00000000 00:00 0\n"
					       "Size:                 32 kB\n"
					       "KernelPageSize:        4 kB\n"
					       "MMUPageSize:           4 kB\n"
					       "Rss:                   8 kB\n"
					       "Pss:                   8 kB\n"
					       "AnonHugePages:         0 kB\n"
					       "Private_Hugetlb:       0 kB\n"
					       "Swap:                  0 kB\n"));
	EXPECT_EQ(CALL_OF("munmap", area, KIB(32)), 0);
	EXPECT(!begins_with("/proc/self/maps", "0f000000-0f008000"));
	/* no name is cut, as programs open the file of that name */
	name[0] = '/';
	memset(name + 1, 'n', 248);
	fd = CALL_OF("open", U(name), RDWR | CREAT, 0600);
	EXPECT_EQ(CALL_OF("mmap", area, KIB(4), RIGHTS_RW, 0x12, fd, 0), area);
	format(line, sizeof(line), "0f000000-0f001000 rw-p 00000000 00:00 0  %s\n", name);
	EXPECT(begins_with("/proc/self/maps", line));
	EXPECT(CALL_OF("memfd_create", U(name), 0) > fd);
	name[249] = 'n';
	EXPECT_EQ(CALL_OF("memfd_create", U(name), 0), -EINVAL); /* 250 letters */
	EXPECT_EQ(CALL_OF("munmap", area, KIB(4)), 0);
	EXPECT_EQ(CALL_OF("mmap", VDSO_IMAGE, KIB(4), 1, FIXED_PRIVATE, ~0ULL, 0), VDSO_IMAGE);
	memset(line, 0, sizeof(line));
	fd = do_open("/proc/self/maps", RDONLY);
	EXPECT(CALL_OF("read", fd, U(line), 399) > 0);
	EXPECT(glob_match("*r--p 00000000 00:00 0  ?vdso?\n", line));
}

static void type(const char *keys)
{
	while (*keys)
		console_file_key((u8)*keys++);
}

TEST(program_file, the_console_is_read_by_lines)
{
	/* flags of input, output, control, lines; keys that erase a letter, a line, or end input */
	static const u32 terminal[9] = {0400, 05, 0277, 032, 127 << 24, 4 << 8 | 21};
	char buf[64] = {0};
	u32 words[9] = {0};
	int waiting = 0;

	EXPECT_EQ(CALL_OF("fcntl", 0, 4, NONBLOCK), 0);
	EXPECT_EQ(CALL_OF("read", 0, U(buf), 64), -EAGAIN);
	EXPECT_EQ(CALL_OF("read", 0, U(buf), 0), 0);
	type("abx\b");
	EXPECT_EQ(CALL_OF("read", 0, U(buf), 64), -EAGAIN);
	type("c\rdone\n\b\b\b");
	EXPECT_EQ(CALL_OF("ioctl", 0, 0x541b, U(&waiting)), 0);
	EXPECT_EQ(waiting, 9);
	EXPECT(gives(0, "abc\n", 4));
	EXPECT_EQ(CALL_OF("read", 0, U(buf), 2), 2);
	EXPECT_EQ(CALL_OF("read", 0, lend(buf + 2, 62), 64), 3);
	EXPECT_EQ(memcmp(buf, "done\n", 5), 0);
	type("\x04");
	EXPECT_EQ(CALL_OF("read", 0, U(buf), 64), 0);
	type("wrong\x15ri\x04");
	EXPECT(gives(0, "ri", 2));
	for (unsigned i = 0; i < 3000; i++)
		type("x");
	type("\n");
	for (u64 got = 0; got < 1024;) {
		const s64 part = CALL_OF("read", 0, U(buf), 64);

		REQUIRE(part > 0);
		got += (u64)part;
	}
	EXPECT_EQ(CALL_OF("read", 0, U(buf), 64), -EAGAIN);
	EXPECT_EQ(CALL_OF("ioctl", 0, 0x5401, U(words)), 0);
	EXPECT_EQ(memcmp(words, terminal, sizeof(terminal)), 0);
	EXPECT_EQ(CALL_OF("ioctl", 0, 0x5413, U(words)), 0);
	EXPECT_EQ(words[0], 80 << 16 | 25);
	EXPECT_EQ(CALL_OF("ioctl", 0, 0x9999, U(words)), -ENOTTY);
	EXPECT_EQ(CALL_OF("ioctl", 0, 0x5402, U(terminal)), 0); /* TCSETS */
	EXPECT_EQ(CALL_OF("lseek", 0, 0, 1), -ESPIPE);
	type("for this program only\n");
	files_end();
	REQUIRE(files_begin(image, image_size) == 0);
	EXPECT_EQ(CALL_OF("fcntl", 0, 4, NONBLOCK), 0);
	EXPECT_EQ(CALL_OF("read", 0, U(buf), 64), -EAGAIN);
}

/* ---- pipes and events ---- */

TEST(program_file, a_pipe_keeps_order_and_bounds)
{
	static u8 big[70000];
	char buf[16] = {0};
	int fd[2] = {0}, waiting = 0;

	EXPECT_EQ(CALL_OF("pipe2", U(fd), 040000), -EINVAL); /* O_DIRECT: there are no packets */
	REQUIRE(CALL_OF("pipe2", U(fd), NONBLOCK) == 0);
	EXPECT_EQ(CALL_OF("read", fd[0], U(buf), 16), -EAGAIN);
	EXPECT_EQ(CALL_OF("read", fd[1], U(buf), 16), -EBADF);
	EXPECT_EQ(do_write(fd[0], "x"), -EBADF);
	EXPECT_EQ(do_write(fd[1], "hello"), 5);
	EXPECT_EQ(CALL_OF("ioctl", fd[0], 0x541b, U(&waiting)), 0);
	EXPECT_EQ(waiting, 5);
	EXPECT_EQ(CALL_OF("read", fd[0], U(buf), 2), 2);
	EXPECT_EQ(CALL_OF("read", fd[0], BAD_ADDRESS, 2), -EFAULT);
	EXPECT(gives(fd[0], "llo", 3));
	EXPECT_EQ(CALL_OF("write", fd[1], U(big), sizeof(big)), 65536);
	EXPECT_EQ(do_write(fd[1], "x"), -EAGAIN);
	EXPECT_EQ(CALL_OF("read", fd[0], U(big), 4000), 4000);
	EXPECT_EQ(CALL_OF("write", fd[1], U(big), 4096), -EAGAIN);
	EXPECT_EQ(CALL_OF("write", fd[1], U(big), 5000), 4000);
	EXPECT_EQ(CALL_OF("lseek", fd[0], 0, 0), -ESPIPE);
	EXPECT_EQ(CALL_OF("pread64", fd[0], U(buf), 1, 0), -ESPIPE);
	do_close(fd[1]);
	EXPECT_EQ(CALL_OF("read", fd[0], U(big), sizeof(big)), 65536);
	EXPECT_EQ(CALL_OF("read", fd[0], U(big), sizeof(big)), 0);
	do_close(fd[0]);
	REQUIRE(CALL_OF("pipe", U(fd)) == 0);
	do_close(fd[0]);
	EXPECT_EQ(do_write(fd[1], "x"), -EPIPE);
	do_close(fd[1]);
	EXPECT_EQ(CALL_OF("pipe", BAD_ADDRESS), -EFAULT);
	EXPECT_EQ(do_open("/dev/null", RDONLY), 3);
}

static u16 ready_now(s64 fd);

TEST(program_file, a_pair_of_sockets_goes_both_ways)
{
	enum { UNIX = 1, STREAM = 1, DONTWAIT = 0x40, NOSIGNAL = 0x4000 };
	int fd[2] = {0}, size = sizeof(size), value = -1;
	char buf[16] = {0};

	EXPECT_EQ(CALL_OF("socketpair", 2, STREAM, 0, U(fd)), -EAFNOSUPPORT);
	EXPECT_EQ(CALL_OF("socketpair", UNIX, 2, 0, U(fd)), -EPROTONOSUPPORT);
	EXPECT_EQ(CALL_OF("socketpair", UNIX, STREAM, 0, BAD_ADDRESS), -EFAULT);
	REQUIRE(CALL_OF("socketpair", UNIX, STREAM | 02000000, 0, U(fd)) == 0);
	EXPECT_EQ(do_write(fd[0], "to 1"), 4);
	EXPECT_EQ(do_write(fd[1], "to 0!"), 5);
	EXPECT(gives(fd[0], "to 0!", 5));
	EXPECT(gives(fd[1], "to 1", 4));
	EXPECT_EQ(CALL_OF("recvfrom", fd[0], U(buf), 16, DONTWAIT, 0, 0), -EAGAIN);
	EXPECT_EQ(CALL_OF("recvfrom", fd[0], U(buf), 16, 2, 0, 0), -ENOTSUP);
	EXPECT_EQ(CALL_OF("sendto", fd[0], U("ab"), 2, NOSIGNAL, 0, 0), 2);
	EXPECT_EQ(CALL_OF("recvfrom", fd[1], U(buf), 1, 0, 0, 0), 1);
	EXPECT_EQ(ready_now(fd[1]), 1 | 4);
	EXPECT(gives(fd[1], "b", 1));
	EXPECT_EQ(ready_now(fd[1]), 4);
	EXPECT_EQ(CALL_OF("getsockname", fd[0], U(&value), U(&size)), 0);
	EXPECT_EQ(size, 2);
	EXPECT_EQ(CALL_OF("getsockname", 0, U(&value), U(&size)), -ENOTSOCK);
	EXPECT_EQ(CALL_OF("sendto", 0, U("x"), 1, 0, 0, 0), -ENOTSOCK);
	/* one way is shut: what was written is read to its end, and the other way goes on */
	EXPECT_EQ(do_write(fd[0], "x"), 1);
	EXPECT_EQ(CALL_OF("shutdown", fd[0], 3), -EINVAL);
	EXPECT_EQ(CALL_OF("shutdown", fd[0], 1), 0);
	EXPECT_EQ(CALL_OF("sendto", fd[0], U("y"), 1, NOSIGNAL, 0, 0), -EPIPE);
	EXPECT(gives(fd[1], "x", 1));
	EXPECT(gives(fd[1], "", 0));
	EXPECT_EQ(ready_now(fd[1]), 1 | 4);
	EXPECT_EQ(do_write(fd[1], "y"), 1);
	EXPECT(gives(fd[0], "y", 1));
	do_close(fd[1]);
	EXPECT(gives(fd[0], "", 0));
	EXPECT_EQ(ready_now(fd[0]), 1 | 4 | 0x10);
	do_close(fd[0]);
}

TEST(program_file, an_event_is_a_count_that_is_taken_whole_or_by_one)
{
	enum { SEMAPHORE = 1 };
	const u64 none = 0, one = 1, five = 5, most = ~1ULL, too_much = ~0ULL;
	u64 value = 0;
	s64 fd = CALL_OF("eventfd2", 5, NONBLOCK);

	EXPECT_EQ(CALL_OF("read", fd, U(&value), 7), -EINVAL);
	EXPECT(gives(fd, &five, 8));
	EXPECT_EQ(CALL_OF("read", fd, U(&value), 8), -EAGAIN);
	EXPECT_EQ(CALL_OF("write", fd, U(&one), 7), -EINVAL);
	EXPECT_EQ(CALL_OF("write", fd, U(&too_much), 8), -EINVAL);
	EXPECT_EQ(CALL_OF("write", fd, U(&most), 8), 8);
	EXPECT_EQ(ready_now(fd), 1);
	EXPECT_EQ(CALL_OF("write", fd, U(&one), 8), -EAGAIN);
	EXPECT(gives(fd, &most, 8));
	EXPECT_EQ(CALL_OF("write", fd, U(&none), 8), 8);
	EXPECT_EQ(ready_now(fd), 4);
	fd = CALL_OF("eventfd2", 2, NONBLOCK | SEMAPHORE);
	EXPECT(gives(fd, &one, 8) && gives(fd, &one, 8));
	EXPECT_EQ(CALL_OF("read", fd, U(&value), 8), -EAGAIN);
	EXPECT_EQ(CALL_OF("eventfd2", 0, 2), -EINVAL);
}

struct pollfd_words {
	s32 fd;
	u16 events, found;
};

static u16 ready_now(s64 fd)
{
	struct pollfd_words file = {.fd = (s32)fd, .events = 1 | 4};

	CALL_OF("poll", U(&file), 1, 0);
	return file.found;
}

TEST(program_file, poll_and_select_tell_what_is_ready)
{
	struct pollfd_words files[4] = {0};
	u64 in = 0, out = 0, time[2] = {0, 1000};
	int fd[2] = {0};
	u64 since;

	REQUIRE(CALL_OF("pipe", U(fd)) == 0);
	files[0] = (struct pollfd_words){.fd = fd[0], .events = 0x41};
	files[1] = (struct pollfd_words){.fd = fd[1], .events = 0x104};
	files[2] = (struct pollfd_words){.fd = 99, .events = 1};
	files[3] = (struct pollfd_words){.fd = -5, .events = 1, .found = 7};
	EXPECT_EQ(CALL_OF("poll", U(files), 4, 0), 2);
	EXPECT_EQ(files[0].found, 0);
	EXPECT_EQ(files[1].found, 0x104);
	EXPECT_EQ(files[2].found, 0x20);
	EXPECT_EQ(files[3].found, 0);
	since = clock_ns();
	EXPECT_EQ(CALL_OF("poll", U(files), 1, 20), 0);
	EXPECT(clock_ns() - since >= 20 * NS_PER_MS);
	EXPECT_EQ(do_write(fd[1], "x"), 1);
	EXPECT_EQ(CALL_OF("ppoll", U(files), 1, 0, 0, 0), 1);
	EXPECT_EQ(files[0].found, 0x41);
	in = 1ULL << fd[0] | 1ULL << 63;
	out = 1ULL << fd[1];
	EXPECT_EQ(CALL_OF("select", fd[1] + 1, U(&in), U(&out), 0, U(time)), 2);
	EXPECT_EQ(in, 1ULL << fd[0]);
	in = 1ULL << 20;
	EXPECT_EQ(CALL_OF("select", 21, U(&in), 0, 0, U(time)), -EBADF);
	in = 1ULL << fd[1];
	EXPECT_EQ(CALL_OF("pselect6", 64, 0, 0, U(&in), U(time), 0), 0);
	EXPECT_EQ(in, 0);
	EXPECT_EQ(CALL_OF("select", 0, 0, 0, 0, U(time)), 0);
	EXPECT_EQ(CALL_OF("pselect6", 0, 0, 0, 0, U(time), BAD_ADDRESS), -EFAULT);
	time[1] = NS_PER_S;
	EXPECT_EQ(CALL_OF("pselect6", 0, 0, 0, 0, U(time), 0), -EINVAL);
	do_close(fd[1]);
	EXPECT_EQ(CALL_OF("poll", U(files), 1, (u64)-1), 1);
	EXPECT_EQ(files[0].found, 0x51);
	EXPECT_EQ(CALL_OF("poll", U(files), 5000, 0), -EINVAL);
	EXPECT_EQ(CALL_OF("poll", BAD_ADDRESS, 1, 0), -EFAULT);
	files[0] = (struct pollfd_words){.fd = 0, .events = 1};
	EXPECT_EQ(CALL_OF("poll", U(files), 1, 15), 0);
	type("x\n");
	EXPECT_EQ(CALL_OF("poll", U(files), 1, (u64)-1), 1);
}

/* ---- several CPUs ---- */

enum { RECORDS = 300 };

struct race {
	int fd[2];
	s64 event;
	u32 wrong, cpus;
};

/* One CPU polls for what the other writes, and answers through an eventfd. */
static void play(void *arg)
{
	struct race *race = arg;
	const u32 me = atomic_fetch_add(&race->cpus, 1);
	struct pollfd_words file = {.fd = race->fd[0], .events = 1};
	u64 one = 1;
	u8 byte = 0;

	for (unsigned i = 0; me < 2 && i < RECORDS; i++) {
		s64 result;

		if (me == 0) {
			result = CALL_OF("poll", U(&file), 1, 20000);
			if (result == 1)
				result = CALL_OF("read", (u64)race->fd[0], U(&byte), 1);
			if (result == 1)
				result = CALL_OF("write", (u64)race->event, U(&one), 8) / 8;
		} else {
			result = CALL_OF("write", (u64)race->fd[1], U("x"), 1);
			if (result == 1)
				result = CALL_OF("read", (u64)race->event, U(&one), 8) / 8;
		}
		if (result != 1)
			atomic_fetch_add(&race->wrong, 1);
	}
}

TEST(program_file, no_wake_is_lost_between_poll_and_write)
{
	struct race race = {0};

	SKIP_ON_ONE_CPU();
	REQUIRE(CALL_OF("pipe", U(race.fd)) == 0);
	race.event = CALL_OF("eventfd", 0);
	cpus_run_together(play, &race);
	EXPECT_EQ(race.wrong, 0);
}

enum { MESSAGE = 1000, MESSAGES = 8, PASSES = 20 };

/* Read a message and write it again. All bytes of a message are equal, and no two messages are. */
static void pass_on(void *arg)
{
	struct race *race = arg;
	u8 message[MESSAGE] = {0};

	for (unsigned i = 0; i < PASSES; i++) {
		bool whole = CALL_OF("read", (u64)race->fd[0], U(message), MESSAGE) == MESSAGE;

		for (unsigned n = 1; n < MESSAGE; n++)
			whole &= message[n] == message[0];
		if (!whole || CALL_OF("write", (u64)race->fd[1], U(message), MESSAGE) != MESSAGE)
			atomic_fetch_add(&race->wrong, 1);
	}
}

TEST(program_file, messages_in_a_pipe_stay_whole)
{
	struct race race = {0};
	u8 message[MESSAGE] = {0};
	u64 left = 0;

	REQUIRE(CALL_OF("pipe", U(race.fd)) == 0);
	for (unsigned i = 0; i < MESSAGES; i++) {
		memset(message, 1 << i, MESSAGE);
		EXPECT_EQ(CALL_OF("write", race.fd[1], U(message), MESSAGE), MESSAGE);
	}
	cpus_run_together(pass_on, &race);
	EXPECT_EQ(race.wrong, 0);
	for (unsigned i = 0; i < MESSAGES; i++) {
		EXPECT_EQ(CALL_OF("read", race.fd[0], U(message), MESSAGE), MESSAGE);
		left |= message[0];
	}
	EXPECT_EQ(left, 0xff);
}

/* However small the buffer is, each record comes once, and those that do not fit come next. */
TEST(program_file, a_directory_is_listed_in_records_that_follow_each_other)
{
	static const char *const there[] = {".", "..", "a", "a name of 24 characters .", "c"};
	u64 at[128] = {0};
	size_t listed = 0;
	u64 place = 0;
	s64 fd, bytes;

	EXPECT_EQ(CALL_OF("mkdir", U("/list"), 0777), 0);
	EXPECT_EQ(do_close(do_open("/list/a", RDWR | CREAT)), 0);
	EXPECT_EQ(do_close(do_open("/list/a name of 24 characters .", RDWR | CREAT)), 0);
	EXPECT_EQ(do_close(do_open("/list/c", RDWR | CREAT)), 0);
	fd = do_open("/list", RDONLY | DIRECTORY);
	EXPECT_EQ(CALL_OF("getdents64", fd, U(at), 16), -EINVAL);
	EXPECT_EQ(CALL_OF("getdents64", fd, U(at), 48), 48); /* two records, and nothing is left */
	EXPECT_EQ(CALL_OF("lseek", fd, 0, 0), 0);
	while ((bytes = CALL_OF("getdents64", fd, U(at), listed ? sizeof(at) : 48)) > 0) {
		const u8 *record = (const u8 *)at;

		for (; bytes > 0 && listed < ARRAY_LEN(there); listed++) {
			const u16 length = (u16)(record[16] | record[17] << 8);

			EXPECT(strcmp((const char *)record + 19, there[listed]) == 0);
			EXPECT(((const u64 *)record)[1] > place);
			place = ((const u64 *)record)[1];
			record += length;
			bytes -= length;
		}
		REQUIRE(bytes == 0);
	}
	EXPECT_EQ(bytes, 0);
	EXPECT_EQ(listed, ARRAY_LEN(there));
	EXPECT_EQ(do_close(fd), 0);
}

/* ---- lack of memory ---- */

/* A session that needs memory in every way. Each call succeeds or says that there is none. */
static unsigned use_everything(void)
{
	static u8 big[3 * PAGE_SIZE];
	char path[200] = "/tmp/", buf[64] = {0};
	unsigned wrong = 0;
	int fd[2] = {-1, -1};
	s64 file;

#define FITS(call)                                                                                 \
	({                                                                                         \
		const s64 _result = (call);                                                        \
		wrong += _result < 0 && _result != -ENOMEM && _result != -ENOSPC &&                \
			 !(store_fails.count[FAIL_ALLOC].left == 0 &&                              \
			   (_result == -ENOENT || _result == -EBADF));                             \
		_result;                                                                           \
	})
/* the call has no result but 0 */
#define ENDS(call) (wrong += FITS(call) > 0)
	memset(path + 5, 'l', 150);
	file = FITS(do_open("/long", RDWR));
	FITS(CALL_OF("pwrite64", file, U(big), sizeof(big), 100));
	FITS(CALL_OF("pwrite64", file, U(big), sizeof(big), MIB(40)));
	ENDS(CALL_OF("ftruncate", file, MIB(30) + 1));
	ENDS(CALL_OF("fallocate", file, 0, GIB(3), 1));
	FITS(do_open(path, RDWR | CREAT));
	ENDS(CALL_OF("mkdir", U("/tmp/d"), 0777));
	ENDS(CALL_OF("symlink", U("/long"), U("/tmp/d/s")));
	ENDS(CALL_OF("rename", U("/tmp/d/s"), U("/tmp/t")));
	ENDS(CALL_OF("stat", U("/tmp/t"), U(big)));
	ENDS(CALL_OF("pipe", U(fd)));
	ENDS(CALL_OF("socketpair", 1, 1, 0, U(fd)));
	FITS(CALL_OF("epoll_create1", 0));
	FITS(CALL_OF("eventfd", 0));
	FITS(CALL_OF("memfd_create", U("m"), 0));
	FITS(do_open("/proc/meminfo", RDONLY));
	FITS(CALL_OF("getcwd", U(buf), sizeof(buf)));
	FITS(CALL_OF("getdents64", do_open("/tmp", RDONLY), U(big), sizeof(big)));
	ENDS(CALL_OF("unlink", U("/tmp/t")));
#undef ENDS
#undef FITS
	return wrong;
}

TEST(program_file, each_allocation_may_fail)
{
	u32 nth = 0;

	do {
		int err;

		files_end();
		fail_arm(&store_fails, FAIL_ALLOC, ++nth, FAIL_ONCE);
		err = files_begin(image, image_size);
		if (err) {
			EXPECT_EQ(err, -ENOMEM);
			EXPECT_EQ(store_objects(), 0);
		} else {
			EXPECT_EQ(use_everything(), 0);
		}
	} while (fail_disarm(&store_fails) && !test_failed());
	EXPECT(nth > 60); /* pages and objects */
}
