/*
 * The reference allocator: see alloc_model.h.
 */
#include "tests/kernel/alloc_model.h"

#include "tests/kernel/mm_test.h"

/* ---- frames and blocks by number ---- */

static u64 frame_number(const struct alloc_model *m, pfn_t pfn)
{
	const pfn_t real = m->a->start >> PAGE_SHIFT, phantom = m->a->phantom >> PAGE_SHIFT;

	if (pfn - real < m->real_frames)
		return pfn - real;
	if (pfn - phantom < m->frames - m->real_frames)
		return m->real_frames + pfn - phantom;
	return m->frames; /* the frame is not the arena's */
}

static pfn_t frame_at(const struct alloc_model *m, u64 number)
{
	return number < m->real_frames ? (m->a->start >> PAGE_SHIFT) + number
				       : (m->a->phantom >> PAGE_SHIFT) + number - m->real_frames;
}

static u64 free_in_block(const struct alloc_model *m, u64 b)
{
	return BLOCK_FRAMES - m->held[b] - m->no_ram[b];
}

/* ---- making it ---- */

static void mark_what_is_no_ram(struct alloc_model *m)
{
	for (u64 i = 0; i < m->frames; i++) {
		u8 zone;

		if (memmap_frame_kind(&m->a->mm, frame_at(m, i), &zone) != FRAME_FREE) {
			m->holder[i] = MODEL_NO_RAM;
			m->no_ram[i / BLOCK_FRAMES]++;
		}
	}
}

bool model_make(struct alloc_model *m, struct arena *a)
{
	u64 bytes;
	unsigned order = 0;

	*m = (struct alloc_model){.a = a, .real_frames = a->options.bytes >> PAGE_SHIFT};
	m->frames = m->real_frames + (a->options.phantom >> PAGE_SHIFT);
	bytes = (m->frames + 2 * (m->frames / BLOCK_FRAMES)) * sizeof(u16);
	while (PAGE_SIZE << order < bytes)
		order++;
	m->memory = order <= BLOCK_ORDER ? page_alloc(order, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE)
					 : NULL;
	if (!m->memory) {
		test_skip("needs %llu MiB of free memory in one piece",
			  DIV_ROUND_UP(bytes, MIB(1)));
		return false;
	}
	m->holder = page_address(m->memory);
	m->held = m->holder + m->frames;
	m->no_ram = m->held + m->frames / BLOCK_FRAMES;
	mark_what_is_no_ram(m);
	return true;
}

void model_drop(struct alloc_model *m)
{
	page_free(m->memory);
}

/* ---- changing holders ---- */

bool model_move(struct alloc_model *m, pfn_t pfn, u64 frames, u16 from, u16 to)
{
	const u64 first = frame_number(m, pfn);

	if (first + frames > m->frames) {
		test_fail(__FILE__, __LINE__,
			  "frame %llx was handed out: it is none of the arena's", pfn);
		return false;
	}
	for (u64 i = first; i < first + frames; i++) {
		if (m->holder[i] != from) {
			test_fail(__FILE__, __LINE__, "frame %llx goes from %u to %u, but is %u's",
				  frame_at(m, i), from, to, m->holder[i]);
			return false;
		}
		m->holder[i] = to;
	}
	for (u64 i = first; i < first + frames; i += MIN(frames, (u64)BLOCK_FRAMES))
		m->held[i / BLOCK_FRAMES] += (u16)((to != MODEL_FREE) - (from != MODEL_FREE)) *
					     MIN(frames, (u64)BLOCK_FRAMES);
	if (from != MODEL_POOL && to != MODEL_POOL)
		m->total += to != MODEL_FREE ? frames : -frames;
	return true;
}

bool model_is_free(const struct alloc_model *m, pfn_t pfn)
{
	return frame_number(m, pfn) < m->frames && m->holder[frame_number(m, pfn)] == MODEL_FREE;
}

