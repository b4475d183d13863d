/* Compute again what a zone keeps back. True if its watermarks agree; prints each difference. */
#pragma once

#include "mm/debug/account.h"

bool account_watermarks(const struct mm *mm);
