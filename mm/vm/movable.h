/*
 * Moving a space's pages out of the way, so that contiguous memory can be found. One space at a
 * time has pages that move.
 *
 * A page is not marked as movable when it is brought, which would cost each touch two lines of
 * counters that CPUs share. Only when contiguous memory is wanted does movable_announce() mark the
 * pages that are there. From then on mm/ moves them as those of any holder (struct
 * page_mover): the area is busy while the entry is absent, one round ends the old translation, the
 * contents are copied, and the entry gets the new frame.
 *
 * A mover waits for nobody, because its CPU may be in a call that has made areas busy or in a touch
 * that has a pin. A page that is in use at that moment is refused, and the search tries it again or
 * goes elsewhere.
 */
#pragma once

struct space;

/* Mark all pages of the space that can move. The caller has no pin and no busy range. */
void movable_announce(struct space *space);

/*
 * No page of the space moves from here on, and no mover, on whatever CPU, uses its areas and page
 * tables any more. Context: ordinary.
 */
void movable_end(struct space *space);
