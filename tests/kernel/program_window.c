/* Random calls on a window of a program's space: see program_window.h. */
#include "tests/kernel/program_window.h"

#include "kernel/lib/format.h"
#include "kernel/program/program_space.h"
#include "kernel/program/user_copy.h"
#include "mm/vm/touch.h"
#include "tests/kernel/space_look.h"

enum { MMAP = 9, MPROTECT = 10, MUNMAP = 11, PREAD = 17, PWRITE = 18, MREMAP = 25, MADVISE = 28 };
enum { CLOSE = 3, DUP2 = 33, MEMFD_CREATE = 319 };
enum { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20 };
enum { MAP_POPULATE = 0x8000, MAP_NORESERVE = 0x4000, MAP_NOREPLACE = 0x100000 };
enum { MAYMOVE_FIXED = 3, R = 1, W = 2, RW = 3, X = 4 };
enum { DONTNEED = 4, FREE = 8, HUGEPAGE = 14, NOHUGEPAGE = 15, COLLAPSE = 25 };
enum { GUARD_INSTALL = 102, GUARD_REMOVE = 103 };

#define CALL(w, number, ...) ((w)->call(w, number, (const u64[6]){__VA_ARGS__}))

static u64 draw(struct program_window *w, u64 below)
{
	return random_below(w->random, below);
}

static u64 addr_of(const struct program_window *w, u64 page)
{
	return w->start + page * PAGE_SIZE;
}

static u64 word_at(const struct program_window *w, u64 page, u64 index)
{
	return addr_of(w, page) + index * sizeof(u64);
}

static __printf(3, 4) void wrong(struct program_window *w, u64 page, const char *fmt, ...)
{
	const struct space_page *p = &w->page[page];
	char what[100], text[200];

	FORMAT_ARGS(what, sizeof(what), fmt);
	format(text, sizeof(text),
	       "%llx: %s; mapped %d, rights %u, source %u, page %u of the file, entry %llx",
	       addr_of(w, page), what, p->mapped, p->rights, p->source, p->file_page,
	       space_leaf(&program_space, addr_of(w, page)));
	w->fail(w, text);
}

/* ---- touching ---- */

/*
 * Read or write a word. If that is refused, a touch says whether it was for lack of memory; a page
 * that has come meanwhile is tried again. Returns 0, -ENOMEM or -EFAULT.
 */
static int copy_word(u64 at, enum user_access access, u64 *value)
{
	enum touch touch = TOUCH_DONE;

	for (unsigned i = 0; i < 100 && touch == TOUCH_DONE; i++) {
		if ((access == USER_WRITE ? user_write(at, value, sizeof(*value))
					  : user_read(value, at, sizeof(*value))) == 0)
			return 0;
		touch = space_touch(&program_space, at, access);
	}
	return touch == TOUCH_NO_MEMORY ? -ENOMEM : -EFAULT;
}

static void touch(struct program_window *w, u64 page, enum user_access access)
{
	const bool may = space_model_may(&w->model, page, access);
	const u64 end = draw(w, 2),
		  index = access == USER_WRITE || draw(w, 2) ? end * SPACE_LAST_WORD : draw(w, 512);
	u64 value = draw(w, ~0ULL), *word;
	const int err = copy_word(word_at(w, page, index), access, &value);

	if (err == -ENOMEM && may && w->may_fail)
		return;
	if (!err != may)
		wrong(w, page, "access %u gives %d", access, err);
	if (err || !may)
		return;
	word = space_model_touch(&w->model, page);
	if (access == USER_WRITE)
		word[end] = value;
	else if (value != space_model_word(word, index))
		wrong(w, page, "word %llu is %llx and should be %llx", index, value,
		      space_model_word(word, index));
}

/*
 * One copy over the border of two pages, there and back again. If the second page refuses, the
 * first may have its part.
 */
