/* A model of a worker's window: see fuzz_model.h. */
#include "tests/host/fuzz_model.h"

#include <sys/syscall.h>

#include <arch/pgtable.h>

#include "kernel/lib/string.h"
#include "mm/vm/pages.h"
#include "kernel/program/program_space.h"
#include "kernel/program/user_copy.h"
#include "mm/vm/touch.h"

enum { MADV_DONTNEED = 4, MADV_FREE = 8, MADV_HUGEPAGE = 14, MADV_NOHUGEPAGE = 15 };
enum { MAP_SHARED = 1, MAP_PRIVATE = 2, MAP_FIXED = 0x10, MAP_ANONYMOUS = 0x20 };
enum { MAP_POPULATE = 0x8000, MAP_NORESERVE = 0x4000, MAP_NOREPLACE = 0x100000 };
enum { MAYMOVE_FIXED = 3, R = 1, W = 2, RW = 3, X = 4 };

static u64 addr_of(const struct fuzz_worker *w, u64 page)
{
	return FUZZ_PRIVATE(w->slot) + FUZZ_WINDOW + page * PAGE_SIZE;
}

/* ---- what should be there ---- */

static bool is_readable(const struct fuzz_page *p)
{
	return p->mapped && p->rights &&
	       (p->kind == FUZZ_ANONYMOUS || p->file_page < FUZZ_FILE_PAGES);
}

static bool is_writable(const struct fuzz_page *p)
{
	return is_readable(p) && (p->rights & W);
}

/* Address of the model's contents of a page. A first access makes a copy of the file's page. */
static u64 *words_of(struct fuzz_worker *w, struct fuzz_page *p)
{
	if (p->kind == FUZZ_SHARED)
		return w->file[p->file_page];
	if (p->kind == FUZZ_OWN_COPY && !p->touched)
		memcpy(p->word, w->file[p->file_page], sizeof(p->word));
	p->touched = true;
	return p->word;
}

static void set(struct fuzz_worker *w, u64 first, u64 count, struct fuzz_page to)
{
	for (u64 i = first; i < first + count; i++, to.file_page++)
		w->page[i] = to;
}

static bool all_mapped(const struct fuzz_worker *w, u64 first, u64 count)
{
	for (u64 i = first; i < first + count; i++)
		if (!w->page[i].mapped)
			return false;
	return true;
}

static bool any_mapped(const struct fuzz_worker *w, u64 first, u64 count)
{
	for (u64 i = first; i < first + count; i++)
		if (w->page[i].mapped)
			return true;
	return false;
}

/* ---- what is there ---- */

/* The leaf of a page, or 0. Only this thread changes the window, so no pin is needed. */
static pte_t leaf_of(const struct fuzz_worker *w, u64 page)
{
	enum pt_level level;
	pte_t pte;

	return pages_find(&program_space, addr_of(w, page), &pte, &level) ? pte : 0;
}

/* Pages that mmap() brought, as far as there was memory, no longer follow the file. */
static void note_populated(struct fuzz_worker *w, u64 first, u64 count)
{
	for (u64 i = first; i < first + count; i++)
		if (w->page[i].kind == FUZZ_OWN_COPY && leaf_of(w, i))
			words_of(w, &w->page[i]);
}

/* The area at an address. Other threads make it busy only for as long as they read smaps. */
static bool find_area(u64 at, struct area *area)
{
	while (space_look(&program_space, at, area)) {
		if (!(area->flags & AREA_BUSY))
			return true;
		cpu_relax();
	}
	return false;
}

static void look_at_area(struct fuzz_worker *w, u64 page)
{
	const struct fuzz_page *p = &w->page[page];
	const u64 at = addr_of(w, page);
	struct area area;
	const bool there = find_area(at, &area);
	const pte_t pte = leaf_of(w, page);

	if (there != p->mapped)
		fuzz_fail(w, "%llx: area %d, mapped %d", at, there, p->mapped);
	if (!there && pte)
		fuzz_fail(w, "%llx: entry %llx without an area", at, pte);
	if (!there || !p->mapped)
		return;
	if (area.rights != p->rights || !(area.flags & AREA_SHARED) != (p->kind != FUZZ_SHARED) ||
	    !area.object != (p->kind == FUZZ_ANONYMOUS))
		fuzz_fail(w, "%llx: rights %u, flags %x, file %d; they should be %u of kind %u", at,
			  area.rights, area.flags, area.object != NULL, p->rights, p->kind);
	if (area.object && (area.offset + at - area.start) >> PAGE_SHIFT != p->file_page)
		fuzz_fail(w, "%llx shows page %llu of its file and not %u", at,
			  (area.offset + at - area.start) >> PAGE_SHIFT, p->file_page);
	if (pte && pte_rights(pte) != (p->rights ? p->rights | R : 0u))
		fuzz_fail(w, "%llx: rights %u and entry %llx", at, p->rights, pte);
}

