/*
 * Races between threads of a program that share a pipe, an epoll file or memory: each CPU makes
 * calls as a thread, and what they must agree on afterwards is counted.
 */
#include "kernel/program/file.h"
#include "kernel/program/names.h"
#include "kernel/program/open_file.h"
#include "kernel/program/pipe.h"
#include "mm/memmap/zone.h"
#include "tests/kernel/brim.h"
#include "tests/kernel/program_memory.h"
#include "tests/kernel/random.h"
#include "tests/kernel/space_look.h"

FIXTURE(program_race, program_box_begin, program_box_end);

#define AT GIB(16)

/* ---- two writers of one place ---- */

/* One write fails after its first word, which is not in the file then, and the other succeeds. */
static void write_there(void *arg)
{
	const u64 *fd = arg;

	if (cpu_id() == 0)
		EXPECT_EQ(program_call("pwritev", *fd, ARGUMENTS, 2, 0), -EFAULT);
	else if (cpu_id() == 1)
		EXPECT_EQ(program_call("pwrite64", *fd, RESULTS + 8, 8, 0), 8);
}

TEST(program_race, a_write_that_fails_takes_nothing_from_another)
{
	const u64 vector[] = {RESULTS, 8, NOWHERE, 8};
	u64 fd;

	SKIP_ON_ONE_CPU();
	REQUIRE(program_box_second());
	EXPECT_EQ(user_write(ARGUMENTS, "x", 2), 0);
	fd = (u64)program_call("memfd_create", ARGUMENTS, 0);
	EXPECT_EQ(user_write(ARGUMENTS, vector, sizeof(vector)), 0);
	EXPECT(put(RESULTS, 1) == 0 && put(RESULTS + 8, 7) == 0);
	cpus_run_together(write_there, &fd);
	EXPECT_EQ(program_call("pread64", fd, RESULTS + 16, 16, 0), 8);
	EXPECT(get(RESULTS + 16) == 7 || get(RESULTS + 16) == 1);
}

/* A write at the end fails whole, while another one goes to a place in its reach. */
static void append_or_write(void *arg)
{
	const u64 *fd = arg;

	if (cpu_id() == 0)
		EXPECT_EQ(program_call("writev", fd[0], ARGUMENTS, 2), -EFAULT);
	else if (cpu_id() == 1)
		EXPECT_EQ(program_call("pwrite64", fd[1], RESULTS + 8, 8, PAGE_SIZE), 8);
}

TEST(program_race, a_failed_write_at_the_end_leaves_what_others_wrote_behind_it)
{
	enum { APPEND = 02000, CREATE = 0100, READ_WRITE = 2 };
	const u64 vector[] = {NOWHERE, 8, RESULTS, 2 * PAGE_SIZE};
	u64 fd[2];

	SKIP_ON_ONE_CPU();
	REQUIRE(program_box_second());
	EXPECT_EQ(user_write(ARGUMENTS, "/f", 3), 0);
	for (unsigned i = 0; i < 2; i++)
		fd[i] = (u64)program_call("open", ARGUMENTS, READ_WRITE | CREATE | (i ? 0 : APPEND),
					  0644);
	EXPECT_EQ(user_write(ARGUMENTS, vector, sizeof(vector)), 0);
	EXPECT_EQ(put(RESULTS + 8, 7), 0);
	cpus_run_together(append_or_write, fd);
	EXPECT_EQ(program_call("pread64", fd[1], RESULTS + 16, 16, PAGE_SIZE), 8);
	EXPECT_EQ(get(RESULTS + 16), 7);
}

/* ---- a pipe whose end is closed ---- */

