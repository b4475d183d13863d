/*
 * Moving a program's pages out of the way, so that contiguous memory can be found for it.
 *
 * A page of a program is not marked as movable when it is brought, which would cost each touch two
 * lines of counters that CPUs share. Only when contiguous memory is wanted does movable_announce()
 * mark the pages that are there. From then on mm/ moves them as those of any holder (struct
 * page_mover): the area is busy while the entry is absent, one round ends the old translation, the
 * contents are copied, and the entry gets the new frame.
 *
 * A mover waits for nobody, because its CPU may be in a call that has made areas busy or in a touch
 * that has a pin. A page that is in use at that moment is refused, and the search tries it again or
 * goes elsewhere.
 */
#pragma once

/* Mark all pages of the program that can move. The caller has no pin and no busy range. */
void movable_announce(void);

/*
 * No thread of the program is left: no page of it moves from here on, and no mover, on whatever
 * CPU, uses its areas, page tables and threads any more. Context: ordinary.
 */
void movable_end(void);
