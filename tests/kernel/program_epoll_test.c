/* epoll, and masks of waits: kernel/program/epoll.c and poll_calls.c. */

#include "kernel/program/poll_calls.h"
#include "tests/kernel/program_box.h"

enum { ADD = 1, DELETE, CHANGE };
enum { IN = 1, OUT = 4, HANGUP = 0x10 };

#define HANDLER 0x401000ULL
#define ONCE    (1u << 30)
#define EDGES   (1u << 31)

#define BYTES  PROGRAM_BOX_MEMORY            /* what is read and written */
#define FILES  (PROGRAM_BOX_MEMORY + KIB(1)) /* descriptors of a pipe */
#define EVENT  (PROGRAM_BOX_MEMORY + KIB(2)) /* for epoll_ctl() */
#define EVENTS (PROGRAM_BOX_MEMORY + KIB(4)) /* from epoll_wait() */
#define MASKS  (PROGRAM_BOX_MEMORY + KIB(6)) /* no signal, SIGUSR1; times: 0 s, 1 s */

struct event {
	u32 events;
	u64 data;
} __packed;

struct ends {
	s32 reader, writer;
};

static struct ends new_pipe(void)
{
	struct ends made = {-1, -1};

	EXPECT_EQ(program_call("pipe", FILES), 0);
	EXPECT_EQ(user_read(&made, FILES, sizeof(made)), 0);
	return made;
}

static s64 epoll;
static struct ends ends;

/* An epoll file and a pipe. */
static bool begin(void)
{
	if (!program_box_begin())
		return false;
	epoll = program_call("epoll_create1", 0);
	ends = new_pipe();
	return epoll >= 0 && ends.reader >= 0;
}

FIXTURE(program_epoll, begin, program_box_end);

static s64 control(u64 how, s64 descriptor, u32 events)
{
	const struct event event = {events, (u64)descriptor + 1000};

	EXPECT_EQ(user_write(EVENT, &event, sizeof(event)), 0);
	return program_call("epoll_ctl", epoll, how, descriptor, EVENT);
}

static s64 look(u64 most)
{
	return program_call("epoll_wait", epoll, EVENTS, most, 0);
}

/* The nth event of the last look. */
static struct event event_at(u64 n)
{
	struct event event = {0};

	EXPECT_EQ(user_read(&event, EVENTS + n * sizeof(event), sizeof(event)), 0);
	return event;
}

static s64 put(s64 descriptor, u64 bytes)
{
	return program_call("write", descriptor, BYTES, bytes);
}

TEST(program_epoll, an_edge_is_reported_once)
{
	const s64 event = program_call("eventfd2", 1, 04000);

	EXPECT_EQ(control(ADD, ends.reader, IN | EDGES), 0);
	EXPECT_EQ(control(ADD, ends.writer, OUT | EDGES), 0);
	EXPECT_EQ(control(ADD, event, IN | EDGES), 0);
	EXPECT_EQ(look(8), 2); /* what is ready when it is added is an edge */
	EXPECT_EQ(look(8), 0);
	EXPECT_EQ(put(ends.writer, 1), 1);
	EXPECT_EQ(look(8), 1);
	EXPECT_EQ(event_at(0).data, (u64)ends.reader + 1000);
	EXPECT_EQ(look(8), 0);
	EXPECT_EQ(put(ends.writer, 1), 1); /* not read yet, and an edge again */
	EXPECT_EQ(look(8), 1);
	EXPECT_EQ(look(8), 0);
	EXPECT_EQ(control(CHANGE, ends.reader, IN | EDGES), 0);
	EXPECT_EQ(look(8), 1);
	EXPECT_EQ(user_write(BYTES, &(u64){1}, 8), 0);
	EXPECT_EQ(put(event, 8), 8); /* nobody reads this event, but each write is an edge */
	EXPECT_EQ(look(8), 1);
	EXPECT_EQ(event_at(0).data, (u64)event + 1000);
	EXPECT_EQ(look(8), 0);
	EXPECT_EQ(program_call("close", ends.writer), 0);
	EXPECT_EQ(look(8), 1);
	EXPECT_EQ(event_at(0).events, IN | HANGUP);
}

