/*
 * Calls from contexts in which they are not allowed: payload=alloc-in-interrupt and so on. Returns
 * if `name` is none of them.
 */
#pragma once

void payload_misuse(const char *name);