/* Let a CPU wait in the call, close a descriptor, and expect that the call ends by itself. */
static void close_under(struct program_call *c, u64 closed)
{
	const u64 until = clock_ns() + cpu_deadline_scale() * 500 * NS_PER_MS;
	struct thread *thread;

	program_call_start(c);
	thread = thread_on(c->cpu);
	EXPECT_EQ(atomic_load_acquire(&c->done), 0);
	EXPECT_EQ(program_call("close", closed), 0);
	while (atomic_load_acquire(&c->done) == 0 && clock_ns() < until) {
		call_serve();
		cpu_relax();
	}
	EXPECT_EQ(atomic_load_acquire(&c->done), 1);
	atomic_store_relaxed(&thread->ending, true); /* it ends, whatever it waits for */
	thread_wake(thread);
	work_wait(c->cpu, 0);
	atomic_store_relaxed(&thread->ending, false);
}

static void new_pipe(int end[2])
{
	EXPECT_EQ(program_call("pipe", PROGRAM_BOX_MEMORY), 0);
	EXPECT_EQ(user_read(end, PROGRAM_BOX_MEMORY, 2 * sizeof(end[0])), 0);
}

TEST(program_race, a_closed_end_wakes_who_waits_at_the_other)
{
	const u64 buffer = PROGRAM_BOX_MEMORY + PAGE_SIZE, bytes = KIB(16);
	struct program_call reader = {.call = "read"}, writer = {.call = "write"};
	int end[2];

	SKIP_ON_ONE_CPU();
	new_pipe(end);
	memcpy(reader.arg, (u64[]){(u64)end[0], buffer, 8}, 3 * sizeof(u64));
	close_under(&reader, (u64)end[1]);
	EXPECT_EQ(reader.result, 0);
	new_pipe(end);
	for (u64 i = 0; i < PIPE_SIZE; i += bytes)
		EXPECT_EQ(program_call("write", end[1], buffer, bytes), bytes);
	memcpy(writer.arg, (u64[]){(u64)end[1], buffer, 8}, 3 * sizeof(u64));
	close_under(&writer, (u64)end[0]);
	EXPECT_EQ(writer.result, -EPIPE);
}

/* ---- epoll, while descriptors are closed and replaced ---- */

enum { FIRST = 100, WATCHED = 6, TURNS = 1500, ADD = 1, DELETE = 2, IN = 1 };

struct program_event {
	u32 events;
	u64 data;
} __packed;

struct watching {
	s64 epoll, event;
	u32 wrong;
};

static void change_watches(struct watching *w, u64 buffer, u64 *seed)
{
	const u64 descriptor = FIRST + next_random(seed) % WATCHED;
	const struct program_event event = {.events = IN, .data = descriptor * 1000};

	switch (next_random(seed) % 4) {
	case 0:
		program_call("close", descriptor);
		return;
	case 1:
		program_call("dup2", w->event, descriptor);
		return;
	case 2:
		if (user_write(buffer, &event, sizeof(event)) == 0)
			program_call("epoll_ctl", w->epoll, ADD, descriptor, buffer);
		return;
	default:
		program_call("epoll_ctl", w->epoll, DELETE, descriptor, buffer);
		return;
	}
}

static void watch_and_change(void *arg)
{
	struct watching *w = arg;
	const u64 buffer = PROGRAM_BOX_MEMORY + KIB(4) * (1 + cpu_id() % 8);
	u64 seed = 11 + cpu_id();

	if (!thread_record(cpu_id())) {
		atomic_fetch_add(&w->wrong, 1);
		return;
	}
	for (unsigned turn = 0; turn < TURNS; turn++) {
		struct program_event event[WATCHED];
		s64 found;

		change_watches(w, buffer, &seed);
		found = program_call("epoll_wait", (u64)w->epoll, buffer, WATCHED, 0);
		if (found < 0 || found > WATCHED ||
		    user_read(event, buffer, (u64)found * sizeof(event[0])) < 0) {
			atomic_fetch_add(&w->wrong, 1);
			continue;
		}
		for (s64 i = 0; i < found; i++)
			if (event[i].events != IN || event[i].data < FIRST * 1000 ||
			    event[i].data >= (FIRST + WATCHED) * 1000)
				atomic_fetch_add(&w->wrong, 1);
	}
}