static void straddle(struct program_window *w, u64 page)
{
	const u64 value[2] = {draw(w, ~0ULL), draw(w, ~0ULL)},
		  at = word_at(w, page, SPACE_LAST_WORD);
	const bool low = space_model_may(&w->model, page, USER_WRITE),
		   both = low && space_model_may(&w->model, page + 1, USER_WRITE);
	const int err = user_write(at, value, sizeof(value));
	u64 now[2];

	if (err ? both && !w->may_fail : !both)
		wrong(w, page, "a write over a border gives %d", err);
	if (!err && both) {
		space_model_touch(&w->model, page)[1] = value[0];
		space_model_touch(&w->model, page + 1)[0] = value[1];
		if (user_read(now, at, sizeof(now)) == 0 && memcmp(now, value, sizeof(now)) != 0)
			wrong(w, page, "%llx %llx after a write of %llx %llx", now[0], now[1],
			      value[0], value[1]);
	} else if (low && copy_word(at, USER_READ, now) == 0) {
		u64 *word = &space_model_touch(&w->model, page)[1];

		if (now[0] != value[0] && now[0] != *word)
			wrong(w, page, "%llx after a write of %llx", now[0], value[0]);
		*word = now[0];
	}
}

static void look(struct program_window *w, u64 page)
{
	const char *what = space_page_wrong(&program_space, addr_of(w, page), &w->page[page]);

	if (what)
		wrong(w, page, "%s", what);
	touch(w, page, USER_READ);
}

void program_window_end(struct program_window *w)
{
	CALL(w, CLOSE, w->file);
	for (u64 i = 0; i < WINDOW_PAGES; i++)
		look(w, i);
}

/* Write a page of the file whole, or read one. */
static void use_file(struct program_window *w)
{
	const u64 page = draw(w, WINDOW_FILE_PAGES), fill = draw(w, ~0ULL), index = draw(w, 512);
	const bool writes = draw(w, 2);

	for (u64 i = 0; i < ARRAY_LEN(w->line); i++)
		w->line[i] = fill + i;
	if (writes && user_write(w->buffer, w->line, PAGE_SIZE) < 0)
		return;
	if (CALL(w, writes ? PWRITE : PREAD, w->file, w->buffer, PAGE_SIZE, page * PAGE_SIZE) !=
	    (s64)PAGE_SIZE)
		return;
	if (writes)
		memcpy(w->word[page], (u64[]){fill, fill + SPACE_LAST_WORD, fill},
		       sizeof(w->word[page]));
	else if (user_read(w->line, w->buffer, PAGE_SIZE) == 0 &&
		 w->line[index] != space_model_word(w->word[page], index))
		wrong(w, 0, "page %llu of the file reads %llx", page, w->line[index]);
}

/* ---- calls ---- */

/* Giving memory back needs none. */
static void unmap(struct program_window *w, u64 first, u64 count)
{
	const s64 result = CALL(w, MUNMAP, addr_of(w, first), count * PAGE_SIZE);

	if (result != 0)
		wrong(w, first, "unmapping %llu pages gives %lld", count, result);
	space_model_unmap(&w->model, first, count);
}

void program_window_clear(struct program_window *w)
{
	unmap(w, 0, WINDOW_PAGES);
}

/*
 * A call for these pages gave `result`, and should have given `want`. If it ran out of memory, it
 * may have done a part of its work; the pages are unmapped, and known again.
 */
static void answer(struct program_window *w, u64 first, u64 count, const char *call, s64 result,
		   s64 want)
{
	if (result == want)
		return;
	if (result == -ENOMEM && w->may_fail)
		unmap(w, first, count);
	else
		wrong(w, first, "%s of %llu pages gives %lld and not %lld", call, count, result,
		      want);
}

/* Pages that have come by themselves, as far as there was memory, no longer follow the file. */
static void note_populated(struct program_window *w, u64 first, u64 count)
{
	for (u64 i = first; i < first + count; i++)
		if (space_model_may(&w->model, i, USER_READ) &&
		    space_leaf(&program_space, addr_of(w, i)))
			space_model_touch(&w->model, i);
}

