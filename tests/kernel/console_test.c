/*
 * Consoles: the values of console=, UARTs that answer, answer wrongly or die, the text screen and
 * its drawing on a framebuffer, and a keyboard.
 *
 * This file plays the devices: a UART is an array of registers behind two functions, and a
 * framebuffer is memory.
 */
#include <arch/memory.h>

#include "kernel/console/console.h"
#include "kernel/console/console_fb.h"
#include "kernel/console/console_keyboard.h"
#include "kernel/console/console_uart.h"
#include "kernel/console/console_wish.h"
#include "kernel/console/input.h"
#include "kernel/core/context.h"
#include "tests/kernel/scratch.h"
#include "tests/kernel/test.h"

/* ---- console= ---- */

TEST(kernel_console, wishes_are_parsed)
{
	struct console_wish wish[CONSOLE_WISHES_MAX];

	REQUIRE(console_wishes_parse("com2:57600,mmio:0xfe034000:4,port:0x3f8:9600,screen", wish) ==
		4);
	EXPECT_EQ(wish[0].kind, CON_PORT);
	EXPECT_EQ(wish[0].addr, 0x2f8);
	EXPECT_EQ(wish[0].baud, 57600);
	EXPECT_EQ(wish[1].kind, CON_MMIO);
	EXPECT_EQ(wish[1].addr, 0xfe034000);
	EXPECT_EQ(wish[1].stride, 4);
	EXPECT_EQ(wish[1].baud, 0);
	EXPECT_EQ(wish[2].addr, 0x3f8);
	EXPECT_EQ(wish[2].baud, 9600);
	EXPECT_EQ(wish[3].kind, CON_SCREEN);
}

TEST(kernel_console, wishes_that_make_no_sense_are_refused)
{
	static const char *const wrong[] = {
		"",         "com5",         "com",   "com1:",         "com1:7",
		"com1:0",   "com1,",        ",com1", "port",          "port:0",
		"port:9xz", "port:0x10000", "mmio",  "mmio:0x1000:3", "mmio:0x1000:4:",
		"screen:1", "none none",    "COM1",  "com1:230400",   "mmio:0x1ffffffffffffffff"};
	struct console_wish wish[CONSOLE_WISHES_MAX];

	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		EXPECT_EQ(console_wishes_parse(wrong[i], wish), -EINVAL);
	EXPECT_EQ(console_wishes_parse("com1,com1,com1,com1,com1,com1,com1,com1,com1", wish),
		  -E2BIG);
}

/* ---- the list ---- */

static bool swallow(struct console *console, const char *text, size_t len)
{
	return len < 10 || strcmp(console->name, "dies") != 0;
}

static int type_x(struct console *console)
{
	return 'x';
}

TEST(kernel_console, a_console_that_dies_is_dropped_and_the_others_go_on)
{
	struct console input = {.name = "input", .read = type_x};
	struct console lives = {.name = "lives", .write = swallow, .next = &input};
	struct console dies = {.name = "dies", .write = swallow, .read = type_x, .next = &lives};

	EXPECT_EQ(console_list_write(&dies, "short", 5), 0);
	EXPECT_EQ(console_list_write(&dies, "long enough", 11), 1);
	EXPECT(dies.dead && !lives.dead && !input.dead);
	EXPECT_EQ(console_list_write(&dies, "long enough", 11), 0);
	dies.next = NULL;
	EXPECT_EQ(console_list_read(&dies), -1); /* a dead console is not read, either */
	EXPECT_EQ(console_list_read(&lives), 'x');
}

/* ---- UARTs ---- */

struct toy {
	u8 reg[8];
	/* deaf: has no loopback; stuck: never becomes empty again after `room` bytes */
	bool absent, deaf, stuck;
	unsigned room, sent, divisor_writes;
	unsigned sending; /* looks at the status until the last byte has left */
	u16 divisor;
	char text[64];
};

static struct toy toy;

static u8 toy_in(const struct uart *uart, unsigned reg)
{
	if (toy.absent)
		return 0xff;
	if (reg == 5) {
		const bool looped = (toy.reg[4] & 0x10) && !toy.deaf;

		toy.sending -= toy.sending > 0;
		return (u8)((looped ? 1 : 0) | (toy.stuck && toy.sent >= toy.room ? 0 : 0x20) |
			    (toy.sending ? 0 : 0x40));
	}
	if ((toy.reg[3] & 0x80) && reg < 2)
		return (u8)(toy.divisor >> 8 * reg);
	return reg == 2 ? 0xc1 : toy.reg[reg];
}

