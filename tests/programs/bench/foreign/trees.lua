-- Binary trees are built, walked and dropped: the collector's work is allocating and freeing small objects. After the definition of
-- "binary-trees" in The Computer Language Benchmarks Game.
local function tree(depth)
	if depth == 0 then
		return {}
	end
	return { tree(depth - 1), tree(depth - 1) }
end

local function nodes(t)
	return t[1] and 1 + nodes(t[1]) + nodes(t[2]) or 1
end

local deepest = 13
local kept, sum, expected = tree(deepest), 0, 0

for depth = 4, deepest, 3 do
	local trees = 1 << (deepest - depth + 2)

	for _ = 1, trees do
		sum = sum + nodes(tree(depth))
	end
	expected = expected + trees * ((2 << depth) - 1)
end
assert(nodes(kept) == (2 << deepest) - 1)
assert(sum == expected)
