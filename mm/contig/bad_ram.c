/*
 * badram=: memory that the command line names as bad is reserved before anybody can have it. See
 * bad_frames.h.
 */
#include "mm/contig/bad_ram.h"

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "mm/contig/bad_frames.h"

static const char *bad_ram;
OPTION_TEXT(badram, bad_ram, "memory that is kept out of use, e.g. badram=0x12345000,3G+2M");

int bad_ram_parse(const char *text, void (*take)(phys_t start, phys_t end, void *ctx), void *ctx)
{
	while (*text) {
		u64 start, size = 1;
		int err = parse_u64(&text, &start);

		if (!err && *text == '+') {
			text++;
			err = parse_u64(&text, &size);
		}
		if (err)
			return err;
		if ((*text && *text != ',') || size == 0)
			return -EINVAL;
		if (start >= PHYS_LIMIT || size > PHYS_LIMIT - start)
			return -ERANGE;
		take(ALIGN_DOWN(start, PAGE_SIZE), ALIGN_UP(start + size, PAGE_SIZE), ctx);
		text += *text == ',';
	}
	return 0;
}

static void reserve(phys_t start, phys_t end, void *ctx)
{
	(void)ctx;
	pr_warn("memory: %llx-%llx is named by badram= and is kept out of use", start, end);
	memblock_reserve(start, end, OWNER_BAD);
}

void bad_ram_reserve(void)
{
	char why[256];

	if (!bad_ram || bad_ram_parse(bad_ram, reserve, NULL) == 0)
		return;
	format(why, sizeof(why),
	       "badram=%s, from its mistake on, is malformed (expected START[+SIZE],...)", bad_ram);
	cmdline_refuse(why);
}