static void toy_out(const struct uart *uart, unsigned reg, u8 value)
{
	if (toy.absent)
		return;
	if ((toy.reg[3] & 0x80) && reg < 2) {
		toy.divisor_writes++;
		toy.divisor = (u16)((toy.divisor & ~(0xff << 8 * reg)) | value << 8 * reg);
		return;
	}
	if (reg == 0 && !(toy.reg[4] & 0x10) && toy.sent < sizeof(toy.text))
		toy.text[toy.sent++] = (char)value;
	toy.reg[reg] = value;
}

static struct uart toy_uart(void)
{
	return (struct uart){.in = toy_in, .out = toy_out, .divisor = 1, .limit_ns = NS_PER_MS};
}

TEST(kernel_console, a_uart_in_use_gets_another_speed_or_the_one_that_firmware_left)
{
	struct uart uart = toy_uart();

	toy = (struct toy){.divisor = 6}; /* 19200 */
	REQUIRE(uart_start(&uart));
	EXPECT_EQ(toy.divisor, 1);
	uart_change_speed(&uart, 12);
	EXPECT_EQ(toy.divisor, 12);
	uart_change_speed(&uart, 0);
	EXPECT_EQ(toy.divisor, 6);
	EXPECT_EQ(toy.reg[3], 3); /* and data again in the place of the divisor */
}

TEST(kernel_console, the_last_byte_is_sent_before_a_reset_or_another_speed)
{
	struct uart uart = toy_uart();

	toy = (struct toy){.divisor = 6};
	REQUIRE(uart_start(&uart));
	uart.limit_ns = 1000 * NS_PER_S; /* no clock decides */
	toy.sending = 3;
	uart_drain(&uart);
	EXPECT_EQ(toy.sending, 0);
	toy.sending = 3;
	uart_change_speed(&uart, 12);
	EXPECT_EQ(toy.sending, 0);
	uart.limit_ns = NS_PER_MS;
	toy.sending = ~0U; /* a device that never ends is not waited for */
	uart_drain(&uart);
	EXPECT(toy.sending > 0);
}

TEST(kernel_console, what_is_no_uart_is_left_alone_and_a_full_one_fails)
{
	struct uart uart = toy_uart();

	toy = (struct toy){.absent = true};
	EXPECT(!uart_start(&uart));
	toy = (struct toy){.deaf = true};
	EXPECT(!uart_start(&uart));
	EXPECT_EQ(toy.sent, 0);
	uart.trusted = true; /* firmware named it, and remote consoles may lack the loopback */
	EXPECT(uart_start(&uart));
	uart = toy_uart();
	toy = (struct toy){.stuck = true, .room = 20};
	REQUIRE(uart_start(&uart));
	EXPECT(!uart.console.write(&uart.console, "0123456789012345678901234567890123456789", 40));
	EXPECT(toy.sent >= 20 && toy.sent < 42);
}

/* ---- a line that its reader holds up ---- */

static u32 line_free;    /* may the port take bytes? */
static cpu_t never_held; /* it frees the line, and may have to report or panic before */
static struct uart slow_port;

static u8 slow_in(const struct uart *uart, unsigned reg)
{
	if (reg != 5)
		return 0;
	return atomic_load_acquire(&line_free) || cpu_id() == never_held ? 0x20 : 0;
}

static void slow_out(const struct uart *uart, unsigned reg, u8 value)
{
}

/* Print as code in that context does. */
static void print_in(void *context)
{
	const u32 word = *(const u32 *)context;

	context_enter(word);
	echo("\n", 1);
	context_leave(word);
}

/* Start a CPU that prints, and return when it waits: for the port, or for the output's lock. */
static void printer_start(cpu_t cpu, u32 *context)
{
	const u32 before = atomic_load_relaxed(&cpu_data(cpu)->waits.moved[WAIT_CONSOLE]);
	struct wait wait = wait_begin(WAIT_ANSWER, "a CPU to print");

	EXPECT_EQ(work_start(cpu, print_in, context), 0);
	while (atomic_load_relaxed(&cpu_data(cpu)->waits.moved[WAIT_CONSOLE]) == before)
		wait_spin(&wait, cpu);
}

