-- A text of 10^5 words is made, cut into words, counted and sorted: strings of all lengths, and tables that grow.
local state = 1

local function random(n)
	state = (state * 1103515245 + 12345) % 2147483648
	return state // 65536 % n + 1
end

local words, count, order = {}, {}, {}

for i = 1, 100000 do
	words[i] = string.format("w%x", random(3000))
end
local text = table.concat(words, " ")

for word in text:gmatch("%w+") do
	count[word] = (count[word] or 0) + 1
end
for word in pairs(count) do
	order[#order + 1] = word
end
table.sort(order, function(a, b)
	return count[a] ~= count[b] and count[a] > count[b] or count[a] == count[b] and a < b
end)
assert(#order <= 3000 and #text == #(text:gsub("w", "v")))
