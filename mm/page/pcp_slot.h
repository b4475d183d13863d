/*
 * Declarations shared by the files of the per-CPU lists: see pcp.h. All calls: entered, on the
 * owner's CPU.
 */
#pragma once

#include "mm/page/pcp.h"