/* The line is free only after the rounds: a round that waits for the printer never ends. */
static void rounds_while_printing(u32 *context)
{
	const cpu_t one = cpus_find_other();
	struct shootdown_batch batch = {0};
	u32 plain = 0;
	cpu_t two;

	atomic_store_release(&line_free, 0);
	printer_start(one, context);
	two = cpus_find_other();
	if (two != CPU_NONE)
		printer_start(two, &plain);
	shootdown_full(SHOOTDOWN_ALL_CPUS);
	shootdown_batch_add(&batch, VMEMMAP_BASE, 1);
	if (*context <= CONTEXT_LOCKS)
		shootdown_batch_flush(&batch, SHOOTDOWN_ALL_CPUS);
	EXPECT(!work_done(one));
	atomic_store_release(&line_free, 1);
	work_wait(one, 0);
	if (two != CPU_NONE)
		work_wait(two, 0);
}

TEST(kernel_console, rounds_end_while_a_cpu_waits_for_its_line)
{
	static u32 contexts[] = {0, CONTEXT_LOCK, CONTEXT_CALL, CONTEXT_INTERRUPT};
	struct console *const others = consoles;

	SKIP_ON_ONE_CPU();
	never_held = cpu_id();
	slow_port = (struct uart){
		.in = slow_in, .out = slow_out, .trusted = true, .limit_ns = 3600 * NS_PER_S};
	REQUIRE(uart_start(&slow_port));
	slow_port.console.next = others;
	consoles = &slow_port.console;
	for (size_t i = 0; i < ARRAY_LEN(contexts); i++)
		rounds_while_printing(&contexts[i]);
	consoles = others;
}

/* ---- the text screen ---- */

static char shown[8][16];
static unsigned drawn; /* number of characters drawn */
static struct screen screen;

static void record(struct screen *s, unsigned row, unsigned first, unsigned last, const char *text)
{
	memcpy(&shown[row][first], &text[first], last - first + 1);
	drawn += last - first + 1;
}

static void screen_begin(void)
{
	screen.draw = record;
	memset(shown, ' ', sizeof(shown));
	screen_start(&screen, 10, 8);
	drawn = 0;
}

static void type(const char *text)
{
	screen.console.write(&screen.console, text, strlen(text));
}

static bool row_is(unsigned row, const char *text)
{
	char line[11] = "          ";

	memcpy(line, text, strlen(text));
	return memcmp(shown[row], line, 10) == 0;
}

TEST(kernel_console, text_wraps_and_sequences_are_obeyed_or_swallowed)
{
	screen_begin();
	type("0123456789ab\ncd\rX\tY\b\bZ\n\001");
	EXPECT(row_is(0, "0123456789") && row_is(1, "ab") && row_is(2, "Xd     ZY"));
	EXPECT(row_is(3, "?"));
	screen_begin();
	type("hello\r\033[K\033[31;1mbye\033[0m\033(x");
	EXPECT(row_is(0, "byex"));
	type("\nfoo\nbar\r\033[A\033[J");
	EXPECT(row_is(1, "foo") && row_is(2, ""));
}

TEST(kernel_console, a_full_screen_moves_up_and_ends_with_an_empty_row)
{
	screen_begin();
	type("1\n2\n3\n4\n5\n6\n7\nlong\nx");
	EXPECT(row_is(0, "2") && row_is(5, "7") && row_is(6, "long") && row_is(7, "x"));
}

/* ---- the screen on a framebuffer ---- */

enum { FB_WIDTH = 100, FB_HEIGHT = 40, FB_PITCH = 100 * 4 + 12 };

static u8 pixels[FB_HEIGHT * FB_PITCH + 16];
static struct fb_screen fb;

static struct boot_framebuffer fb_of(u8 bpp)
{
	return (struct boot_framebuffer){.addr = 1,
					 .pitch = FB_PITCH,
					 .width = FB_WIDTH,
					 .height = FB_HEIGHT,
					 .bpp = bpp,
					 .type = BOOT_FB_RGB};
}

static bool lit(unsigned x, unsigned y, unsigned bytes)
{
	u8 any = 0;

	for (unsigned i = 0; i < bytes; i++)
		any |= pixels[y * FB_PITCH + x * bytes + i];
	return any != 0;
}

/* Find the character at a place by comparing all glyphs. Returns 0 if none fits. */
static char read_glyph(unsigned column, unsigned row, unsigned bytes)
{
	for (char c = ' '; c < 0x7f; c++) {
		bool same = true;

		for (unsigned y = 0; same && y < fb.font->height; y++) {
			const u8 *bits = font_row(fb.font, c, y);

			for (unsigned x = 0; same && x < fb.font->width; x++)
				same = lit(column * fb.font->width + x, row * fb.font->height + y,
					   bytes) == (bits && bits[x / 8] >> (7 - x % 8) & 1);
		}
		if (same)
			return c;
	}
	return '\0';
}

