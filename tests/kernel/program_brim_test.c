/*
 * Calls that free or remove something need no memory. They succeed a thousand times in a row while
 * every allocation fails, even if memory has become free meanwhile.
 */
#include "tests/kernel/brim.h"
#include "tests/kernel/program_memory.h"

FIXTURE(program_brim, program_box_begin, program_box_end);

enum { TIMES = 1000, CREATE = 0102 };

#define AT    GIB(8)
#define TEXTS PROGRAM_BOX_MEMORY

/* Map `size` bytes and touch a word of each page of `step` bytes. */
static void map_and_touch(u64 size, u64 step, u64 advice)
{
	EXPECT_EQ(map_at(AT, size, RW, FIXED), AT);
	EXPECT_EQ(program_call("madvise", AT, size, advice), 0);
	for (u64 at = AT; at < AT + size; at += step)
		EXPECT_EQ(put(at, at), 0);
}

/* ---- memory ---- */

/* Each part that goes lies between two that stay, so that each call makes an area more. */
static void unmap_parts(u64 size)
{
	const u64 step = size / TIMES / PAGE_SIZE * PAGE_SIZE;

	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	for (u64 i = 0; i < TIMES; i++)
		EXPECT_EQ(unmap(AT + i * step + PAGE_SIZE, PAGE_SIZE), 0);
	brim_end();
	for (u64 i = 0; i < TIMES; i++)
		EXPECT(get(AT + i * step + PAGE_SIZE) == ~0ULL && get(AT + i * step) != ~0ULL);
}

TEST(program_brim, small_pages_are_unmapped)
{
	map_and_touch(MIB(8), PAGE_SIZE, NOHUGEPAGE);
	unmap_parts(MIB(8));
}

TEST(program_brim, parts_of_huge_pages_are_unmapped)
{
	map_and_touch(MIB(32), PAGE_SIZE, HUGEPAGE);
	unmap_parts(MIB(32));
}

/* Changing rights leaves enough nodes of the tree for unmapping. */
TEST(program_brim, small_pages_are_unmapped_where_rights_can_no_longer_change)
{
	const u64 part = MIB(8), step = 2 * PAGE_SIZE;
	u64 at = AT + part;

	map_and_touch(2 * part, PAGE_SIZE, NOHUGEPAGE);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	while (at < AT + 2 * part && program_call("mprotect", at, PAGE_SIZE, R) == 0)
		at += step;
	EXPECT(at < AT + 2 * part);
	for (u64 i = 0; i < TIMES; i += 2) {
		EXPECT_EQ(unmap(AT + i * step + PAGE_SIZE, PAGE_SIZE), 0);
		at = AT + (i + 1) * step;
		EXPECT_EQ(program_call("mremap", at, step, PAGE_SIZE, 0), at);
	}
	brim_end();
}

TEST(program_brim, parts_of_huge_pages_are_forgotten)
{
	map_and_touch(MIB(32), PAGE_SIZE, HUGEPAGE);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	for (u64 i = 0; i < TIMES; i++)
		EXPECT_EQ(program_call("madvise", AT + 8 * i * PAGE_SIZE, PAGE_SIZE, DONTNEED), 0);
	brim_end();
	for (u64 i = 0; i < TIMES; i++)
		EXPECT(get(AT + 8 * i * PAGE_SIZE) == 0 &&
		       get(AT + (8 * i + 1) * PAGE_SIZE) == AT + (8 * i + 1) * PAGE_SIZE);
}

/* A huge page that was collapsed, moved or made smaller can be cut as well. */
TEST(program_brim, a_collapsed_page_is_cut_and_a_moved_one)
{
	const u64 to = GIB(16);

	map_and_touch(MIB(4), PAGE_SIZE, NOHUGEPAGE);
	EXPECT_EQ(program_call("madvise", AT, MIB(4), HUGEPAGE), 0);
	program_call("madvise", AT, MIB(4), COLLAPSE); /* if there are huge pages */
	EXPECT_EQ(program_call("mremap", AT + MIB(2), MIB(2), MIB(2), MOVE_FIXED, to), to);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	EXPECT_EQ(unmap(AT + PAGE_SIZE, PAGE_SIZE), 0);
	EXPECT_EQ(unmap(to + PAGE_SIZE, PAGE_SIZE), 0);
	EXPECT_EQ(program_call("mremap", AT + MIB(1), MIB(1), KIB(64), 0), (AT + MIB(1)));
	brim_end();
	EXPECT(get(AT) == AT && get(to) == AT + MIB(2) && get(AT + PAGE_SIZE) == ~0ULL);
}