TEST(program_race, an_epoll_file_reports_only_its_watches_while_files_are_closed)
{
	struct watching w = {.wrong = 0};

	w.epoll = program_call("epoll_create", 1);
	w.event = program_call("eventfd", 1); /* always ready to read */
	EXPECT(w.epoll >= 0 && w.event >= 0);
	cpus_run_together(watch_and_change, &w);
	EXPECT_EQ(w.wrong, 0);
}

/* ---- no memory, and a huge page must be cut ---- */

enum { UNMAPPED_BYTES = MIB(5), ALL_BYTES = MIB(8) };

/*
 * munmap() waits for the first area of its range, which is busy. A huge page comes at its last
 * border meanwhile, and memory is gone. It is cut all the same, and nothing is lost.
 */
TEST(program_race, a_huge_page_that_comes_meanwhile_is_cut_without_memory)
{
	const u64 huge = AT + MIB(4);
	struct program_call unmapping = {.call = "munmap", .arg = {AT, UNMAPPED_BYTES}};
	u64 from = AT, value = 5;
	struct area first;

	SKIP_ON_ONE_CPU();
	EXPECT(map_at(AT + MIB(2), ALL_BYTES, RW, FIXED) > 0);
	EXPECT_EQ(map_at(AT, MIB(2), R, FIXED), AT);
	EXPECT_EQ(space_take(&program_space, &from, AT + MIB(2), &first), 1);
	program_call_start(&unmapping);
	EXPECT_EQ(user_write(huge, &value, sizeof(value)), 0);
	brim_begin(FAIL_ALLOC, 1, FAIL_AGAIN);
	space_put_back(&program_space, &first);
	work_wait(unmapping.cpu, 0);
	brim_end();
	EXPECT_EQ(unmapping.result, 0);
	EXPECT(!space_leaf(&program_space, huge));
	EXPECT(space_mapped_until(&program_space, huge, huge + PAGE_SIZE) == huge &&
	       space_mapped_until(&program_space, huge + MIB(1), huge + MIB(2)) == huge + MIB(2));
	EXPECT_EQ(program_call("munmap", AT, 2 * ALL_BYTES), 0);
	EXPECT(!space_leaf(&program_space, huge) && !space_leaf(&program_space, huge + MIB(1)));
}

/* ---- a part of a mapping is busy ---- */

/* A call that changes a part of a mapping cuts it, but only until the call ends. */
static void expect_resized(u64 new_size, u64 flags)
{
	struct program_call resizing = {.call = "mremap", .arg = {AT, MIB(6), new_size, flags}};
	u64 from = AT + MIB(2);
	struct area part;

	EXPECT_EQ(map_at(AT, MIB(6), RW, FIXED), AT);
	EXPECT_EQ(space_take(&program_space, &from, AT + MIB(4), &part), 1);
	program_call_start(&resizing);
	space_put_back(&program_space, &part);
	work_wait(resizing.cpu, 0);
	EXPECT(resizing.result > 0);
	EXPECT_EQ(unmap((u64)resizing.result, new_size), 0);
}

TEST(program_race, a_mapping_is_resized_while_a_part_is_busy)
{
	SKIP_ON_ONE_CPU();
	expect_resized(MIB(8), MAYMOVE);
	expect_resized(MIB(5), 0);
}

TEST(program_race, a_mapping_is_moved_while_a_part_is_busy)
{
	struct program_call moving = {.call = "mremap"};
	u64 from;
	struct area part;

	SKIP_ON_ONE_CPU();
	for (unsigned down = 0; down < 2; down++) {
		const u64 to = down ? AT - MIB(8) : AT + MIB(8);

		memcpy(moving.arg, (u64[]){AT, MIB(6), MIB(6), MOVE_FIXED, to}, 5 * sizeof(u64));
		moving.begun = moving.done = 0;
		from = AT + MIB(2);
		EXPECT_EQ(map_at(AT, MIB(6), RW, FIXED), AT);
		EXPECT_EQ(put(AT + MIB(5), 5), 0);
		EXPECT_EQ(space_take(&program_space, &from, AT + MIB(4), &part), 1);
		program_call_start(&moving);
		space_put_back(&program_space, &part);
		work_wait(moving.cpu, 0);
		EXPECT_EQ(moving.result, to);
		EXPECT_EQ(get(to + MIB(5)), 5);
		EXPECT_EQ(unmap(to, MIB(6)), 0);
	}
}

