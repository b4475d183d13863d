/*
 * The allocator behind the symbols of an outside benchmark harness (allocbench's peer.h). It is the
 * hosted machine on the fast backend, driven by the harness's own threads.
 *
 *   harness thread t   acts as CPU t while it is in a call; the thread that the machine has for
 *                      that CPU sleeps
 *   frame numbers      0 is the first frame of phantom RAM (tests/kernel/arena.h), which has
 *                      exactly the number of frames asked for, all free; struct pages are real, in
 *                      metadata memory of borrowed memory
 *
 * peer_init() starts the machine as kernel_main() does and returns from its payload. peer_drain()
 * may be called while no other thread is in a call, as the harness does; the sleeping threads drain
 * remote CPUs' lists.
 *
 *   make host-peer && gcc -O2 -pthread -I ALLOCBENCH ALLOCBENCH/harness.c \
 *       build/host/fast/ashlar-peer.o -o ours && ./ours 7
 */
#include <setjmp.h>

#include "mm/page/page_alloc.h"
#include "mm/page/pcp.h"
#include "mm/page/pcp_drain.h"
#include "tests/host/host.h"
#include "tests/kernel/arena.h"

#define NO_FRAME (~0UL)

extern const char *peer_name;
extern const int peer_mt;
void peer_init(unsigned long npages, int ncpu);
unsigned long peer_alloc(int cpu, unsigned order);
void peer_free(int cpu, unsigned long pfn, unsigned order);
void peer_drain(int ncpu);

const char *peer_name = "ashlar";
const int peer_mt = 1; /* may be called from several threads */

static struct mm *mm;
static pfn_t base;
static node_t node;
static jmp_buf started;

/* Replaces tests/bench/payload.c; when it is called the machine is up. */
void payload_run(void)
{
	longjmp(started, 1);
}

static void start_machine(int cpus, u64 ram)
{
	host_config.cpus = (cpu_t)cpus;
	host_config.ram = ram;
	if (setjmp(started) == 0) {
		host_machine_init();
		host_machine_run("");
	}
}

void peer_init(unsigned long npages, int ncpu)
{
	const u64 bytes = npages * PAGE_SIZE, real = arena_bytes_for(bytes);
	struct arena *a;

	start_machine(ncpu, 3 * real);
	a = arena_borrow_with(&(const struct arena_options){.bytes = real, .phantom = bytes});
	if (!a)
		host_die("no arena of %lu pages", npages);
	mm = &a->mm;
	base = a->phantom >> PAGE_SHIFT;
	node = a->options.nodes;
	arena_open_all(a);
}

static void play(int cpu)
{
	host_this_cpu = cpu_data((cpu_t)cpu);
}

unsigned long peer_alloc(int cpu, unsigned order)
{
	struct page *page;

	play(cpu);
	page = mm_page_alloc(mm, order, USE_MOVABLE, PAGE_NODE, node);
	return page ? page_to_pfn(page) - base : NO_FRAME;
}

void peer_free(int cpu, unsigned long pfn, unsigned order)
{
	(void)order; /* the page knows its order */
	play(cpu);
	mm_page_free(mm, pfn_page(mm, base + pfn));
}

void peer_drain(int ncpu)
{
	play(0);
	pcp_drain_all(mm);
}