static void step_map(struct program_window *w, u64 first, u64 count)
{
	static const u8 rights[] = {0, R, W, RW, RW, RW, R | X, RW | X};
	const u8 source = (u8)(draw(w, 2) ? SPACE_ZEROS : draw(w, 3));
	const struct space_page to = {
		.rights = rights[draw(w, ARRAY_LEN(rights))],
		.source = source,
		.file_page = source == SPACE_ZEROS ? 0 : (u16)draw(w, WINDOW_FILE_PAGES)};
	const bool only_free = draw(w, 4) == 0;
	const u64 flags = (source == SPACE_SHARED ? MAP_SHARED : MAP_PRIVATE) |
			  (source == SPACE_ZEROS ? MAP_ANONYMOUS : 0) |
			  (only_free ? MAP_NOREPLACE : MAP_FIXED) |
			  (draw(w, 4) ? 0 : MAP_POPULATE) | (draw(w, 4) ? 0 : MAP_NORESERVE);
	const s64 result = CALL(w, MMAP, addr_of(w, first), count * PAGE_SIZE, to.rights, flags,
				w->file, (u64)to.file_page * PAGE_SIZE);

	answer(w, first, count, "mmap", result == (s64)addr_of(w, first) ? 0 : result,
	       space_model_map(&w->model, first, count, &to,
			       only_free ? SPACE_MUST_BE_FREE : SPACE_REPLACE));
	note_populated(w, first, count);
}

static void protect(struct program_window *w, u64 first, u64 count)
{
	static const u8 all_rights[] = {0, R, W, RW, RW, R | X};
	const u8 rights = all_rights[draw(w, ARRAY_LEN(all_rights))];
	const s64 result = CALL(w, MPROTECT, addr_of(w, first), count * PAGE_SIZE, rights),
		  want = space_model_protect(&w->model, first, count, rights);

	/* a hole, or no memory: a part may have its new rights */
	if (result == -ENOMEM && w->may_fail)
		unmap(w, first, count);
	else
		answer(w, first, count, "mprotect", result, want);
}

/* Of a range, or now and then of each page by itself, so that the tree of areas has many nodes. */
static void step_protect(struct program_window *w, u64 first, u64 count)
{
	const u64 part = draw(w, 8) ? count : 1;

	for (u64 i = 0; i < count; i += part)
		protect(w, first + i, part);
}

/* Contents and rights stay, whether pages become huge or not. */
static void step_advise(struct program_window *w, u64 first, u64 count)
{
	const u8 advice = draw(w, 2) ? HUGEPAGE : NOHUGEPAGE;

	answer(w, first, count, "madvise",
	       CALL(w, MADVISE, addr_of(w, first), count * PAGE_SIZE, advice),
	       space_model_cover(&w->model, first, count));
	CALL(w, MADVISE, addr_of(w, first), count * PAGE_SIZE, COLLAPSE);
}

/* How many pages come before the first of that source, or of one that follows it. */
static u64 before_source(const struct program_window *w, u64 first, u64 count,
			 enum space_source source)
{
	u64 i = 0;

	while (i < count && w->page[first + i].source < source)
		i++;
	return i;
}

static void expect_gone(struct program_window *w, u64 first, u64 count)
{
	for (u64 i = first; i < first + count; i++)
		if (space_leaf(&program_space, addr_of(w, i)))
			wrong(w, i, "a page was discarded and is there");
}

/* Pages that are discarded have gone. This takes no memory, either. */
static void step_discard(struct program_window *w, u64 first, u64 count)
{
	const u8 advice = draw(w, 2) ? DONTNEED : FREE;
	const u64 some = advice == FREE ? before_source(w, first, count, SPACE_PRIVATE) : count;
	const s64 result = CALL(w, MADVISE, addr_of(w, first), count * PAGE_SIZE, advice);
	const s64 want = space_model_discard(&w->model, first, some);

	if (result != (some < count ? -EINVAL : want))
		wrong(w, first, "discarding %llu pages gives %lld", count, result);
	expect_gone(w, first, some);
}

/* Shared memory takes no guards. Only to make them takes memory, for page tables. */
static void step_guard(struct program_window *w, u64 first, u64 count)
{
	const bool guard = draw(w, 2);
	const u64 some = before_source(w, first, count, SPACE_SHARED);
	const s64 result = CALL(w, MADVISE, addr_of(w, first), count * PAGE_SIZE,
				guard ? GUARD_INSTALL : GUARD_REMOVE),
		  covered = space_model_guard(&w->model, first, some, guard),
		  want = some < count ? -EINVAL : covered;

	/* a hole, or no memory: a part may have its guards */
	if (guard && result == -ENOMEM && w->may_fail) {
		unmap(w, first, count);
		return;
	}
	if (result != want)
		wrong(w, first, "guards %d of %llu pages: %lld and not %lld", guard, count, result,
		      want);
	if (guard)
		expect_gone(w, first, some);
}