/* ---- a mapping is moved while its file is cut, or gets a hole ---- */

enum { FALLOC_FL_KEEP_SIZE = 1, FALLOC_FL_PUNCH_HOLE = 2 };

struct cut_or_move {
	u64 fd, from, to;
	bool hole;
};

static void cut_or_move(void *arg)
{
	const struct cut_or_move *c = arg;

	if (cpu_id() == 0)
		EXPECT_EQ(c->hole ? program_call("fallocate", c->fd,
						 FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE,
						 PAGE_SIZE, PAGE_SIZE)
				  : program_call("ftruncate", c->fd, PAGE_SIZE),
			  0);
	else if (cpu_id() == 1)
		EXPECT_EQ(program_call("mremap", c->from, 2 * PAGE_SIZE, 2 * PAGE_SIZE, MOVE_FIXED,
				       c->to),
			  c->to);
}

/* Either the pages were in the file's shared mapping, or they are private copies. */
static void expect_second_page_gone(u64 from, u64 to, bool hole)
{
	const u64 size = 2 * PAGE_SIZE, flags = hole ? 0x11 : 0x12;
	struct cut_or_move c = {.from = from, .to = to, .hole = hole};

	c.fd = (u64)program_call("memfd_create", ARGUMENTS, 0);
	EXPECT_EQ(program_call("ftruncate", c.fd, size), 0);
	EXPECT_EQ(program_call("mmap", from, size, RW, flags, c.fd, 0), from);
	EXPECT(put(from, 1) == 0 && put(from + PAGE_SIZE, 2) == 0);
	cpus_run_together(cut_or_move, &c);
	EXPECT_EQ(get(to), 1);
	EXPECT(!space_leaf(&program_space, to + PAGE_SIZE));
	EXPECT_EQ(program_call("ftruncate", c.fd, size), 0);
	EXPECT_EQ(get(to + PAGE_SIZE), 0);
	EXPECT_EQ(unmap(to, size), 0);
	EXPECT_EQ(program_call("close", c.fd), 0);
}

TEST(program_race, no_private_copy_stays_behind_the_end_of_a_file)
{
	SKIP_ON_ONE_CPU();
	REQUIRE(program_box_second());
	EXPECT_EQ(put(ARGUMENTS, 'f'), 0);
	expect_second_page_gone(AT, AT - GIB(1), false);
	expect_second_page_gone(AT, AT + GIB(1), false);
}

TEST(program_race, a_mapping_that_moves_shows_a_hole_of_its_file)
{
	SKIP_ON_ONE_CPU();
	REQUIRE(program_box_second());
	EXPECT_EQ(put(ARGUMENTS, 'f'), 0);
	expect_second_page_gone(AT, AT - GIB(1), true);
	expect_second_page_gone(AT, AT + GIB(1), true);
}

struct cut_or_move_again {
	struct cut_or_move calls;
	const struct area *moved;
};

/* CPU 0 ends the first move and cuts the file. */
static void cut_or_move_again(void *arg)
{
	const struct cut_or_move_again *c = arg;

	if (cpu_id() == 0)
		space_put_back(&program_space, c->moved);
	cut_or_move((void *)(uintptr_t)&c->calls);
}

