/* The reference of a space: see space_model.h. */
#include "tests/kernel/space_model.h"

#include "kernel/lib/string.h"

/* Pages of a range that are mapped. */
static u64 mapped_in(const struct space_model *m, u64 first, u64 count)
{
	u64 mapped = 0;

	for (u64 i = first; i < first + count; i++)
		mapped += m->page[i].mapped;
	return mapped;
}

bool space_model_may(const struct space_model *m, u64 page, enum user_access access)
{
	const struct space_page *p = &m->page[page];

	return p->mapped && !p->guard && p->rights &&
	       (access == USER_READ || p->rights & USER_RIGHT_WRITE) &&
	       (p->source == SPACE_ZEROS || p->file_page < m->file_pages);
}

u64 *space_model_touch(struct space_model *m, u64 page)
{
	struct space_page *p = &m->page[page];

	if (p->source == SPACE_SHARED)
		return m->file[p->file_page];
	if (p->source == SPACE_PRIVATE && !p->touched)
		memcpy(p->word, m->file[p->file_page], sizeof(p->word));
	p->touched = true;
	return p->word;
}

int space_model_map(struct space_model *m, u64 first, u64 count, const struct space_page *to,
		    enum space_claim how)
{
	struct space_page page = *to;

	if (how == SPACE_MUST_BE_FREE && mapped_in(m, first, count) > 0)
		return -EEXIST;
	page.mapped = true;
	for (u64 i = first; i < first + count; i++) {
		m->page[i] = page;
		page.file_page += page.source != SPACE_ZEROS;
	}
	return 0;
}

void space_model_unmap(struct space_model *m, u64 first, u64 count)
{
	memset(&m->page[first], 0, count * sizeof(m->page[0]));
}

int space_model_cover(const struct space_model *m, u64 first, u64 count)
{
	return mapped_in(m, first, count) < count ? -ENOMEM : 0;
}

static void set_rights(struct space_model *m, struct space_page *p, u8 rights)
{
	m->there |= p->touched;
	m->lost |= p->touched && (p->rights & ~rights);
	p->rights = rights;
}

int space_model_protect(struct space_model *m, u64 first, u64 count, u8 rights)
{
	m->there = m->lost = false;
	for (u64 i = first; i < first + count && m->page[i].mapped; i++)
		set_rights(m, &m->page[i], rights);
	return space_model_cover(m, first, count);
}

int space_model_discard(struct space_model *m, u64 first, u64 count)
{
	for (u64 i = first; i < first + count; i++) {
		m->page[i].touched &= m->page[i].promised;
		memset(m->page[i].word, 0, sizeof(m->page[i].word));
	}
	return space_model_cover(m, first, count);
}

int space_model_guard(struct space_model *m, u64 first, u64 count, bool guard)
{
	for (u64 i = first; i < first + count; i++) {
		if (guard)
			space_model_discard(m, i, 1);
		m->page[i].guard = guard && m->page[i].mapped;
	}
	return space_model_cover(m, first, count);
}

void space_model_move(struct space_model *m, u64 first, u64 count, u64 to, u64 new_count)
{
	memcpy(&m->page[to], &m->page[first], new_count * sizeof(m->page[0]));
	space_model_unmap(m, first, count);
}

int space_model_resize(struct space_model *m, u64 first, u64 count, u64 new_count)
{
	struct space_page more = m->page[first + count - 1];
	const u64 needed = new_count <= count ? 1 : count;

	if (mapped_in(m, first, needed) < needed)
		return -EFAULT;
	if (new_count <= count) {
		space_model_unmap(m, first + new_count, count - new_count);
		return 0;
	}
	more.touched = more.guard = false;
	memset(more.word, 0, sizeof(more.word));
	more.file_page += more.source != SPACE_ZEROS;
	if (mapped_in(m, first + count, new_count - count) > 0)
		return -ENOMEM;
	return space_model_map(m, first + count, new_count - count, &more, SPACE_REPLACE);
}
