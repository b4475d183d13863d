/*
 * Programs that the parser takes are mapped by the real loader: the inputs of elf_fuzz
 * (tests/fuzz/corpus), and these with one lying word in a program header, each as a program and as
 * the interpreter of another. None of them is executed.
 */
#include "kernel/program/arguments.h"
#include "kernel/program/layout.h"
#include "kernel/program/program.h"
#include "kernel/program/program_space.h"
#include "kernel/program/thread.h"
#include "mm/vm/touch.h"
#include "tests/kernel/cpio_build.h"
#include "tests/kernel/test.h"

/* Each input: its size and its bytes. */
#define INPUT(name) ".quad 2f - 1f\n1: .incbin \"tests/fuzz/corpus/elf_fuzz/" #name "\"\n2:\n"
#define INPUTS                                                                                     \
	INPUT(static)                                                                              \
	INPUT(pie)                                                                                 \
	INPUT(shared_page)                                                                         \
	INPUT(symbols)                                                                             \
	INPUT(interp)                                                                              \
	INPUT(pie_straddles)                                                                       \
	INPUT(pie_beyond)                                                                          \
	INPUT(pie_wraps)                                                                           \
	INPUT(pie_aligned)                                                                         \
	INPUT(pie_without_bytes)                                                                   \
	INPUT(static_in_hole)
__asm__(".pushsection .rodata\nload_inputs:\n" INPUTS "load_inputs_end:\n.popsection\n");
extern const u8 load_inputs[], load_inputs_end[];

/* A program whose interpreter is /lib/ld. */
__asm__(".pushsection .rodata\nload_dynamic:\n.incbin \"tests/fuzz/corpus/elf_fuzz/interp\"\n"
	"load_dynamic_end:\n.popsection\n");
extern const u8 load_dynamic[], load_dynamic_end[];

/* Of the file and of its program headers. */
enum { HEADER = 64, TYPE_AT = 16, COUNT_AT = 56, PHDR = 56, VIRT_AT = 16, MEMORY_AT = 40 };
enum { ALIGN_AT = 48, EXEC = 2, DYN = 3, IMAGE_MAX = 4096 };

static const u64 lies[] = {
	0,
	PAGE_SIZE - 1,
	GIB(1),
	USER_START,
	PIE_BASE,
	USER_END - PAGE_SIZE,
	USER_END - PAGE_SIZE - PIE_BASE,
	USER_END - PIE_BASE,
	MAPPINGS_TOP - GIB(2) - PIE_BASE - PAGE_SIZE, /* the last that is taken */
	MAPPINGS_TOP - GIB(1),
	STACK_TOP - PIE_BASE,
	TIB(128) - PIE_BASE,
	TIB(256) - PIE_BASE - PAGE_SIZE,
	DIRECT_MAP_BASE,
	-PIE_BASE,
	-PAGE_SIZE,
	-1ULL,
};

static unsigned loaded;
static bool interpreted;

static bool is_programs(u64 start, u64 end)
{
	return start >= USER_START && end <= USER_END;
}

/*
 * Runs in place of the program: touch the ends of all areas. Without an interpreter, the GiB below
 * MAPPINGS_TOP is still free, for mappings.
 */
static void look_around(struct trap_frame *regs)
{
	struct area area = {.end = 0};

	while (area_tree_from(&program_space.tree, area.end, &area)) {
		EXPECT(area.start < area.end && is_programs(area.start, area.end));
		EXPECT(interpreted || area.end <= MAPPINGS_TOP - GIB(1) ||
		       area.start >= STACK_TOP - STACK_BYTES);
		space_touch(&program_space, area.start, USER_READ);
		space_touch(&program_space, area.end - 1, USER_READ);
	}
	EXPECT(is_programs(regs->rip, regs->rip + 1));
	loaded++;
}

