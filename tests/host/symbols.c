/*
 * Names of functions, static ones included, from the symbol table of the program's own file (System
 * V ABI, "Symbol Table"). The file is mapped once at start-up, so that a lookup allocates nothing
 * and may happen in any handler. The linker has just written the file, so its contents are trusted
 * and not checked.
 */
#define _GNU_SOURCE
#include <elf.h>
#include <execinfo.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "tests/host/host.h"

enum { FRAMES_MAX = 64 };

/* Start of the program's file in memory; defined by the linker. */
extern const char __ehdr_start[];

static const Elf64_Sym *symbol;
static size_t symbols;
static const char *names;

void host_symbols_init(void)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct stat st;
	const char *file;
	const Elf64_Ehdr *elf;
	const Elf64_Shdr *section;

	if (fd < 0 || fstat(fd, &st) < 0)
		return; /* the program works without names */
	file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	if (file == MAP_FAILED)
		return;
	elf = (const void *)file;
	section = (const void *)(file + elf->e_shoff);
	for (unsigned i = 0; i < elf->e_shnum; i++) {
		if (section[i].sh_type != SHT_SYMTAB)
			continue;
		symbol = (const void *)(file + section[i].sh_offset);
		symbols = section[i].sh_size / sizeof(*symbol);
		names = file + section[section[i].sh_link].sh_offset;
	}
}

const char *symbol_lookup(virt_t addr, u64 *offset)
{
	const u64 base = ((const Elf64_Ehdr *)(const void *)__ehdr_start)->e_type == ET_DYN
				 ? (virt_t)__ehdr_start
				 : 0;

	for (size_t i = 0; i < symbols; i++) {
		const Elf64_Sym *s = &symbol[i];

		if (ELF64_ST_TYPE(s->st_info) != STT_FUNC ||
		    addr - base - s->st_value >= s->st_size)
			continue;
		*offset = addr - base - s->st_value;
		return names + s->st_name;
	}
	return NULL;
}

/* backtrace(3) begins with this function's own frame; the callers follow it. */
__attribute__((noinline)) size_t backtrace_capture(virt_t *out, size_t max)
{
	void *frames[FRAMES_MAX];
	int n = backtrace(frames, FRAMES_MAX);
	size_t taken = 0;
	u64 offset;

	for (int i = 0; i < n && taken < max; i++) {
		const char *name = taken ? NULL : symbol_lookup((virt_t)frames[i], &offset);

		/* A sanitizer may have put frames of its own first. */
		if (!taken && (!name || __builtin_strcmp(name, __func__) == 0))
			continue;
		out[taken++] = (virt_t)frames[i];
	}
	return taken;
}
