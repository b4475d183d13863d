/*
 * Exceptions of C++, which unwind by tables of the program, in several threads at once; constructors
 * of statics; and thread-local objects with destructors.
 */
#include <atomic>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<int> destroyed, caught;
static std::string made_early = "made before main()";

struct counted {
	~counted()
	{
		destroyed++;
	}
};

static thread_local counted of_thread;

static int deep(int depth, int end)
{
	counted here;

	if (depth == end)
		throw std::runtime_error("depth " + std::to_string(depth));
	return deep(depth + 1, end) + 1;
}

static void catch_many(int times)
{
	(void)&of_thread;
	for (int i = 0; i < times; i++) {
		try {
			deep(0, i % 20);
		} catch (const std::runtime_error &error) {
			if (error.what() == "depth " + std::to_string(i % 20))
				caught++;
		}
	}
}

static bool passes_between_threads()
{
	std::exception_ptr passed;

	std::thread([&] {
		try {
			std::vector<int>().at(7);
		} catch (...) {
			passed = std::current_exception();
		}
	}).join();
	try {
		std::rethrow_exception(passed);
	} catch (const std::out_of_range &) {
		return true;
	}
	return false;
}

int main()
{
	std::vector<std::thread> threads;

	for (int i = 0; i < 3; i++)
		threads.emplace_back(catch_many, 100);
	for (std::thread &thread : threads)
		thread.join();
	const int objects = 3 * 5 * (20 * 21 / 2) + 3;
	printf("%s, caught %d, destroyed %d of %d\n", made_early.c_str(), caught.load(),
	       destroyed.load(), objects);
	return caught == 300 && destroyed == objects && passes_between_threads() ? 0 : 1;
}