/* Every mapping of the kernel is global, and no program may use it (<arch/pgtable.h>). */
static bool is_kernels(const pte_t *table, enum pt_level level)
{
	for (unsigned i = 0; i < PTRS_PER_TABLE; i++) {
		const pte_t pte = pte_load(&table[i]);

		if (!pte_present(pte))
			continue;
		if (level != PT_PGD && pte_is_leaf(pte, level)) {
			if (pte_user(pte) || !(pte & PTE_GLOBAL))
				return false;
		} else if (!is_kernels(pte_table(pte), level - 1)) {
			return false;
		}
	}
	return true;
}

static int run(const u8 *image, u64 size, const void *files, u64 files_size)
{
	static struct arguments args, none;

	arguments_of(&args, "hostile", 8);
	return program_run(&(struct program_request){.name = "hostile",
						     .image = image,
						     .size = size,
						     .files = files,
						     .files_size = files_size,
						     .args = &args,
						     .environment = &none});
}

/* As a program, or as the interpreter of one that runs anywhere. */
static int run_as(bool interpreter, const u8 *image, u64 size)
{
	static u8 files[2 * IMAGE_MAX], program[IMAGE_MAX];
	const size_t dynamic = (size_t)(load_dynamic_end - load_dynamic);
	size_t used;

	interpreted = interpreter;
	if (!interpreter)
		return run(image, size, NULL, 0);
	memcpy(program, load_dynamic, dynamic);
	program[TYPE_AT] = DYN;
	used = cpio_append(files, 0, "lib/ld", 0100755, image, size);
	used = cpio_append(files, used, "TRAILER!!!", 0, "", 0);
	return run(program, dynamic, files, used);
}

static void load(bool interpreter, const u8 *image, u64 size)
{
	static pte_t before[PTRS_PER_TABLE];
	const pte_t *root = phys_to_virt(pgtable_root() << PAGE_SHIFT);
	const unsigned loaded_before = loaded;
	int status;

	memcpy(before, root, sizeof(before));
	status = run_as(interpreter, image, size);
	if (loaded > loaded_before)
		EXPECT_EQ(status, 0);
	else
		EXPECT(status == -ENOEXEC || status == -ENOMEM || status == -ENOENT ||
		       status == -EEXIST);
	EXPECT(memcmp(before, root, sizeof(before)) == 0);
}

/* The word of a program header, in all ways. */
static void load_with_lies(bool interpreter, u8 *image, u64 size, size_t at)
{
	u64 truth;

	memcpy(&truth, image + at, sizeof(truth));
	for (unsigned i = 0; i < ARRAY_LEN(lies); i++) {
		const u64 lie = lies[i] + truth % PAGE_SIZE;

		memcpy(image + at, &lie, sizeof(lie));
		load(interpreter, image, size);
	}
	memcpy(image + at, &truth, sizeof(truth));
}

static void load_in_all_ways(bool interpreter, u8 *image, u64 size)
{
	static const size_t words[] = {VIRT_AT, MEMORY_AT, ALIGN_AT};

	for (unsigned type = EXEC; type <= DYN; type++) {
		image[TYPE_AT] = (u8)type;
		load(interpreter, image, size);
		for (unsigned i = 0; i < image[COUNT_AT]; i++)
			for (unsigned w = 0; w < ARRAY_LEN(words); w++)
				load_with_lies(interpreter, image, size,
					       HEADER + i * PHDR + words[w]);
	}
}

TEST(host_load, hostile_programs_change_no_table_of_the_kernel)
{
	static u8 image[IMAGE_MAX];
	unsigned inputs = 0;
	u64 size;

	loaded = 0;
	host_user_program = look_around;
	for (const u8 *at = load_inputs; at < load_inputs_end; at += size) {
		memcpy(&size, at, sizeof(size));
		at += sizeof(size);
		REQUIRE(size <= sizeof(image) && HEADER + (at + COUNT_AT)[0] * PHDR <= (int)size);
		memcpy(image, at, size);
		load_in_all_ways(false, image, size);
		load_in_all_ways(true, image, size);
		inputs++;
	}
	host_user_program = NULL;
	EXPECT(is_kernels(phys_to_virt(pgtable_root() << PAGE_SHIFT), PT_PGD));
	print("  # %u variants of %u inputs were loaded\n", loaded, inputs);
	EXPECT(loaded > inputs);
}