/* The place of the first move is busy, and shows no file yet, when the second move begins. */
TEST(program_race, no_private_copy_stays_where_a_mapping_moves_on_at_once)
{
	const u64 size = 2 * PAGE_SIZE, to = AT - GIB(1), private_fixed = 0x12;
	u64 at = AT;
	struct area moved, place;
	struct cut_or_move_again c = {.calls = {.from = AT, .to = to}, .moved = &moved};

	SKIP_ON_ONE_CPU();
	REQUIRE(program_box_second());
	EXPECT_EQ(put(ARGUMENTS, 'f'), 0);
	c.calls.fd = (u64)program_call("memfd_create", ARGUMENTS, 0);
	EXPECT_EQ(program_call("ftruncate", c.calls.fd, size), 0);
	EXPECT_EQ(program_call("mmap", AT, size, RW, private_fixed, c.calls.fd, 0), AT);
	EXPECT(put(AT, 1) == 0 && put(AT + PAGE_SIZE, 2) == 0);
	EXPECT_EQ(space_take(&program_space, &at, AT + size, &moved), 1);
	place = (struct area){.start = AT, .end = AT + size, .flags = AREA_BUSY};
	space_put_back(&program_space, &place);
	cpus_run_together(cut_or_move_again, &c);
	EXPECT_EQ(get(to), 1);
	EXPECT(!space_leaf(&program_space, to + PAGE_SIZE));
	EXPECT_EQ(unmap(to, size), 0);
	EXPECT_EQ(program_call("close", c.calls.fd), 0);
}

/* ---- a mapping loses its first page, or shows another place, while its file is cut ---- */

struct cut_or_map {
	u64 fd;
	bool again;
};

static void cut_or_map(void *arg)
{
	const u64 private_fixed = 0x12;
	const struct cut_or_map *c = arg;

	if (cpu_id() == 0) {
		EXPECT_EQ(program_call("ftruncate", c->fd, PAGE_SIZE), 0);
	} else if (cpu_id() == 1) {
		EXPECT_EQ(unmap(AT, PAGE_SIZE), 0);
		if (!c->again)
			return;
		EXPECT_EQ(program_call("mmap", AT, PAGE_SIZE, RW, private_fixed, c->fd, 0), AT);
		EXPECT_EQ(put(AT, 7), 0);
	}
}

static void cut_while_mapping(bool again)
{
	const u64 size = 3 * PAGE_SIZE, private_fixed = 0x12;
	struct cut_or_map c = {.again = again};

	SKIP_ON_ONE_CPU();
	REQUIRE(program_box_second());
	EXPECT_EQ(put(ARGUMENTS, 'f'), 0);
	c.fd = (u64)program_call("memfd_create", ARGUMENTS, 0);
	EXPECT_EQ(program_call("ftruncate", c.fd, size), 0);
	EXPECT_EQ(program_call("mmap", AT, 2 * PAGE_SIZE, RW, private_fixed, c.fd, PAGE_SIZE), AT);
	EXPECT(put(AT, 1) == 0 && put(AT + PAGE_SIZE, 2) == 0);
	cpus_run_together(cut_or_map, &c);
	EXPECT(!space_leaf(&program_space, AT + PAGE_SIZE));
	if (again)
		EXPECT_EQ(get(AT), 7);
	EXPECT_EQ(unmap(AT, 2 * PAGE_SIZE), 0);
	EXPECT_EQ(program_call("close", c.fd), 0);
}

TEST(program_race, a_cut_finds_the_rest_of_a_mapping_whose_first_page_goes)
{
	cut_while_mapping(false);
}

TEST(program_race, a_cut_leaves_what_is_mapped_meanwhile_and_stays)
{
	cut_while_mapping(true);
}

/* ---- a mapping goes while the report of a death names its file ---- */

/* A step of another CPU. */
struct step {
	u32 begin, done;
};

static u32 released;

static void note_release(struct file *file)
{
	atomic_store_release(&released, 1);
}

/* Map a file at AT. The mapping has the only reference. */
static bool map_noted(void)
{
	static const struct file_ops ops = {.release = note_release};
	struct inode *inode = inode_new(INODE_STREAM, 0600);
	struct area area = {.start = AT,
			    .end = AT + MIB(1),
			    .object = inode ? file_object(file_new(inode, &ops, OPEN_BOTH)) : NULL,
			    .rights = USER_RIGHT_READ};

	if (!area.object)
		return false;
	format(inode->label, sizeof(inode->label), "noted");
	atomic_store_relaxed(&released, 0);
	return mapping_make(&program_space, &area, MAPPING_FIXED) == (s64)AT;
}

