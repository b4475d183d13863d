/*
 * For the harnesses of loaders' data: a printk() that prints nothing, and the conditions that hold
 * for boot_info, whatever the input.
 */
#pragma once

#include <string.h>

#include "boot/boot_info.c"
#include "tests/fuzz/fuzz.h"

void printk(enum log_level level, const char *text, ...)
{
}

static void boot_info_clear(void)
{
	memset(&boot_info, 0, offsetof(struct boot_info, range));
	boot_info.ranges = boot_info.ranges_lost = boot_info.faults = 0;
}

static void boot_info_check(const struct boot_info *info)
{
	require(info->cmdline_len < BOOT_CMDLINE_MAX && info->cmdline[info->cmdline_len] == '\0');
	require(memchr(info->loader, '\0', sizeof(info->loader)) != NULL);
	require(info->rsdp_copy_len <= sizeof(info->rsdp_copy));
	require(info->modules <= BOOT_MODULES_MAX);
	for (size_t i = 0; i < info->modules; i++)
		require(memchr(info->module[i].text, '\0', BOOT_MODULE_TEXT_MAX) != NULL);
	require(info->ranges <= BOOT_RANGES_MAX);
	for (size_t i = 0; i < info->ranges; i++)
		require(info->range[i].start < info->range[i].end);
}