/* ---- an interpreter ---- */

/* The interpreter runs first, and learns where the program is and where itself. */
enum { AT_BASE = 7, AT_ENTRY = 9, AT_PHDR = 3, WORDS = 48 };

static u64 word_behind(const u64 *words, u64 key)
{
	unsigned i = 3; /* one argument */

	while (words[i] != 0)
		i++;
	for (i++; i + 1 < WORDS && words[i]; i += 2)
		if (words[i] == key)
			return words[i + 1];
	return 0;
}

static struct trap_frame started;
static u64 stack[WORDS];

static void look_at_stack(struct trap_frame *regs)
{
	started = *regs;
	EXPECT_EQ(user_read(stack, regs->rsp, sizeof(stack)), 0);
}

TEST(host_load, a_dynamic_program_starts_in_its_interpreter)
{
	static u8 files[IMAGE_MAX];
	const u64 size = (u64)(load_dynamic_end - load_dynamic);
	u64 base;
	size_t used;

	EXPECT_EQ(run(load_dynamic, size, NULL, 0), -ENOENT);
	used = cpio_append(files, 0, "lib", 0120777, "usr/lib", 7);
	used = cpio_append(files, used, "usr/lib/ld", 0100755, load_inputs, 4);
	EXPECT_EQ(run(load_dynamic, size, files, cpio_append(files, used, "TRAILER!!!", 0, "", 0)),
		  -ENOEXEC);

	/* the same file as a pie program is the interpreter; its own does not count */
	used = cpio_append(files, 0, "lib", 0120777, "usr/lib", 7);
	used = cpio_append(files, used, "usr/lib/ld", 0100755, load_dynamic, size);
	files[used - ALIGN_UP(size, 4) + TYPE_AT] = DYN;
	used = cpio_append(files, used, "TRAILER!!!", 0, "", 0);
	host_user_program = look_at_stack;
	EXPECT_EQ(run(load_dynamic, size, files, used), 0);
	host_user_program = NULL;
	base = word_behind(stack, AT_BASE);
	EXPECT_EQ(base, MAPPINGS_TOP - 0x402000);
	EXPECT_EQ(word_behind(stack, AT_ENTRY), 0x401040);
	EXPECT_EQ(word_behind(stack, AT_PHDR), 0x401040);
	EXPECT_EQ(started.rip, base + 0x401040);
}

/* ---- the end of a program with two threads ---- */

/* The first thread is told the number of the second, and ends first. */
static void end_in_turn(struct trap_frame *regs)
{
	const bool first = thread_current()->id == THREAD_FIRST_ID;
	const user_t words = regs->rsp - 8;
	u32 told[2] = {0};

	if (first) {
		const s64 id = thread_start(&(struct thread_request){
			.regs = regs, .parent_tid = words, .child_tid = words + 4});

		EXPECT(id > 0 && user_read(told, words, sizeof(told)) == 0);
		EXPECT(told[0] == id && told[1] == id);
	}
	while (!first && thread_by_id(THREAD_FIRST_ID))
		cpu_relax();
	regs->rax = 60; /* exit */
	regs->rdi = first ? 3 : 5;
	host_user_call(regs);
}

TEST(host_load, the_status_of_a_program_is_that_of_its_first_thread)
{
	SKIP_ON_ONE_CPU();
	host_user_program = end_in_turn;
	EXPECT_EQ(run(load_inputs + sizeof(u64), 512, NULL, 0), 3);
	host_user_program = NULL;
}