void model_lose(struct alloc_model *m, pfn_t pfn)
{
	m->holder[frame_number(m, pfn)] = MODEL_NO_RAM;
	m->no_ram[frame_number(m, pfn) / BLOCK_FRAMES]++;
}

/* ---- should there have been a page? ---- */

/*
 * Per node, the wholly free blocks that are not metadata memory's, and those of them that have
 * their struct pages.
 */
struct room {
	u64 whole[2 * ARENA_NODES_MAX], full[2 * ARENA_NODES_MAX];
};

static bool node_is_meant(node_t wanted, node_t node)
{
	return wanted == NODE_NONE || wanted == node;
}

/* Is there a free aligned chunk in this block with struct pages, in one zone of the node? */
static bool block_has_chunk(const struct alloc_model *m, u64 b, unsigned order, node_t node)
{
	const struct mm *mm = &m->a->mm;
	const struct page *pages = pfn_page(mm, frame_at(m, b * BLOCK_FRAMES));
	const u16 *holder = &m->holder[b * BLOCK_FRAMES];

	for (u64 at = 0; at < BLOCK_FRAMES; at += order_pages(order)) {
		u64 n = 0;

		while (n < order_pages(order) && holder[at + n] == MODEL_FREE &&
		       pages[at + n].zone == pages[at].zone)
			n++;
		if (n == order_pages(order) && node_is_meant(node, mm->zone[pages[at].zone].node))
			return true;
	}
	return false;
}

/* The block's record; in a GiB without records, the block is unopened. */
static struct block_word look(const struct mm *mm, u32 index)
{
	const struct block *block = block_at(mm, index);

	return block ? block_look(block) : BLOCK_WORD(.state = BLOCK_UNOPENED);
}

/*
 * Check what one block can offer. Returns true if it has a chunk. A wholly free block is counted in
 * `room`.
 */
static bool look_at_block(const struct alloc_model *m, u64 b, unsigned order, node_t node,
			  struct room *room)
{
	struct mm *mm = &m->a->mm;
	const u32 index = (u32)(frame_at(m, b * BLOCK_FRAMES) >> BLOCK_ORDER);
	const enum block_state state = look(mm, index).state;
	u8 zone;

	if (state == BLOCK_META || state == BLOCK_ABSENT ||
	    free_in_block(m, b) < order_pages(MIN(order, BLOCK_ORDER)))
		return false;
	if (memmap_block_plan(mm, index, &zone) == PLAN_FREE && m->held[b] == 0) {
		room->whole[mm->zone[zone].node]++;
		room->full[mm->zone[zone].node] += state == BLOCK_FULL;
		return false;
	}
	return order < BLOCK_ORDER && (state == BLOCK_FULL || state == BLOCK_RESERVED) &&
	       block_has_chunk(m, b, order, node);
}

/*
 * Is all of the GiB free and alike, that is, never opened, or bare and of one type, so that it
 * merged?
 */
static bool gib_is_one(const struct alloc_model *m, u64 b)
{
	const u32 index = (u32)(frame_at(m, b * BLOCK_FRAMES) >> BLOCK_ORDER);
	const struct block_word first = look(&m->a->mm, index);

	if (first.state != BLOCK_UNOPENED && first.state != BLOCK_BARE)
		return false;
	for (u32 i = 0; i < GIB_BLOCKS; i++) {
		const struct block_word word = look(&m->a->mm, index + i);

		if (m->held[b + i] + m->no_ram[b + i] > 0 || word.state != first.state ||
		    (word.state == BLOCK_BARE && word.type != first.type))
			return false;
	}
	return true;
}