/* Was an access refused for lack of memory? A page that has come meanwhile is tried again. */
enum refusal { REFUSED, NO_MEMORY, TRY_AGAIN };
static enum refusal why_refused(u64 at, enum user_access access)
{
	switch (space_touch(&program_space, at, access)) {
	case TOUCH_NO_MEMORY:
		return NO_MEMORY;
	case TOUCH_DONE:
		return TRY_AGAIN;
	default:
		return REFUSED;
	}
}

static u64 word_at(const struct fuzz_worker *w, u64 page, u64 which)
{
	return addr_of(w, page) + which * (PAGE_SIZE - sizeof(u64));
}

static void look_at_word(struct fuzz_worker *w, u64 page)
{
	struct fuzz_page *p = &w->page[page];
	const u64 which = fuzz_below(w, 2), at = word_at(w, page, which);
	u64 value = 0, want;
	int err = user_read(&value, at, sizeof(value));

	for (unsigned i = 0; err && is_readable(p) && i < 100; i++) {
		const enum refusal why = why_refused(at, USER_READ);

		if (why == NO_MEMORY)
			return;
		if (why == TRY_AGAIN)
			err = user_read(&value, at, sizeof(value));
	}
	if (!err != is_readable(p)) {
		fuzz_fail(w, "%llx: read gives %d, mapped %d, rights %u, kind %u", at, err,
			  p->mapped, p->rights, p->kind);
		return;
	}
	if (err)
		return;
	want = words_of(w, p)[which];
	if (value != want)
		fuzz_fail(w, "%llx: %llx is there and %llx should be (kind %u)", at, value, want,
			  p->kind);
}

static void look(struct fuzz_worker *w, u64 page)
{
	look_at_area(w, page);
	look_at_word(w, page);
}

void fuzz_model_look_at_all(struct fuzz_worker *w)
{
	for (u64 i = 0; i < FUZZ_WINDOW_PAGES && !fuzz_round.failed; i++)
		look(w, i);
}

/* ---- writing ---- */

static void fill(struct fuzz_worker *w, u64 page)
{
	struct fuzz_page *p = &w->page[page];
	const u64 which = fuzz_below(w, 2), at = word_at(w, page, which),
		  value = next_random(&w->random.state);
	int err = user_write(at, &value, sizeof(value));

	for (unsigned i = 0; err && is_writable(p) && i < 100; i++) {
		const enum refusal why = why_refused(at, USER_WRITE);

		if (why == NO_MEMORY)
			return;
		if (why == TRY_AGAIN)
			err = user_write(at, &value, sizeof(value));
	}
	if (!err != is_writable(p))
		fuzz_fail(w, "%llx: write gives %d, mapped %d, rights %u, kind %u", at, err,
			  p->mapped, p->rights, p->kind);
	if (!err)
		words_of(w, p)[which] = value;
}

/* One copy over the border of two pages. If the second refuses, the first has its part. */
static void straddle(struct fuzz_worker *w, u64 page)
{
	struct fuzz_page *low = &w->page[page], *high = &w->page[page + 1];
	const u64 value[2] = {next_random(&w->random.state), next_random(&w->random.state)};
	const u64 at = addr_of(w, page + 1) - sizeof(value[0]);
	const bool both = is_writable(low) && is_writable(high);
	const int err = user_write(at, value, sizeof(value));

	if (!err && !both)
		fuzz_fail(w, "%llx: a write over a border into what is not writable", at);
	if (err && both && why_refused(at, USER_WRITE) == REFUSED)
		fuzz_fail(w, "%llx: a write over a border is refused", at);
	if (!err) {
		words_of(w, low)[1] = value[0];
		words_of(w, high)[0] = value[1];
	} else if (is_writable(low)) {
		u64 now;

		if (user_read(&now, at, sizeof(now)) < 0)
			return; /* no memory: nothing was written */
		if (now != value[0] && now != words_of(w, low)[1])
			fuzz_fail(w, "%llx: %llx after a write of %llx", at, now, value[0]);
		words_of(w, low)[1] = now;
	}
}

