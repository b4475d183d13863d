/*
 * The reference of a space (mm/vm/space.h): what is mapped where, page by page, and what each call
 * must answer. Random sequences of calls are compared with it, through every front: mmap() and its
 * kin (program_window.h), and huge mappings (huge_map_random_test.c).
 *
 * The model is pure. It works on arrays of its caller, and does not know what runs out of memory.
 */
#pragma once

#include <arch/user.h>

#include "mm/vm/space.h"

/* Contents of a page: zeros at first, or a page of a file, whose own copy comes with a touch. */
enum space_source { SPACE_ZEROS, SPACE_PRIVATE, SPACE_SHARED };

struct space_page {
	u8 source, rights; /* enum space_source, enum user_rights */
	u16 file_page;     /* beyond model->file_pages nothing may be touched */
	bool mapped;
	bool touched;   /* it has come, or with SPACE_PRIVATE its copy */
	bool promised;  /* by a pool: what has come stays until it is unmapped */
	bool guard : 1; /* nothing may be touched (MADV_GUARD_INSTALL) */
	u64 word[3];    /* space_model_word() */
};

struct space_model {
	struct space_page *page;
	u64 pages;
	u64 (*file)[3]; /* words of its pages */
	u64 file_pages;
	/* the last change of rights: of pages that had come, and some of them lost a right */
	bool there, lost;
};

/* May a page be accessed? */
bool space_model_may(const struct space_model *m, u64 page, enum user_access access);

/* A page comes, if it had not. Returns its words, which the caller compares or writes. */
u64 *space_model_touch(struct space_model *m, u64 page);

/*
 * Of the 512 words of a page the model keeps the first, the last, and a number from which those
 * between count up. If it is 0, so are they.
 */
enum { SPACE_LAST_WORD = 511 };
static inline u64 space_model_word(const u64 word[3], u64 index)
{
	if (index == 0 || index == SPACE_LAST_WORD)
		return word[index != 0];
	return word[2] ? word[2] + index : 0;
}

/*
 * Calls, and what they must answer. space_model_map() makes each page like `to`, with the pages of
 * its file in a row, and answers -EEXIST where it must not replace. The four below it answer
 * -ENOMEM if not all of the range is mapped. space_model_cover() changes nothing,
 * space_model_protect() the pages before the hole, and the other two all that are mapped.
 */
int space_model_map(struct space_model *m, u64 first, u64 count, const struct space_page *to,
		    enum space_claim how);
int space_model_cover(const struct space_model *m, u64 first, u64 count);
int space_model_protect(struct space_model *m, u64 first, u64 count, u8 rights);
int space_model_discard(struct space_model *m, u64 first, u64 count);
int space_model_guard(struct space_model *m, u64 first, u64 count, bool guard);
void space_model_unmap(struct space_model *m, u64 first, u64 count);

/* The first `new_count` of `count` pages move, in place of what was at `to`; the others go. */
void space_model_move(struct space_model *m, u64 first, u64 count, u64 to, u64 new_count);

/*
 * `count` pages become `new_count`. Those that are new go on as the last one began. -EFAULT: not
 * all are mapped, or, of what becomes shorter, not the first; -ENOMEM: there is no room.
 */
int space_model_resize(struct space_model *m, u64 first, u64 count, u64 new_count);