TEST(kernel_console, what_is_drawn_can_be_read_from_the_pixels)
{
	static const u8 depth[] = {16, 24, 32};

	for (size_t i = 0; i < ARRAY_LEN(depth); i++) {
		const struct boot_framebuffer boot = fb_of(depth[i]);
		const unsigned bytes = depth[i] / 8;

		memset(pixels, 0xee, sizeof(pixels));
		REQUIRE(fb_start(&fb, &boot, pixels));
		EXPECT_EQ(fb.screen.columns, 12);
		EXPECT_EQ(fb.screen.rows, 2);
		fb.screen.console.write(&fb.screen.console, "Hi, {World}!\nq~", 15);
		for (unsigned c = 0; c < 12; c++)
			EXPECT_EQ(read_glyph(c, 0, bytes), "Hi, {World}!"[c]);
		EXPECT_EQ(read_glyph(0, 1, bytes), 'q');
		EXPECT_EQ(read_glyph(1, 1, bytes), '~');
		/* the bytes between two lines are not ours */
		EXPECT_EQ(pixels[FB_WIDTH * bytes], 0xee);
		EXPECT_EQ(pixels[fb_size(&boot)], 0xee);
		/* beside the text the screen is clear */
		EXPECT(!lit(FB_WIDTH - 1, FB_HEIGHT - 1, bytes));
	}
}

enum { CODE_SCALE = 2, CODE_SIDE = CODE_SCALE * (QR_SIDE + 2 * QR_QUIET), CODE_LINE = 200 * 4 };

static u8 *code_pixels;

static bool code_lit(unsigned x, unsigned y, unsigned bytes)
{
	return code_pixels[y * CODE_LINE + x * bytes] != 0;
}

TEST(kernel_console, a_code_is_drawn_in_its_margin_and_text_comes_back)
{
	static const u8 depth[] = {16, 24, 32};
	const unsigned width = CODE_SIDE + 40, height = CODE_SIDE + 7;
	static struct qr qr;

	code_pixels = SCRATCH(u8, (CODE_SIDE + 7) * CODE_LINE);
	REQUIRE(qr_encode("bytes", 5, &qr));
	for (size_t i = 0; i < ARRAY_LEN(depth); i++) {
		const struct boot_framebuffer boot = {.addr = 1,
						      .pitch = CODE_LINE,
						      .width = width,
						      .height = height,
						      .bpp = depth[i],
						      .type = BOOT_FB_RGB};
		const unsigned bytes = depth[i] / 8;
		unsigned wrong = 0;

		REQUIRE(fb_start(&fb, &boot, code_pixels));
		fb.screen.console.write(&fb.screen.console, "text", 4);
		EXPECT(code_lit(2, 5, bytes) || code_lit(3, 5, bytes) || code_lit(3, 6, bytes));
		fb.screen.console.show(&fb.screen.console, &qr);
		for (unsigned y = 0; y < height; y++) {
			for (unsigned x = 0; x < width; x++) {
				/* 4 modules of margin; the rest of the screen is dark */
				const unsigned row = (y - 3) / CODE_SCALE,
					       col = (x - 20) / CODE_SCALE;
				const bool code =
					y >= 3 && x >= 20 && row < QR_SIDE + 8 && col < QR_SIDE + 8;
				const bool dark = code && row >= 4 && col >= 4 &&
						  row < QR_SIDE + 4 && col < QR_SIDE + 4 &&
						  qr.module[row - 4][col - 4];

				wrong += code_lit(x, y, bytes) != (code && !dark);
			}
		}
		EXPECT_EQ(wrong, 0);
		fb.screen.console.show(&fb.screen.console, NULL);
		fb.screen.console.write(&fb.screen.console, "\r", 1);
		wrong = 0;
		for (unsigned y = 0; y < height; y++)
			for (unsigned x = 0; x < width; x++)
				wrong += code_lit(x, y, bytes) && (y >= 16 || x >= 32);
		EXPECT_EQ(wrong, 0);
		EXPECT(code_lit(2, 5, bytes) || code_lit(3, 5, bytes) || code_lit(3, 6, bytes));
	}
}