static void write_file(struct fuzz_worker *w)
{
	const u64 page = fuzz_below(w, FUZZ_FILE_PAGES), which = fuzz_below(w, 2),
		  value = next_random(&w->random.state),
		  buffer = FUZZ_PRIVATE(w->slot) + FUZZ_BUFFER;

	s64 written;

	if (user_write(buffer, &value, sizeof(value)) < 0)
		return;
	do {
		w->astray = false;
		written =
			fuzz_call(w, SYS_pwrite64, FUZZ_DESCRIPTOR + w->slot, buffer, sizeof(value),
				  page * PAGE_SIZE + which * (PAGE_SIZE - sizeof(value)));
	} while (w->astray);
	if (written == (s64)sizeof(value))
		w->file[page][which] = value;
}

/* ---- calls ---- */

/*
 * A call that ran out of memory may have done a part. Its pages are unmapped, and known again. Even
 * that takes memory, where it cuts a huge page.
 */
static void anew(struct fuzz_worker *w, u64 first, u64 count)
{
	for (unsigned i = 0; i < 1000; i++) {
		if (fuzz_call(w, SYS_munmap, addr_of(w, first), count * PAGE_SIZE) == 0) {
			set(w, first, count, (struct fuzz_page){0});
			return;
		}
	}
	/* other threads have all memory: this one gives all of its own back */
	if (fuzz_call(w, SYS_munmap, addr_of(w, 0), FUZZ_WINDOW_PAGES * PAGE_SIZE) != 0)
		fuzz_fail(w, "%llx: the window cannot be unmapped", addr_of(w, 0));
	set(w, 0, FUZZ_WINDOW_PAGES, (struct fuzz_page){0});
}

static void step_map(struct fuzz_worker *w, u64 first, u64 count)
{
	static const u8 rights[] = {0, R, W, RW, RW, RW, R | X, RW | X};
	struct fuzz_page to = {.mapped = 1,
			       .rights = rights[fuzz_below(w, 8)],
			       .kind = (u8)(fuzz_below(w, 2) ? FUZZ_ANONYMOUS : fuzz_below(w, 3)),
			       .file_page = (u16)fuzz_below(w, FUZZ_FILE_PAGES)};
	const bool only_free = fuzz_below(w, 4) == 0, was = any_mapped(w, first, count);
	const u64 at = addr_of(w, first);
	const u64 flags = (to.kind == FUZZ_SHARED ? MAP_SHARED : MAP_PRIVATE) |
			  (to.kind == FUZZ_ANONYMOUS ? MAP_ANONYMOUS : 0) |
			  (only_free ? MAP_NOREPLACE : MAP_FIXED) |
			  (fuzz_below(w, 4) ? 0 : MAP_POPULATE) |
			  (fuzz_below(w, 4) ? 0 : MAP_NORESERVE);
	s64 result;

	if (to.kind == FUZZ_ANONYMOUS)
		to.file_page = 0;
	result = fuzz_call(w, SYS_mmap, at, count * PAGE_SIZE, to.rights, flags,
			   FUZZ_DESCRIPTOR + w->slot, (u64)to.file_page * PAGE_SIZE);
	if (result == (s64)at && !(only_free && was)) {
		set(w, first, count, to);
		note_populated(w, first, count);
	} else if (result == -ENOMEM) {
		anew(w, first, count);
	} else if (!(only_free && was && result == -EEXIST)) {
		fuzz_fail(w, "%llx: mmap gives %lld", at, result);
	}
}

static void step_unmap(struct fuzz_worker *w, u64 first, u64 count)
{
	const s64 result = fuzz_call(w, SYS_munmap, addr_of(w, first), count * PAGE_SIZE);

	if (result == 0)
		set(w, first, count, (struct fuzz_page){0});
	else if (result == -ENOMEM)
		anew(w, first, count);
	else
		fuzz_fail(w, "munmap gives %lld", result);
}

static void step_protect(struct fuzz_worker *w, u64 first, u64 count)
{
	static const u8 all_rights[] = {0, R, W, RW, RW, R | X};
	const u8 rights = all_rights[fuzz_below(w, ARRAY_LEN(all_rights))];
	const bool whole = all_mapped(w, first, count);
	const s64 result = fuzz_call(w, SYS_mprotect, addr_of(w, first), count * PAGE_SIZE, rights);

	if (result == 0 && whole) {
		for (u64 i = first; i < first + count; i++)
			w->page[i].rights = rights;
	} else if (result == -ENOMEM && whole) {
		anew(w, first, count);
	} else if (result != -ENOMEM) {
		fuzz_fail(w, "mprotect gives %lld, whole %d", result, whole);
	}
}