TEST(program_epoll, both_ways_of_a_socket_have_edges)
{
	struct ends pair;

	EXPECT_EQ(program_call("socketpair", 1, 1, 0, FILES), 0);
	EXPECT_EQ(user_read(&pair, FILES, sizeof(pair)), 0);
	EXPECT_EQ(put(pair.reader, 1), 1);
	EXPECT_EQ(control(ADD, pair.reader, IN | OUT | EDGES), 0);
	EXPECT_EQ(look(8), 1);
	EXPECT_EQ(look(8), 0);
	EXPECT_EQ(program_call("read", pair.writer, BYTES, 1), 1); /* there is more room */
	EXPECT_EQ(look(8), 1);
	EXPECT_EQ(put(pair.writer, 1), 1); /* there is more to read */
	EXPECT_EQ(look(8), 1);
}

TEST(program_epoll, a_watch_for_one_event_is_silent_until_it_is_changed)
{

	EXPECT_EQ(control(ADD, ends.reader, IN | ONCE), 0);
	EXPECT_EQ(put(ends.writer, 1), 1);
	EXPECT_EQ(look(8), 1);
	EXPECT_EQ(look(8), 0);
	EXPECT_EQ(program_call("close", ends.writer), 0);
	EXPECT_EQ(look(8), 0);
	EXPECT_EQ(control(CHANGE, ends.reader, IN | ONCE), 0);
	EXPECT_EQ(look(8), 1);
}

TEST(program_epoll, files_that_stay_ready_are_reported_in_turn)
{
	const u64 event = (u64)program_call("eventfd2", 1, 0), writer = (u64)ends.writer;

	EXPECT_EQ(control(ADD, ends.writer, OUT), 0);
	EXPECT_EQ(control(ADD, (s64)event, IN), 0);
	for (unsigned i = 0; i < 4; i++) {
		EXPECT_EQ(look(1), 1);
		EXPECT_EQ(event_at(0).data, 1000 + (i % 2 ? event : writer));
	}
}

/* The second pipe takes the descriptors, and maybe the memory, of the first. */
TEST(program_epoll, a_closed_file_is_not_watched)
{
	struct ends again;

	EXPECT_EQ(control(ADD, ends.reader, IN), 0);
	EXPECT_EQ(program_call("close", ends.reader), 0);
	EXPECT_EQ(program_call("close", ends.writer), 0);
	again = new_pipe();
	EXPECT_EQ(again.reader, ends.reader);
	EXPECT_EQ(put(again.writer, 1), 1);
	EXPECT_EQ(look(8), 0);
	EXPECT_EQ(control(CHANGE, again.reader, IN), -ENOENT);
	EXPECT_EQ(control(ADD, again.reader, IN), 0);
	EXPECT_EQ(look(8), 1);
}

TEST(program_epoll, a_wait_has_its_own_mask)
{
	const u64 action[4] = {HANDLER, SA_RESTORER, HANDLER + 16, 0}, usr1 = signal_bit(SIGUSR1);
	const u64 open = MASKS, shut = MASKS + 8, at_once = MASKS + 16, late = MASKS + 32;
	struct trap_frame regs = {.rsp = PROGRAM_BOX_MEMORY + PROGRAM_BOX_BYTES / 2};

	EXPECT_EQ(user_write(MASKS, (u64[]){0, usr1, 0, 0, 1, 0}, 48), 0);
	EXPECT_EQ(user_write(EVENT, action, sizeof(action)), 0);
	EXPECT_EQ(program_call("rt_sigaction", SIGUSR1, EVENT, 0, 8), 0);
	EXPECT_EQ(program_call("rt_sigprocmask", 0, shut, 0, 8), 0);
	EXPECT_EQ(program_call("tgkill", program_pid(), program_pid(), SIGUSR1), 0);
	EXPECT_EQ(program_call("ppoll", 0, 0, at_once, shut, 8), 0);
	program_call_with(&regs, "ppoll", (const u64[6]){0, 0, late, open, 8});
	EXPECT_EQ(regs.rip, HANDLER);
	EXPECT_EQ(thread_current()->blocked & usr1, usr1);
	EXPECT_EQ(program_call("ppoll", 0, 0, at_once, open, 16), -EINVAL);
}

static struct look count_look(const struct question *question, bool last)
{
	++*(unsigned *)question->state;
	return (struct look){0};
}

TEST(program_epoll, a_wait_looks_again_and_again_only_for_the_console)
{
	unsigned looks = 0;
	const struct question question = {
		.look = count_look, .state = &looks, .until_ns = poll_until(50)};

	EXPECT_EQ(poll_for_masked(0, 0, &question), 0);
	EXPECT(looks <= 2); /* before the wait, and behind it */
}
