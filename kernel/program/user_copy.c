/* The one checked copy: see user_copy.h. */
#include "kernel/program/user_copy.h"

#include <arch/atomic.h>
#include <arch/pgtable.h>
#include <arch/user.h>

#include "mm/vm/pages.h"
#include "kernel/program/program_space.h"
#include "mm/vm/touch.h"

static bool is_possible(user_t start, u64 size)
{
	return start >= USER_START && start <= USER_END && size <= USER_END - start;
}

static void *bytes_at(pte_t pte, enum pt_level level, u64 addr)
{
	return (char *)phys_to_virt(pte_pfn(pte) << PAGE_SHIFT) + addr % pt_level_size(level);
}

/*
 * Pin the page of `addr` and find it in the direct map; bring it if it is absent. NULL, without a
 * pin, if the program may not access it so. The page tables are walked only under a pin that no
 * busy area contradicts.
 */
static void *pin_bytes(u64 addr, enum user_access access)
{
	for (;;) {
		enum pt_level level;
		struct area area;
		pte_t pte;

		if (!space_pin(&program_space, addr, PT_PAGE, &area))
			return NULL;
		if (!(area.rights & area_rights_for(access))) {
			space_unpin(&program_space);
			return NULL;
		}
		if (pages_find(&program_space, addr, &pte, &level))
			return bytes_at(pte, level, addr);
		space_unpin(&program_space);
		if (space_touch(&program_space, addr, access) != TOUCH_DONE)
			return NULL;
	}
}

int user_copy(enum copy how, void *kernel, user_t at, u64 size)
{
	u8 *byte = kernel;

	if (!is_possible(at, size))
		return -EFAULT;
	while (size > 0) {
		const u64 part = MIN(size, PAGE_SIZE - at % PAGE_SIZE);
		void *bytes = pin_bytes(at, how == COPY_IN ? USER_READ : USER_WRITE);

		if (!bytes)
			return -EFAULT;
		copy_bytes(how, byte, bytes, part);
		space_unpin(&program_space);
		at += part;
		size -= part;
		byte = byte ? byte + part : NULL;
	}
	return 0;
}

s64 user_read_text(char *to, user_t from, u64 size)
{
	for (u64 got = 0; got < size;) {
		const u64 part = MIN(size - got, PAGE_SIZE - (from + got) % PAGE_SIZE);
		const int err = user_read(to + got, from + got, part);
		const u64 length = err < 0 ? 0 : strnlen(to + got, part);

		if (err < 0)
			return err;
		if (length < part)
			return (s64)(got + length);
		got += part;
	}
	return -ENAMETOOLONG;
}

static u32 *pin_word(user_t at, enum user_access access)
{
	if (!is_possible(at, sizeof(u32)) || !IS_ALIGNED(at, sizeof(u32)))
		return NULL;
	return pin_bytes(at, access);
}

int user_load_u32(user_t from, u32 *value)
{
	const u32 *word = pin_word(from, USER_READ);

	if (!word)
		return -EFAULT;
	*value = atomic_load_acquire(word);
	space_unpin(&program_space);
	return 0;
}

bool user_peek_u32(user_t from, u32 *value)
{
	enum pt_level level;
	struct area area;
	pte_t pte;
	bool found;

	if (!is_possible(from, sizeof(u32)) || !IS_ALIGNED(from, sizeof(u32)))
		return false;
	if (!space_try_pin(&program_space, from, &area))
		return false;
	found = area.rights & area_rights_for(USER_READ) &&
		pages_find(&program_space, from, &pte, &level);
	if (found)
		*value = atomic_load_acquire((const u32 *)bytes_at(pte, level, from));
	space_unpin(&program_space);
	return found;
}

int user_cas_u32(user_t at, u32 old, u32 new, u32 *found)
{
	u32 *word = pin_word(at, USER_WRITE);

	if (!word)
		return -EFAULT;
	do /* a word that is `old` again, after it was another value, is tried again */
		*found = atomic_load_relaxed(word);
	while (*found == old && !atomic_cas(word, old, new));
	space_unpin(&program_space);
	return 0;
}