static void step_advise(struct fuzz_worker *w, u64 first, u64 count)
{
	static const u64 all_advice[] = {MADV_DONTNEED, MADV_FREE, MADV_DONTNEED, MADV_HUGEPAGE,
					 MADV_NOHUGEPAGE};
	const u64 advice = all_advice[fuzz_below(w, ARRAY_LEN(all_advice))];
	const bool whole = all_mapped(w, first, count);
	const s64 result = fuzz_call(w, SYS_madvise, addr_of(w, first), count * PAGE_SIZE, advice);
	bool left = false;

	if (result != -ENOMEM && (result != 0 || !whole))
		fuzz_fail(w, "madvise %llu gives %lld, whole %d", advice, result, whole);
	if (advice != MADV_DONTNEED && advice != MADV_FREE)
		return;
	for (u64 i = first; i < first + count; i++) {
		w->page[i].word[0] = w->page[i].word[1] = 0;
		w->page[i].touched = false;
		left = left || leaf_of(w, i);
	}
	if (left && result == 0)
		fuzz_fail(w, "madvise %llu leaves pages", advice);
	if (left)
		anew(w, first, count);
}

/* Is the range one area? If not, it may become one: neighbours join when neither is busy. */
static bool is_one_area(const struct fuzz_worker *w, u64 first, u64 count)
{
	struct area area;

	return area_tree_from(&program_space.tree, addr_of(w, first), &area) &&
	       area.start <= addr_of(w, first) && area.end >= addr_of(w, first + count);
}

static void step_move(struct fuzz_worker *w, u64 first, u64 count)
{
	const u64 to = fuzz_below(w, FUZZ_WINDOW_PAGES - count + 1),
		  new_count = fuzz_below(w, 3) ? count : 1 + fuzz_below(w, count);
	const bool one = is_one_area(w, first, count);
	s64 result;

	if (to < first + count && first < to + new_count)
		return;
	result = fuzz_call(w, SYS_mremap, addr_of(w, first), count * PAGE_SIZE,
			   new_count * PAGE_SIZE, MAYMOVE_FIXED, addr_of(w, to));
	if (result == (s64)addr_of(w, to)) {
		memcpy(&w->page[to], &w->page[first], new_count * sizeof(w->page[0]));
		set(w, first, count, (struct fuzz_page){0});
	} else if (result == -ENOMEM) {
		anew(w, to, new_count);
	} else if (result != -EFAULT || one) {
		fuzz_fail(w, "mremap gives %lld, one area %d", result, one);
	}
}

/* `first`, or the next page from which `count` pages end where room begins. */
static u64 before_room(const struct fuzz_worker *w, u64 first, u64 count)
{
	for (u64 end = first + count; end < FUZZ_WINDOW_PAGES; end++)
		if (w->page[end - 1].mapped && !w->page[end].mapped)
			return end - count;
	return first;
}

/* Longer or shorter, where it is. */
static void step_resize(struct fuzz_worker *w, u64 from, u64 count)
{
	/* a place drawn at random seldom has room behind it */
	const u64 first = fuzz_below(w, 2) ? before_room(w, from, count) : from;
	const u64 new_count = 1 + fuzz_below(w, MIN(2 * count, FUZZ_WINDOW_PAGES - first));
	const bool one = is_one_area(w, first, count),
		   free = new_count <= count || !any_mapped(w, first + count, new_count - count);
	const s64 result = fuzz_call(w, SYS_mremap, addr_of(w, first), count * PAGE_SIZE,
				     new_count * PAGE_SIZE, 0);

	if (result == (s64)addr_of(w, first) && free) {
		struct fuzz_page more = w->page[first + count - 1];

		more.word[0] = more.word[1] = 0;
		more.touched = false;
		more.file_page = (u16)(more.file_page + (more.kind != FUZZ_ANONYMOUS));
		if (new_count < count)
			set(w, first + new_count, count - new_count, (struct fuzz_page){0});
		else
			set(w, first + count, new_count - count, more);
		look(w, first + new_count - 1);
	} else if (result == -ENOMEM && new_count < count) {
		anew(w, first, count);
	} else if (result != -ENOMEM && (one || result != -EFAULT)) {
		fuzz_fail(w, "mremap to %llu pages gives %lld, one area %d, room %d", new_count,
			  result, one, free);
	}
}