TEST(kernel_console, at_the_end_only_screens_go_on)
{
	struct console serial = {.name = "lives", .write = swallow, .read = type_x};
	struct console picture = {
		.name = "lives", .write = swallow, .columns = 80, .next = &serial};
	struct console *const machine = consoles;
	bool alone, both;

	consoles = &serial;
	alone = console_screens_only();
	EXPECT(serial.write == swallow);
	consoles = &picture;
	both = console_screens_only();
	EXPECT_EQ(console_show(NULL), 0);
	consoles = machine;
	EXPECT(!alone && both && picture.write == swallow && !serial.write && serial.read);
}

TEST(kernel_console, framebuffers_that_cannot_be_are_refused)
{
	static const struct {
		u32 pitch, width, height;
		u8 bpp;
	} bad[] = {
		{FB_WIDTH * 4 - 1, FB_WIDTH, FB_HEIGHT, 32},
		{FB_PITCH, FB_WIDTH, FB_HEIGHT, 8},
		{FB_PITCH, FB_WIDTH, 0, 32},
		{FB_PITCH, 0xffffffff, FB_HEIGHT, 32},
	};
	struct boot_framebuffer boot = fb_of(32);

	EXPECT_EQ(fb_size(&boot), (u64)FB_PITCH * (FB_HEIGHT - 1) + FB_WIDTH * 4);
	boot.width = 4; /* narrower than a character */
	EXPECT(!fb_start(&fb, &boot, pixels));
	for (unsigned i = 0; i < ARRAY_LEN(bad); i++) {
		boot = fb_of(bad[i].bpp);
		boot.pitch = bad[i].pitch;
		boot.width = bad[i].width;
		boot.height = bad[i].height;
		EXPECT_EQ(fb_size(&boot), 0);
	}
}

/* ---- the keyboard ---- */

static bool keys_type(const u8 *codes, size_t n, const char *text)
{
	struct keyboard keyboard = {0};
	char out[64];
	size_t len = 0;

	for (size_t i = 0; i < n && len < sizeof(out) - KEY_BYTES_MAX; i++)
		len += keyboard_decode(&keyboard, codes[i], out + len);
	return len == strlen(text) && memcmp(out, text, len) == 0;
}

TEST(kernel_console, keys_become_bytes)
{
	/* H i 1 ! enter */
	static const u8 word[] = {0x2a, 0x23, 0xa3, 0xaa, 0x17, 0x97, 0x02, 0x2a, 0x02, 0xaa, 0x1c};
	/* ^C c */
	static const u8 control[] = {0x1d, 0x2e, 0xae, 0x9d, 0x2e};
	/* A a 1 */
	static const u8 caps[] = {0x3a, 0xba, 0x1e, 0x2a, 0x1e, 0xaa, 0x02};
	/* up, delete, space */
	static const u8 arrows[] = {0xe0, 0x2a, 0xe0, 0x48, 0xe0, 0xc8,
				    0xe0, 0xaa, 0xe0, 0x53, 0x39};
	static const u8 junk[] = {0x00, 0x7f, 0xff, 0xe1, 0x59, 0xe0, 0x5b, 0x38};

	EXPECT(keys_type(word, sizeof(word), "Hi1!\r"));
	EXPECT(keys_type(control, sizeof(control), "\003c"));
	EXPECT(keys_type(caps, sizeof(caps), "Aa1"));
	EXPECT(keys_type(arrows, sizeof(arrows), "\033[A\033[3~ "));
	EXPECT(keys_type(junk, sizeof(junk), ""));
}

/* ---- keys ---- */

static const char *typed;

static int read_typed(struct console *console)
{
	return *typed ? *typed++ : -1;
}

TEST(kernel_console, keys_typed_meanwhile_are_kept_until_ctrl_c)
{
	static struct console typist = {.name = "typist", .read = read_typed};
	struct console *const others = consoles;
	const bool was_enabled = input_enabled, was_asked = input_stop_asked();
	bool wrong;
	int keys[5];

	consoles = &typist;
	input_enabled = true;
	input_stop_clear();
	typed = "";
	while (input_key() >= 0) /* typed during an earlier case */
		;
	typed = "ab";
	wrong = input_stop_typed();
	for (unsigned i = 0; i < 3; i++)
		keys[i] = input_key();
	typed = "c\003d";
	wrong |= !input_stop_typed();
	keys[3] = input_key();
	keys[4] = input_key();
	input_stop_clear();
	if (was_asked)
		input_stop_ask();
	input_enabled = was_enabled;
	consoles = others;
	EXPECT(!wrong && keys[0] == 'a' && keys[1] == 'b' && keys[2] == -1);
	EXPECT(keys[3] == 'd' && keys[4] == -1);
}
