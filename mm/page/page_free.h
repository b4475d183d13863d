/*
 * Giving up a reference to a page of any struct mm. page_put() of mm.h does the same for the
 * machine's own.
 */
#pragma once

#include "mm/page/migrate.h"

/* Drop a reference to a page; the last one frees it. */
void mm_page_put(struct mm *mm, struct page *page);