static void die(void)
{
	struct trap_frame regs = {.rip = AT};

	signal_raise_fault(&regs, SIGSEGV, SEGV_ACCERR, AT + PAGE_SIZE);
}

static void begin_step(struct step *step)
{
	while (atomic_load_acquire(&step->begin) == 0)
		cpu_relax();
}

static void die_elsewhere(void *arg)
{
	begin_step(arg);
	die();
}

static void unmap_noted(void *arg)
{
	struct step *step = arg;

	begin_step(step);
	program_call("munmap", AT, MIB(1));
	atomic_store_release(&step->done, 1);
}

static u32 waits_begun(cpu_t cpu, enum wait_level level)
{
	return atomic_load_relaxed(&cpu_data(cpu)->waits.begun[level]);
}

/*
 * The first CPU dies and waits for the lock of the names, which this CPU holds. Only then does the
 * second CPU unmap the file. It must wait in turn.
 */
TEST(program_race, a_file_stays_while_a_report_names_it)
{
	const cpu_t first = cpus_find_other();
	struct step death = {.begin = 0}, unmapping = {.begin = 0};
	u32 before;
	bool kept;
	cpu_t second;

	if (cpumask_weight(&cpus_online) < 3)
		SKIP("needs three CPUs");
	second = cpumask_next(&cpus_online, first + 1);
	if (second == cpu_id())
		second = cpumask_next(&cpus_online, second + 1);
	wait_period_ms = 600000; /* the lock is held for as long as the host likes */
	REQUIRE(map_noted() && thread_record(first) && thread_record(second));
	REQUIRE(work_start(first, die_elsewhere, &death) == 0);
	REQUIRE(work_start(second, unmap_noted, &unmapping) == 0);
	said_begin();
	spin_lock(&names.lock);
	before = waits_begun(first, WAIT_LOCK);
	atomic_store_release(&death.begin, 1);
	while (waits_begun(first, WAIT_LOCK) == before)
		cpu_relax();
	before = waits_begun(second, WAIT_TOUCH);
	atomic_store_release(&unmapping.begin, 1);
	while (waits_begun(second, WAIT_TOUCH) == before && !atomic_load_acquire(&unmapping.done))
		cpu_relax();
	kept = !atomic_load_acquire(&released);
	spin_unlock(&names.lock);
	work_wait(first, 0);
	work_wait(second, 0);
	wait_period_ms = 0;
	said_end();
	EXPECT(kept);
	EXPECT(atomic_load_acquire(&released));
	EXPECT(said_says(" r--, noted"));
}

/* The call may wait for anything, and the area and its file are its own until then. */
TEST(program_race, a_report_leaves_an_area_alone_that_a_call_changes)
{
	struct area area;
	u64 from = AT;

	REQUIRE(map_noted());
	EXPECT_EQ(space_take(&program_space, &from, AT + MIB(1), &area), 1);
	said_begin();
	die();
	said_end();
	space_put_back(&program_space, &area);
	EXPECT(said_says("another thread is changing the memory at") && !said_says("noted"));
	EXPECT_EQ(program_box_died(), SIGSEGV);
	EXPECT_EQ(space_here(&program_space)->pin, 0);
}

/* ---- the end ---- */

enum { STATUS = 77 };

/* The first CPU ends the program; whoever sees that it has ended sees the status. */
static void end_or_see(void *arg)
{
	const u64 until = clock_ns() + cpu_deadline_scale() * 100 * NS_PER_MS;
	u32 *wrong = arg;
	int status = 0;

	if (cpu_id() == 0) {
		program_end(STATUS);
		return;
	}
	while (!program_ended(&status) && clock_ns() < until)
		cpu_relax();
	if (status != STATUS)
		atomic_fetch_add(wrong, 1);
}

TEST(program_race, the_status_is_there_with_the_end)
{
	u32 wrong = 0;
	int status;

	cpus_run_together(end_or_see, &wrong);
	EXPECT_EQ(wrong, 0);
	EXPECT(!program_end(STATUS + 1)); /* the first one counts */
	EXPECT(program_ended(&status) && status == STATUS);
}
