/*
 * The console as a file: see console_file.h. The ring holds finished lines and the line that is
 * being typed; `lock` guards it.
 *
 *	read          done          typed
 *	  | lines ... | this line ... |        numbers of bytes, which only rise
 */
#include "kernel/program/console_file.h"

#include <arch/atomic.h>
#include <arch/clock.h>
#include <arch/cpu.h>

#include "kernel/console/input.h"
#include "kernel/core/percpu.h"
#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/program/open_file.h"
#include "kernel/program/program.h"
#include "kernel/program/sleepers.h"
#include "kernel/program/thread.h"

enum { RING = 1024, LOOK_MAX = 64, ECHO_MAX = 4, PIECE = 256 };
enum { CTRL_C = 3, CTRL_D = 4, BACKSPACE = 8, CTRL_U = 21, DELETE = 127 };

static struct {
	struct spinlock lock;
	u8 ring[RING];
	u32 read, done, typed;
	u32 ends;     /* ends of file that no read has seen yet */
	bool enabled; /* input_enabled was set */
} console = {.lock = {.rank = LOCK_LEAF, .holder = CPU_NONE}};

void console_file_reset(void)
{
	spin_lock(&console.lock);
	console.read = console.done = console.typed = console.ends = 0;
	spin_unlock(&console.lock);
}

/* ---- input ---- */

/* Take the last character back, if this line has one. Returns what to echo. */
static size_t rub_out(char *said)
{
	static const char over[] = {'\b', ' ', '\b'};

	if (console.typed == console.done)
		return 0;
	console.typed--;
	memcpy(said, over, sizeof(over));
	return sizeof(over);
}

/* Handle one key under the lock. Returns the length of what to echo: `said`, ECHO_MAX at most. */
static size_t take_key(u8 key, char *said)
{
	if (key == '\r')
		key = '\n';
	if (key == BACKSPACE || key == DELETE)
		return rub_out(said);
	if (key == CTRL_D) {
		if (console.typed == console.done)
			console.ends++;
		console.done = console.typed;
		return 0;
	}
	/* the last place is kept for the end of the line */
	if ((key < ' ' && key != '\n' && key != '\t') ||
	    console.typed - console.read >= (u32)(key == '\n' ? RING : RING - 1))
		return 0;
	console.ring[console.typed++ % RING] = key;
	if (key == '\n')
		console.done = console.typed;
	said[0] = (char)key;
	return 1;
}

void console_file_key(u8 key)
{
	char said[ECHO_MAX];
	size_t length;

	if (key == CTRL_C) { /* input that the program has not read is discarded */
		spin_lock(&console.lock);
		console.done = console.typed = console.read;
		spin_unlock(&console.lock);
		program_interrupt();
		return;
	}
	do {
		spin_lock(&console.lock);
		length = key == CTRL_U ? rub_out(said) : take_key(key, said);
		spin_unlock(&console.lock);
		echo(said, length);
	} while (key == CTRL_U && length > 0);
}

struct keys_typed {
	int count;
	u8 key[LOOK_MAX];
};

/*
 * On the boot CPU, with interrupts off, because a call of another CPU may come in between. A
 * program that reads the console is a user, so input is read from then on.
 */
static void collect_keys(void *arg)
{
	struct keys_typed *keys = arg;
	const irq_flags_t flags = irq_save();

	if (!console.enabled)
		input_enabled = true;
	console.enabled = true;
	while (keys->count < LOOK_MAX) {
		const int key = input_key();

		if (key < 0)
			break;
		keys->key[keys->count++] = (u8)key;
	}
	irq_restore(flags);
}

static void look_for_keys(void)
{
	struct keys_typed keys = {0};

	if (cpu_id() == 0)
		collect_keys(&keys);
	else
		call_cpu(0, collect_keys, &keys);
	for (int i = 0; i < keys.count; i++)
		console_file_key(keys.key[i]);
}

/* Take up to `size` bytes of one line. Returns their number, 0 at the end, -EAGAIN for nothing. */
static s64 take_line(u8 *to, u64 size)
{
	s64 taken = 0;

	spin_lock(&console.lock);
	if (console.read == console.done && console.ends == 0)
		taken = -EAGAIN;
	else if (console.read == console.done)
		console.ends--;
	while (taken >= 0 && (u64)taken < size && console.read != console.done) {
		const u8 byte = console.ring[console.read++ % RING];

		to[taken++] = byte;
		if (byte == '\n')
			break;
	}
	spin_unlock(&console.lock);
	return taken;
}

static s64 console_read_line(struct file *file, struct span *to, u64 at)
{
	u8 line[PIECE];
	s64 taken;
	int err;

	if (to->total == 0)
		return 0;
	for (;;) {
		look_for_keys();
		taken = take_line(line, MIN(to->total, sizeof(line)));
		if (taken != -EAGAIN || atomic_load_relaxed(&file->flags) & OPEN_NONBLOCK)
			break;
		if (sleep_until(clock_ns() + CONSOLE_LOOK_NS) == -EINTR)
			return -EINTR;
	}
	if (taken <= 0)
		return taken;
	err = span_write(to, line, (u64)taken);
	return err ? err : taken;
}

static struct file_look console_look(struct file *file)
{
	struct file_look look = {READY_OUT, NO_EDGES, 0};

	look_for_keys();
	spin_lock(&console.lock);
	look.waiting = console.done - console.read;
	if (look.waiting > 0 || console.ends > 0)
		look.ready |= READY_IN;
	spin_unlock(&console.lock);
	return look;
}

/* ---- output ---- */

static s64 print_part(void *nothing, struct span *from, u64 at, u64 bytes)
{
	char text[PIECE];
	const u64 part = MIN(bytes, sizeof(text));
	const int err = span_read(from, text, part);

	if (err)
		return err;
	print_bytes(text, part);
	return (s64)part;
}

static s64 console_write_bytes(struct file *file, struct span *from, u64 at)
{
	return span_each(from, 0, print_part, NULL);
}

const struct file_ops console_ops = {
	.read = console_read_line,
	.write = console_write_bytes,
	.look = console_look,
	.terminal = true,
	.device = 5u << 8 | 1,
};
