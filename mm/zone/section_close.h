/* Closing sections whose memory is free. A closed section has no struct pages. */
#pragma once

#include "mm/zone/section.h"

/*
 * Close a section all of whose blocks are free (and hold no metadata memory except the section's
 * own struct pages): one full round of all CPUs, idle ones too. 0; -EBUSY with nothing changed if
 * something is in use or isolated (isolate.h); -ENODEV if it has no RAM or is not open; -EAGAIN as
 * section_open() says. No lock held.
 */
int section_close(struct mm *mm, u64 section);

/*
 * Make memory available that is free but not at hand: frames on per-CPU lists, metadata memory that
 * only free blocks use (in mapped sections, in place of the section's own), blocks that were split
 * ahead, and free sections that are open in another style than `wanted`. For a request that found
 * nothing: it costs a round or two, and one for each 32 sections that are closed, by other CPUs
 * too: these are waited for. No lock held.
 */
void sections_give_back(struct mm *mm, enum section_style wanted);

/* Close every section that can be closed; returns how many. */
u64 sections_close_all(struct mm *mm);
