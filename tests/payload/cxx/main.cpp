/*
 * A program in C++: objects with constructors, variables of which each CPU has its own, and a class
 * over huge memory.
 *
 *	make run PAYLOAD=tests/payload/cxx
 *
 * There is no library, and no `operator new`: memory comes from the kernel.
 */
#include <ashlar.h>

namespace
{

void report(const char *what, bool ok)
{
	ashlar_print("  %-52s %s\n", what, ok ? "ok" : "FAILED");
	verdict_count(ok, !ok, 0);
}

/* ---- an array of huge pages that ends with its scope ---- */

template <typename Item> class HugeArray
{
      public:
	explicit HugeArray(u64 length)
	    : items(static_cast<Item *>(huge_map(length * sizeof(Item), MIB(2), 0))), count(length)
	{
	}
	~HugeArray()
	{
		if (items)
			huge_unmap(items);
	}
	HugeArray(const HugeArray &) = delete;
	HugeArray &operator=(const HugeArray &) = delete;

	explicit operator bool() const
	{
		return items;
	}
	Item &operator[](u64 at)
	{
		return items[at];
	}
	Item *begin()
	{
		return items;
	}
	Item *end()
	{
		return items + count;
	}

      private:
	Item *const items;
	const u64 count;
};

void memory()
{
	struct huge_usage usage;
	u64 sum = 0, before;

	huge_usage(&usage);
	before = usage.mapped[1];
	{
		HugeArray<u64> numbers(MIB(4) / sizeof(u64));

		if (!numbers) {
			ashlar_warn("no array: %s", reason_text(last_reason()));
		} else {
			numbers[3] = 4;
			for (const u64 number : numbers)
				sum += number;
		}
	}
	huge_usage(&usage);
	report("a class has huge memory and gives it back", sum == 4 && usage.mapped[1] == before);
}

/* ---- constructors run before payload_run(), on the boot CPU, in order ---- */

class Shape
{
      public:
	virtual unsigned corners() const = 0;

      protected:
	~Shape() = default;
};

class Square final : public Shape
{
      public:
	unsigned corners() const override
	{
		return 4;
	}
};

class Triangle final : public Shape
{
      public:
	unsigned corners() const override
	{
		return 3;
	}
};

unsigned constructed;

struct Counted {
	const cpu_t cpu = cpu_this();
	const unsigned number = ++constructed;
	page *const memory = page_alloc(0, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
};

Counted second;
__attribute__((init_priority(200))) Counted first;

void constructors()
{
	static const Square square;
	static const Triangle triangle;
	const Shape *const shapes[] = {&square, &triangle};
	unsigned corners = 0;

	report("constructors ran, in order, on the boot CPU",
	       constructed == 2 && first.number == 1 && second.number == 2 && first.cpu == 0 &&
		       first.memory && second.memory);
	for (const Shape *shape : shapes)
		corners += shape->corners();
	report("virtual functions are called", corners == 7);
	page_free(first.memory);
	page_free(second.memory);
}

/* ---- each CPU has its own ---- */

thread_local u64 sum = 1000;                /* begins with a value */
thread_local u64 parts[3];                  /* begins as zero */
thread_local cpu_t home = cpu_this() + 100; /* is found out at the first use on each CPU */
alignas(128) thread_local char line[200];

struct Sums {
	u64 total, wrong;
};

void add_chunk(u64 start, u64 end, void *arg)
{
	Sums *const sums = static_cast<Sums *>(arg);
	const u64 before = sum;

	for (u64 i = start; i < end; i++) {
		sum += i;
		parts[i % 3] += i;
		line[i % sizeof(line)] = static_cast<char>(cpu_this());
	}
	__atomic_fetch_add(&sums->total, sum - before, __ATOMIC_SEQ_CST);
	if (sum != 1000 + parts[0] + parts[1] + parts[2] || home != cpu_this() + 100 ||
	    reinterpret_cast<uintptr_t>(line) % 128 != 0)
		__atomic_fetch_add(&sums->wrong, 1, __ATOMIC_SEQ_CST);
	for (const char cpu : line)
		if (cpu != 0 && cpu != static_cast<char>(cpu_this()))
			__atomic_fetch_add(&sums->wrong, 1, __ATOMIC_SEQ_CST);
}

IRQ_HANDLER void look(void *arg)
{
	auto *const place = static_cast<u64 **>(arg);

	*place = &sum;
}

void thread_locals()
{
	constexpr u64 count = 100000;
	Sums sums = {};
	padata_mt_job job = {};
	unsigned shared = 0;

	job.thread_fn = add_chunk;
	job.arg = &sums;
	job.size = count;
	job.min_chunk = 10;
	job.max_threads = cpus_started();
	job.node = NODE_NONE;
	padata_run(&job);
	report("each CPU has its own thread-local variables",
	       sums.total == count * (count - 1) / 2 && sums.wrong == 0);
	for (cpu_t cpu = 1; cpu < cpus_known(); cpu++) {
		u64 *place = &sum;

		call_cpu(cpu, look, &place);
		shared += cpu_is_started(cpu) && place == &sum;
	}
	report("at other addresses on each CPU", shared == 0);
}
} // namespace

void payload_run(void)
{
	ashlar_print("\n");
	memory();
	constructors();
	thread_locals();
}
