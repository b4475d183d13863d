/*
 * Calls that choose the node of pages: mbind, set_mempolicy, get_mempolicy. A policy
 * decides for pages that are touched later; pages that are there stay where they are. Numbers:
 * mbind(2), get_mempolicy(2).
 */

#include "kernel/core/percpu.h"
#include "kernel/program/calls.h"
#include "mm/vm/mapping.h"
#include "mm/vm/pages.h"
#include "kernel/program/program_space.h"
#include "kernel/program/user_copy.h"
#include "mm/memmap/zone.h"
#include "mm/mm.h"

enum mode {
	MPOL_DEFAULT,
	MPOL_PREFERRED,
	MPOL_BIND,
	MPOL_INTERLEAVE,
	MPOL_LOCAL,
	MPOL_PREFERRED_MANY,
	MPOL_WEIGHTED_INTERLEAVE,
	MPOL_FLAGS = 0xe000,
};

/* The nodes that a policy can name. */
static u64 all_nodes(void)
{
	return node_count < POLICY_NODES ? (1ULL << node_count) - 1 : ~0ULL;
}

/*
 * The set of nodes in the program's memory; `bits` is one more than it has, as in set_mempolicy(2).
 * Nodes that are not there are left out. Refused: only such nodes, and nodes from 64 on.
 */
static int read_nodes(user_t from, u64 bits, u64 *nodes)
{
	u64 asked = 0, word;

	*nodes = 0;
	if (from == 0 || --bits == 0)
		return 0;
	if (bits > PAGE_SIZE * 8)
		return -EINVAL;
	for (u64 i = 0; i < bits; i += 64) {
		if (user_read(&word, from + i / 8, sizeof(word)) < 0)
			return -EFAULT;
		word &= bits - i < 64 ? (1ULL << (bits - i)) - 1 : ~0ULL;
		if (i > 0 && word)
			return -EINVAL;
		asked |= word;
	}
	*nodes = asked & all_nodes();
	return asked && !*nodes ? -EINVAL : 0;
}

static int read_policy(u64 mode, user_t from, u64 bits, struct memory_policy *policy)
{
	static const u8 how_of[] = {[MPOL_DEFAULT] = POLICY_NEAR,
				    [MPOL_PREFERRED] = POLICY_PREFER,
				    [MPOL_BIND] = POLICY_BIND,
				    [MPOL_INTERLEAVE] = POLICY_INTERLEAVE,
				    [MPOL_LOCAL] = POLICY_NEAR,
				    [MPOL_PREFERRED_MANY] = POLICY_PREFER,
				    [MPOL_WEIGHTED_INTERLEAVE] = POLICY_INTERLEAVE};
	u64 nodes;
	const int err = read_nodes(from, bits, &nodes);

	mode &= ~(u64)MPOL_FLAGS;
	if (err < 0)
		return err;
	if (mode >= ARRAY_LEN(how_of))
		return -EINVAL;
	*policy = (struct memory_policy){.how = how_of[mode], .nodes = nodes};
	if (policy->how == POLICY_PREFER && nodes == 0)
		policy->how = POLICY_NEAR;
	return (policy->how == POLICY_NEAR) == (nodes == 0) ? 0 : -EINVAL;
}

s64 call_mbind(const struct call_args *args)
{
	const u64 start = args->arg[0], end = ALIGN_UP(start + args->arg[1], PAGE_SIZE);
	enum { MPOL_MF_ALL = 7 };
	struct memory_policy policy;
	const s64 err = args->arg[5] > MPOL_MF_ALL
				? -EINVAL
				: read_policy(args->arg[2], args->arg[3], args->arg[4], &policy);

	if (err < 0)
		return err;
	if (args->arg[1] == 0)
		return 0;
	if (args->arg[1] > USER_END || !mapping_range_ok(&program_space, start, end))
		return -EINVAL;
	if (space_mapped_until(&program_space, start, end) < end)
		return -EFAULT;
	return mapping_change(&program_space, start, end, &(struct area_change){.policy = &policy});
}

s64 call_set_mempolicy(const struct call_args *args)
{
	struct memory_policy policy;
	const int err = read_policy(args->arg[0], args->arg[1], args->arg[2], &policy);

	if (err == 0)
		space_here(&program_space)->policy = policy;
	return err;
}

/* The node of the page at an address, or a negative errno. Brings no page. */
static s64 node_of(user_t at)
{
	enum pt_level level;
	struct area area;
	s64 node = -ENOENT;
	pte_t pte;

	if (at < USER_START || at >= USER_END || !space_pin(&program_space, at, PT_PAGE, &area))
		return -EFAULT;
	if (pages_find(&program_space, at, &pte, &level))
		node = mm_kernel.zone[page_head(pfn_to_page(pte_pfn(pte)))->zone].node;
	space_unpin(&program_space);
	return node;
}

s64 call_get_mempolicy(const struct call_args *args)
{
	static const u32 modes[] = {[POLICY_NEAR] = MPOL_DEFAULT,
				    [POLICY_PREFER] = MPOL_PREFERRED,
				    [POLICY_BIND] = MPOL_BIND,
				    [POLICY_INTERLEAVE] = MPOL_INTERLEAVE};
	enum { F_NODE = 1, F_ADDR = 2, F_MEMS_ALLOWED = 4 };
	const u64 flags = args->arg[4], bits = args->arg[2];
	const u64 bytes = DIV_ROUND_UP(bits - 1, 64) * sizeof(u64);
	struct memory_policy policy = space_here(&program_space)->policy;
	struct area area;
	u32 mode;
	u64 nodes;

	if (flags & ~(u64)(F_NODE | F_ADDR | F_MEMS_ALLOWED) ||
	    (args->arg[1] && (bits < node_count || bytes > PAGE_SIZE)))
		return -EINVAL;
	if (flags & F_ADDR) {
		if (!area_tree_from(&program_space.tree, args->arg[3], &area) ||
		    area.start > args->arg[3])
			return -EFAULT;
		policy = area.policy;
	}
	mode = modes[policy.how];
	nodes = flags & F_MEMS_ALLOWED ? all_nodes() : policy.nodes;
	if ((flags & F_NODE) && (flags & F_ADDR)) {
		const s64 node = node_of(args->arg[3]);

		if (node < 0)
			return node == -ENOENT ? -EFAULT : node;
		mode = (u32)node;
	}
	if (args->arg[0] && user_write(args->arg[0], &mode, sizeof(mode)) < 0)
		return -EFAULT;
	if (args->arg[1] && (user_copy(COPY_ZERO, NULL, args->arg[1], bytes) < 0 ||
			     user_write(args->arg[1], &nodes, MIN(bytes, sizeof(nodes))) < 0))
		return -EFAULT;
	return 0;
}