void fuzz_model_step(struct fuzz_worker *w)
{
	static const u16 sizes[] = {1, 1, 2, 7, 64, 511, 512, 513};
	const u64 count = sizes[fuzz_below(w, ARRAY_LEN(sizes))];
	const u64 first = fuzz_below(w, 3)
				  ? fuzz_below(w, FUZZ_WINDOW_PAGES - count + 1)
				  : fuzz_below(w, (FUZZ_WINDOW_PAGES - count) / 512 + 1) * 512;

	w->astray = false;
	switch (fuzz_below(w, 14)) {
	case 0:
	case 1:
		step_map(w, first, count);
		break;
	case 2:
		step_unmap(w, first, count);
		break;
	case 3:
		step_protect(w, first, count);
		break;
	case 4:
		step_advise(w, first, count);
		break;
	case 5:
		step_move(w, first, count);
		break;
	case 6:
		step_resize(w, first, count);
		break;
	case 7:
		write_file(w);
		break;
	case 8:
		straddle(w, fuzz_below(w, FUZZ_WINDOW_PAGES - 1));
		break;
	case 9:
	case 10:
		for (unsigned i = 0; i < 8; i++)
			fill(w, fuzz_below(w, FUZZ_WINDOW_PAGES));
		break;
	default:
		break;
	}
	if (w->astray) {
		w->astray = false;
		anew(w, 0, FUZZ_WINDOW_PAGES);
	}
	for (unsigned i = 0; i < 4; i++)
		look(w, fuzz_below(w, FUZZ_WINDOW_PAGES));
	look(w, first);
	look(w, first + count - 1);
}

bool fuzz_model_begin(struct fuzz_worker *w)
{
	const u64 own = FUZZ_DESCRIPTOR + w->slot, last = FUZZ_FILE_PAGES * PAGE_SIZE - 1,
		  buffer = FUZZ_PRIVATE(w->slot) + FUZZ_BUFFER;
	s64 file;

	/* another thread may have had the slot before */
	if (fuzz_call(w, SYS_munmap, addr_of(w, 0), FUZZ_WINDOW_PAGES * PAGE_SIZE) != 0)
		return false;
	memset(w->page, 0, sizeof(w->page));
	memset(w->file, 0, sizeof(w->file));
	file = fuzz_call(w, SYS_memfd_create, FUZZ_TEXTS, 0);
	if (file < 0 || fuzz_call(w, SYS_dup2, (u64)file, own) != (s64)own)
		return false;
	fuzz_call(w, SYS_close, (u64)file);
	/* its last byte, which is zero, gives it its size */
	return fuzz_call(w, SYS_pwrite64, own, buffer, 1, last) == 1;
}

/* ---- the tables, at the end ---- */

struct tables {
	u64 leaves[3], where;
	const char *wrong;
};

static void check_leaf(struct tables *t, u64 virt, pte_t pte, enum pt_level level)
{
	const u64 end = virt + pt_level_size(level);
	struct area area;

	t->leaves[level]++;
	for (u64 at = virt; at < end && !t->wrong; at = area.end) {
		if (!area_tree_from(&program_space.tree, at, &area) || area.start > at)
			t->wrong = "a leaf without an area";
		else if (pte_rights(pte) != (area.rights ? area.rights | R : 0u))
			t->wrong = "a leaf with other rights than its area";
		if (t->wrong)
			t->where = at;
	}
}

static void check_table(struct tables *t, const pte_t *table, enum pt_level level, u64 base)
{
	for (unsigned i = 0; i < PTRS_PER_TABLE && !t->wrong; i++) {
		const pte_t pte = pte_load(&table[i]);
		const u64 virt = base + i * pt_level_size(level);

		if (virt >= USER_END)
			return;
		if (virt >= USER_HOLE_START && virt < USER_HOLE_END)
			continue;
		if (pte_claimed(pte)) {
			t->wrong = "an entry is still claimed";
			t->where = virt;
		} else if (pte_present(pte) &&
			   (level == PT_PAGE || (level != PT_PGD && pte_is_leaf(pte, level)))) {
			check_leaf(t, virt, pte, level);
		} else if (pte_present(pte)) {
			check_table(t, pte_table(pte), level - 1, virt);
		}
	}
}

const char *fuzz_tables_wrong(u64 *where)
{
	struct tables t = {.wrong = NULL};
	struct pages_count count;
	struct area area = {.end = 0};
	u64 bytes = 0;

	check_table(&t, phys_to_virt(pgtable_root() << PAGE_SHIFT), PT_PGD, 0);
	*where = t.where;
	if (t.wrong)
		return t.wrong;
	while (area_tree_from(&program_space.tree, area.end, &area)) {
		*where = area.start;
		bytes += area.end - area.start;
		if (area.flags & AREA_BUSY)
			return "an area that is still busy";
	}
	*where = bytes;
	if (bytes != program_space.bytes || program_space.tree.promised != 0)
		return "bytes of areas, or promised nodes, are counted wrongly";
	pages_count(&program_space, &count);
	for (unsigned i = 0; i < ARRAY_LEN(count.leaves); i++) {
		*where = i;
		if (count.leaves[i] != t.leaves[i])
			return "leaves are counted wrongly";
	}
	return NULL;
}