static bool has_gib(struct alloc_model *m, node_t node)
{
	const node_t phantom = m->a->options.nodes;

	if (!node_is_meant(node, phantom) || m->a->options.phantom_nodes > 1 ||
	    m->a->mm.zone[0].max_order < GIGA_ORDER)
		return false;
	for (u64 b = m->real_frames / BLOCK_FRAMES; b + GIB_BLOCKS <= m->frames / BLOCK_FRAMES;
	     b += GIB_BLOCKS)
		if (gib_is_one(m, b))
			return true;
	return false;
}

bool model_has_room(struct alloc_model *m, unsigned order, node_t node)
{
	const struct mm *mm = &m->a->mm;
	struct room room = {0};

	for (u64 b = 0; b < m->frames / BLOCK_FRAMES; b++)
		if (look_at_block(m, b, order, node, &room))
			return true;
	for (node_t n = 0; n < mm->nodes; n++) {
		/* the node whose blocks pay for struct pages */
		const node_t meta = mm->node[n].meta_node;

		if (!node_is_meant(node, n))
			continue;
		if (order <= BLOCK_ORDER && room.full[n] > 0)
			return true;
		/*
		 * "Splitting succeeds while a node has two free blocks": one block to split, and
		 * one for metadata memory to grow into.
		 */
		if (order <= BLOCK_ORDER && room.whole[n] >= 1 &&
		    room.whole[meta] >= 1u + (n == meta))
			return true;
		if (order == GIGA_ORDER && room.whole[meta] >= 2 && has_gib(m, node))
			return true;
	}
	return false;
}

/*
 * Print a line for each run of blocks of one state and type, with the number of frames held in it.
 */
void model_print(const struct alloc_model *m)
{
	for (u64 b = 0; b < m->frames / BLOCK_FRAMES;) {
		const struct block_word first =
			look(&m->a->mm, (u32)(frame_at(m, b * BLOCK_FRAMES) >> BLOCK_ORDER));
		const u64 from = b;
		u64 held = 0;

		for (; b < m->frames / BLOCK_FRAMES && (b == from || b % SECTION_BLOCKS != 0);
		     b++) {
			const u32 index = (u32)(frame_at(m, b * BLOCK_FRAMES) >> BLOCK_ORDER);
			const struct block_word word = look(&m->a->mm, index);

			if (word.state != first.state || word.type != first.type)
				break;
			held += m->held[b];
		}
		print("  # %4llu blocks from %llu: %s, type %x, %llu frames held\n", b - from, from,
		      block_state_name(first.state), first.type, held);
	}
}

/* ---- comparing every record ---- */

static bool record_agrees(const struct alloc_model *m, u64 b, u32 index)
{
	struct mm *mm = &m->a->mm;
	const struct block_word word = look(mm, index);

	switch (word.state) {
	case BLOCK_UNOPENED:
	case BLOCK_ABSENT:
	case BLOCK_BARE:
	case BLOCK_META:
		return m->held[b] == 0;
	case BLOCK_HUGE:
	case BLOCK_NOHEAD:
		return m->held[b] == 0 || m->held[b] == BLOCK_FRAMES;
	case BLOCK_FULL:
		if (word.flags & BLOCK_POOL || buddy_find_run(mm, index) != BLOCK_NONE)
			return m->held[b] == (word.flags & BLOCK_POOL ? BLOCK_FRAMES : 0);
		return word.free_pages == free_in_block(m, b);
	default:
		return word.free_pages == free_in_block(m, b);
	}
}

bool model_agrees(struct alloc_model *m)
{
	for (u64 b = 0; b < m->frames / BLOCK_FRAMES; b++) {
		const u32 index = (u32)(frame_at(m, b * BLOCK_FRAMES) >> BLOCK_ORDER);
		const struct block_word word = look(&m->a->mm, index);

		if (record_agrees(m, b, index))
			continue;
		test_fail(__FILE__, __LINE__,
			  "block %u is %s with %u free pages; the model has %u held, %u no RAM",
			  index, block_state_name(word.state), word.free_pages, m->held[b],
			  m->no_ram[b]);
		return false;
	}
	return true;
}
