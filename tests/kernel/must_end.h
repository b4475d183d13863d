/*
 * Cases that break a rule on purpose: the machine must end and say the text. Hosted only, where
 * each case has a machine of its own.
 */
#pragma once

#include "kernel/core/printk.h"
#include "tests/kernel/test.h"
#include "tests/host/host.h"

/* Announce the end that must come. A case that still runs afterwards has failed. */
#define MUST_END_SAYING(text) print(HOST_EXPECT_CRASH "%s\n", text)
#define STILL_THERE()         test_fail(__FILE__, __LINE__, "the announced end did not come")

#define MUST_END(text, ...)                                                                        \
	do {                                                                                       \
		MUST_END_SAYING(text);                                                             \
		__VA_ARGS__;                                                                       \
		STILL_THERE();                                                                     \
	} while (0)
