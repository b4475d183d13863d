/* What a space has: see space_look.h. */
#include "tests/kernel/space_look.h"

#include "mm/map/pgtable.h"
#include "mm/vm/entry.h"
#include "mm/vm/pages.h"

pte_t space_leaf(const struct space *space, u64 at)
{
	enum pt_level level;
	pte_t pte;

	return pages_find(space, at, &pte, &level) ? pte : 0;
}

/* No entry of a program can be written or executed and not read. */
static bool has_rights_of(const struct space *space, pte_t pte, const struct area *area)
{
	return entry_rights(space, pte) == (area->rights ? area->rights | USER_RIGHT_READ : 0u);
}

const char *space_page_wrong(struct space *space, u64 at, const struct space_page *want)
{
	const pte_t pte = space_leaf(space, at);
	struct area area;
	bool there;

	while ((there = space_look(space, at, &area)) && (area.flags & AREA_BUSY))
		cpu_relax();
	if (!there)
		return want->mapped ? "no area" : pte ? "an entry without an area" : NULL;
	if (!want->mapped)
		return "an area";
	if (area.rights != want->rights)
		return "an area with other rights";
	if (pte && !has_rights_of(space, pte, &area))
		return "an entry with other rights than its area";
	if (!space->user)
		return NULL;
	if (!(area.flags & AREA_SHARED) != (want->source != SPACE_SHARED) ||
	    !area.object != (want->source == SPACE_ZEROS))
		return "an area with another source";
	if (area.object && (area.offset + at - area.start) >> PAGE_SHIFT != want->file_page)
		return "another page of the file";
	return NULL;
}

/* The entry that translates an address, or the highest one that does not. */
static pte_t last_entry(u64 at, enum pt_level *level)
{
	for (*level = PT_PGD;; (*level)--) {
		const pte_t pte = pte_load(pgtable_entry(pgtable_root(), at, *level, NULL, NULL));

		if (!pte_present(pte) || *level == PT_PAGE ||
		    (*level != PT_PGD && pte_is_leaf(pte, *level)))
			return pte;
	}
}

static const char *leaf_wrong(const struct space *space, u64 end, pte_t pte, u64 *where)
{
	struct area area;

	for (; *where < end; *where = area.end) {
		if (!area_tree_from(&space->tree, *where, &area) || area.start > *where)
			return "a leaf without an area";
		if (!has_rights_of(space, pte, &area))
			return "a leaf with other rights than its area";
	}
	return NULL;
}

const char *space_leaves_wrong(const struct space *space, u64 start, u64 end, u64 leaves[3],
			       u64 *where)
{
	const char *wrong = NULL;
	enum pt_level level;

	for (u64 next; start < end && !wrong; start = next) {
		const pte_t pte = last_entry(start, &level);

		*where = start;
		next = ALIGN_DOWN(start, pt_level_size(level)) + pt_level_size(level);
		if (pte_claimed(pte))
			return "an entry is still claimed";
		else if (pte_present(pte)) {
			leaves[level]++;
			wrong = leaf_wrong(space, next, pte, where);
		}
	}
	return wrong;
}