TEST(program_brim, guards_are_removed)
{
	map_and_touch(MIB(8), PAGE_SIZE, NOHUGEPAGE);
	EXPECT_EQ(program_call("madvise", AT, MIB(8), GUARD_INSTALL), 0);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	for (u64 i = 0; i < TIMES; i++)
		EXPECT_EQ(program_call("madvise", AT + (2 * i + 1) * PAGE_SIZE, PAGE_SIZE,
				       GUARD_REMOVE),
			  0);
	brim_end();
	for (u64 i = 0; i < TIMES; i++)
		EXPECT(get(AT + 2 * i * PAGE_SIZE) == ~0ULL &&
		       get(AT + (2 * i + 1) * PAGE_SIZE) == 0);
}

TEST(program_brim, the_heap_shrinks)
{
	program_box_heap(AT);
	EXPECT_EQ(program_call("brk", AT + MIB(8)), (AT + MIB(8)));
	for (u64 at = AT; at < AT + MIB(8); at += PAGE_SIZE)
		EXPECT_EQ(put(at, 1), 0);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	for (u64 i = 1; i <= TIMES; i++)
		EXPECT_EQ(program_call("brk", AT + MIB(8) - i * PAGE_SIZE),
			  (AT + MIB(8) - i * PAGE_SIZE));
	brim_end();
}

/* ---- files ---- */

static u64 name_of(u64 i)
{
	char name[32];

	format(name, sizeof(name), "/brim-%llu", i);
	EXPECT_EQ(user_write(TEXTS, name, strlen(name) + 1), 0);
	return TEXTS;
}

TEST(program_brim, names_and_files_are_removed)
{
	for (u64 i = 0; i < TIMES; i++) {
		const s64 file = program_call("open", name_of(i), CREATE, 0644);

		EXPECT_EQ(program_call("write", file, TEXTS, 16), 16);
		EXPECT_EQ(program_call("close", file), 0);
	}
	EXPECT_EQ(program_call("mkdir", name_of(TIMES), 0755), 0);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	for (u64 i = 0; i < TIMES; i++)
		EXPECT_EQ(program_call("unlink", name_of(i)), 0);
	EXPECT_EQ(program_call("rmdir", name_of(TIMES)), 0);
	brim_end();
	EXPECT(program_call("open", name_of(7), 0, 0) < 0);
}

static void expect_size(s64 file, u64 size)
{
	enum { FROM_END = 2 };

	EXPECT_EQ(program_call("lseek", file, 0, FROM_END), size);
}

/* The tree of a file's pages has three levels here, and is cut inside of nodes of each. */
TEST(program_brim, a_file_becomes_shorter)
{
	enum { PAGES = 2 * TIMES + 1, FAR_PAGES = 64 };
	u64 size = GIB(2) + 5 * PAGE_SIZE + 1;
	s64 file;

	file = program_call("open", name_of(0), CREATE, 0644);
	EXPECT_EQ(program_call("fallocate", file, 0, 0, PAGES * PAGE_SIZE), 0);
	EXPECT_EQ(program_call("fallocate", file, 0, GIB(2), FAR_PAGES * PAGE_SIZE), 0);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	EXPECT_EQ(program_call("ftruncate", file, size), 0);
	expect_size(file, size);
	EXPECT_EQ(program_call("truncate", name_of(0), GIB(1) + 1), 0);
	for (u64 i = 1; i < TIMES; i++) {
		size = (PAGES - 2 * i) * PAGE_SIZE + 100;
		EXPECT_EQ(program_call("ftruncate", file, size), 0);
		expect_size(file, size);
	}
	EXPECT_EQ(program_call("close", file), 0);
	brim_end();
}