/* Is the range one area? If not, it may become one: neighbours join when neither is busy. */
static bool is_one_area(const struct program_window *w, u64 first, u64 count)
{
	struct area area;

	return area_tree_from(&program_space.tree, addr_of(w, first), &area) &&
	       area.start <= addr_of(w, first) && area.end >= addr_of(w, first + count);
}

static void step_move(struct program_window *w, u64 first, u64 count)
{
	const u64 to = draw(w, WINDOW_PAGES - count + 1),
		  new_count = draw(w, 3) ? count : 1 + draw(w, count);
	const bool one = is_one_area(w, first, count);
	s64 result;

	if (to < first + count && first < to + new_count)
		return;
	result = CALL(w, MREMAP, addr_of(w, first), count * PAGE_SIZE, new_count * PAGE_SIZE,
		      MAYMOVE_FIXED, addr_of(w, to));
	if (result == (s64)addr_of(w, to))
		space_model_move(&w->model, first, count, to, new_count);
	else
		answer(w, to, new_count, "mremap", result, one ? 0 : -EFAULT);
}

/* `first`, or the next page from which `count` pages end where room begins. */
static u64 before_room(const struct program_window *w, u64 first, u64 count)
{
	for (u64 end = first + count; end < WINDOW_PAGES; end++)
		if (w->page[end - 1].mapped && !w->page[end].mapped)
			return end - count;
	return first;
}

/* Longer or shorter, where it is. A place drawn at random seldom has room behind it. */
static void step_resize(struct program_window *w, u64 from, u64 count)
{
	const u64 first = draw(w, 2) ? before_room(w, from, count) : from;
	const u64 new_count = 1 + draw(w, MIN(2 * count, WINDOW_PAGES - first));
	const bool one = is_one_area(w, first, count);
	const s64 result =
		CALL(w, MREMAP, addr_of(w, first), count * PAGE_SIZE, new_count * PAGE_SIZE, 0);

	if (result == -EFAULT && !one)
		return;
	answer(w, first, MAX(count, new_count), "mremap",
	       result == (s64)addr_of(w, first) ? 0 : result,
	       space_model_resize(&w->model, first, count, new_count));
	look(w, first + new_count - 1);
}

static void step_fill(struct program_window *w, u64 first, u64 count)
{
	for (unsigned i = 0; i < 8; i++)
		touch(w, draw(w, 2) ? draw(w, WINDOW_PAGES) : first + draw(w, count), USER_WRITE);
	straddle(w, draw(w, WINDOW_PAGES - 1));
	use_file(w);
}

void program_window_step(struct program_window *w)
{
	static void (*const steps[])(struct program_window *, u64, u64) = {
		step_map,   step_map,  unmap,       step_protect, step_advise, step_discard,
		step_guard, step_move, step_resize, step_fill,    step_fill,   step_fill};
	static const u16 sizes[] = {1, 1, 2, 7, 64, 511, 512, 513};
	const u64 count = sizes[draw(w, ARRAY_LEN(sizes))];
	const u64 first = draw(w, 3) ? draw(w, WINDOW_PAGES - count + 1)
				     : draw(w, (WINDOW_PAGES - count) / 512 + 1) * 512;

	steps[draw(w, ARRAY_LEN(steps))](w, first, count);
	for (unsigned i = 0; i < 4; i++)
		look(w, draw(w, WINDOW_PAGES));
	look(w, first);
	look(w, first + count - 1);
}

bool program_window_begin(struct program_window *w)
{
	s64 file;

	w->model = (struct space_model){.page = w->page,
					.pages = WINDOW_PAGES,
					.file = w->word,
					.file_pages = WINDOW_FILE_PAGES};
	memset(w->word, 0, sizeof(w->word));
	program_window_clear(w);
	/* a thread that is gone may have had a file of that number */
	file = CALL(w, MEMFD_CREATE, w->buffer, 0);
	if (file < 0 || CALL(w, DUP2, (u64)file, w->file) != (s64)w->file)
		return false;
	CALL(w, CLOSE, (u64)file);
	/* its last byte, which is zero, gives it its size */
	return CALL(w, PWRITE, w->file, w->buffer, 1, WINDOW_FILE_PAGES * PAGE_SIZE - 1) == 1;
}
