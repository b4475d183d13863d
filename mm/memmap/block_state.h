/* The states of a block record and every legal change between them. */
#pragma once

#include "mm/memmap/block.h"

/*
 * Change a record's state. Asserts that the pair of states is in the table of block_state.c,
 * and counts the change. The caller owns the record (block_state.c).
 */
void block_set_state(struct mm *mm, u32 index, enum block_state to);

/*
 * Publish the whole word of `count` > 0 neighbours of one GiB that are all in one state. Each gets
 * its zone from its own byte of `zones`, or word.zone if `zones` is NULL. The caller must be
 * allowed to use block_put() on each.
 */
void block_put_states(struct mm *mm, u32 first, u32 count, struct block_word word, const u8 *zones);

/*
 * The state that a metadata block gets when it has been emptied: full in a mapped section, where
 * its struct pages still exist, else bare.
 */
enum block_state block_state_without_use(const struct mm *mm, u32 index);

bool block_change_legal(enum block_state from, enum block_state to);

/* Names of the states, for messages. */
const char *block_state_name(enum block_state state);
