/*
 * What the manual pages say about the calls on memory: one statement a line, with the answer that
 * mmap(2), madvise(2) and their neighbours give. IS() has what Linux answers, BUT() also what
 * Ashlar answers instead, and why. The status is the number of lines that are unlike, and each
 * says so. Nothing that differs between two runs is printed.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PAGE  4096UL
#define MIB   (1UL << 20)
#define TIB   (1UL << 40)
#define LARGE (64 * TIB) /* more than any RAM */
#define END   0x7ffffffff000UL
#define RW    (PROT_READ | PROT_WRITE)
#define ANON  (MAP_PRIVATE | MAP_ANONYMOUS)

/* Numbers that older headers lack. */
enum {
	NOREPLACE = 0x100000,
	VALIDATE = 3,
	SYNC = 0x80000,
	GROWSDOWN = 0x01000000,
	GROWSUP = 0x02000000,
	DONTUNMAP = 4,
	WIPEONFORK = 18,
	COLD = 20,
	PAGEOUT = 21,
	POPULATE_READ = 22,
	POPULATE_WRITE = 23,
	GUARD_INSTALL = 102,
	GUARD_REMOVE = 103,
	ADD_SEALS = 1033,
	GET_SEALS = 1034,
	KEEP = 1,
	PUNCH = 3, /* with KEEP */
	UNKNOWN_FLAG = 0x200000,
};

static int here_is_ashlar, unlike, statements;

static void say(const char *statement, const char *linux_says, const char *ashlar_says,
		const char *got)
{
	const char *want = here_is_ashlar && ashlar_says ? ashlar_says : linux_says;

	statements++;
	if (strcmp(got, want) == 0) {
		printf("%s: %s\n", statement, got);
		return;
	}
	unlike++;
	printf("%s: %s UNLIKE %s\n", statement, got, want);
}

#define IS(statement, linux_says, got) say(statement, linux_says, NULL, got)
#define BUT(statement, linux_says, ashlar_says, why, got)                                          \
	say(statement, linux_says, ashlar_says, got)

/* ---- answers as text ---- */

static const char *number(long value)
{
	static char text[32];

	snprintf(text, sizeof(text), "%ld", value);
	return text;
}

static const char *error_name(int error)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {{EPERM, "EPERM"},   {EBADF, "EBADF"},           {EAGAIN, "EAGAIN"},
		     {ENOMEM, "ENOMEM"}, {EACCES, "EACCES"},         {EFAULT, "EFAULT"},
		     {EBUSY, "EBUSY"},   {EEXIST, "EEXIST"},         {ENODEV, "ENODEV"},
		     {EINVAL, "EINVAL"}, {EFBIG, "EFBIG"},           {ESPIPE, "ESPIPE"},
		     {ENOSYS, "ENOSYS"}, {EOPNOTSUPP, "EOPNOTSUPP"}, {EOVERFLOW, "EOVERFLOW"},
		     {ENOENT, "ENOENT"}, {ENOSPC, "ENOSPC"},         {ENOTTY, "ENOTTY"}};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i].number == error)
			return names[i].name;
	return number(error);
}

/* Of a call: "ok", or the name of its error. */
static const char *of(long result)
{
	return result == -1 ? error_name(errno) : "ok";
}

static const char *of_map(void *result)
{
	if (result == MAP_FAILED)
		return error_name(errno);
	return "ok";
}

/* The number that a call returns, or the name of its error. */
static const char *count(long result)
{
	return result == -1 ? error_name(errno) : number(result);
}

static const char *truth(int is)
{
	return is ? "yes" : "no";
}

/* ---- faults ---- */

static sigjmp_buf out;
static volatile int fault_signal, fault_code;
static char *volatile fault_at;

static void caught(int signal, siginfo_t *info, void *context)
{
	(void)context;
	fault_signal = signal;
	fault_code = info->si_code;
	fault_at = info->si_addr;
	siglongjmp(out, 1);
}

static const char *code_name(int signal, int code)
{
	if (code == SI_KERNEL)
		return "KERNEL";
	if (signal == SIGSEGV)
		return code == SEGV_MAPERR ? "MAPERR" : code == SEGV_ACCERR ? "ACCERR" : "?";
	if (signal == SIGBUS)
		return code == BUS_ADRERR ? "ADRERR" : "?";
	if (signal == SIGFPE)
		return code == FPE_INTDIV ? "INTDIV" : "?";
	return code == ILL_ILLOPN ? "ILLOPN" : "?";
}

/* What the access does at `at`, with the place of the fault from there on. */
static const char *access_by(void (*access)(char *), char *at)
{
	static char text[64];

	if (sigsetjmp(out, 1) == 0) {
		access(at);
		return "ok";
	}
	snprintf(text, sizeof(text), "%s %s %ld",
		 fault_signal == SIGSEGV  ? "SEGV"
		 : fault_signal == SIGBUS ? "BUS"
		 : fault_signal == SIGFPE ? "FPE"
		 : fault_signal == SIGILL ? "ILL"
					  : "TRAP",
		 code_name(fault_signal, fault_code),
		 fault_signal == SIGSEGV || fault_signal == SIGBUS ? (long)(fault_at - at) : 0L);
	return text;
}

static void do_load(char *at)
{
	(void)*(volatile char *)at;
}

static void do_store(char *at)
{
	*(volatile char *)at = 1;
}

static void do_run(char *at)
{
	((void (*)(void))(void *)at)();
}

static void do_divide(char *at)
{
	__asm__ volatile("xorl %%ecx, %%ecx; movl $1, %%eax; cltd; idivl %%ecx" ::
				 : "eax", "ecx", "edx");
	(void)at;
}

static void do_bad_opcode(char *at)
{
	__asm__ volatile("ud2");
	(void)at;
}

static void do_privileged(char *at)
{
	__asm__ volatile("hlt");
	(void)at;
}

#define LOAD(at)  access_by(do_load, at)
#define STORE(at) access_by(do_store, at)

/* ---- memory and files ---- */

static void *map(void *at, unsigned long size, int rights, int flags, int fd, long offset)
{
	return (void *)syscall(SYS_mmap, at, size, rights, flags, fd, offset);
}

/* So many private pages with a hole on both sides. */
static char *pages(unsigned long n, int rights)
{
	char *p = map(NULL, (n + 2) * PAGE, rights, ANON, -1, 0);

	if (p == MAP_FAILED) {
		printf("no memory for %lu pages\n", n);
		exit(1);
	}
	munmap(p, PAGE);
	munmap(p + (n + 1) * PAGE, PAGE);
	return p + PAGE;
}

static char *shared(int fd, unsigned long n, int rights)
{
	return map(NULL, n * PAGE, rights, fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED, fd, 0);
}

/* A file of n pages, each full of its number, from 1 on. */
static int file(unsigned long n, unsigned flags)
{
	const int fd = (int)syscall(SYS_memfd_create, "x", flags);
	char page[PAGE];

	for (unsigned long i = 0; i < n; i++) {
		memset(page, (int)(i + 1), PAGE);
		if (pwrite(fd, page, PAGE, (long)(i * PAGE)) != (long)PAGE)
			printf("no file\n");
	}
	return fd;
}

static int byte_of(int fd, long at)
{
	char byte = -1;

	return pread(fd, &byte, 1, at) == 1 ? byte : -1;
}

static long advise(void *at, unsigned long size, int advice)
{
	return syscall(SYS_madvise, at, size, advice);
}

static long protect(void *at, unsigned long size, int rights)
{
	return syscall(SYS_mprotect, at, size, rights);
}

static char *remap(void *from, unsigned long old_size, unsigned long new_size, int flags, void *to)
{
	return (void *)syscall(SYS_mremap, from, old_size, new_size, flags, to);
}

static const char *resident(char *at)
{
	unsigned char there = 7;

	return syscall(SYS_mincore, at, PAGE, &there) < 0 ? error_name(errno) : number(there & 1);
}

/* ---- statements ---- */

static void of_mmap(void)
{
	char *const p = pages(3, RW), *const hole = p + 3 * PAGE;
	const int memory = file(2, 0), folder = open("/tmp", O_RDONLY),
		  reader = open("/tmp/semantics", O_RDWR | O_CREAT | O_TRUNC, 0600),
		  read_only = open("/tmp/semantics", O_RDONLY),
		  write_only = open("/tmp/semantics", O_WRONLY),
		  path = open("/tmp/semantics", O_PATH), zero = open("/dev/zero", O_RDWR);
	int pipes[2];
	char *q;

	if (pipe(pipes) < 0 || ftruncate(reader, PAGE) < 0)
		return;
	IS("mmap of no bytes", "EINVAL", of_map(map(NULL, 0, RW, ANON, -1, 0)));
	IS("mmap neither shared nor private", "EINVAL",
	   of_map(map(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0)));
	IS("mmap of an unknown type", "EINVAL", of_map(map(NULL, PAGE, RW, 4, memory, 0)));
	IS("mmap anonymous, SHARED_VALIDATE", "EINVAL",
	   of_map(map(NULL, PAGE, RW, VALIDATE | MAP_ANONYMOUS, -1, 0)));
	IS("mmap, an offset inside a page", "EINVAL", of_map(map(NULL, PAGE, RW, ANON, -1, 1)));
	IS("mmap, no such descriptor", "EBADF", of_map(map(NULL, PAGE, RW, MAP_PRIVATE, -1, 0)));
	IS("mmap fixed inside a page", "EINVAL",
	   of_map(map(p + 1, PAGE, RW, ANON | MAP_FIXED, -1, 0)));
	IS("mmap fixed beyond the addresses", "ENOMEM",
	   of_map(map((void *)(128 * TIB), PAGE, RW, ANON | MAP_FIXED, -1, 0)));
	IS("mmap fixed over the last address", "ENOMEM",
	   of_map(map((void *)(END - PAGE), 2 * PAGE, RW, ANON | MAP_FIXED, -1, 0)));
	IS("mmap of more than the addresses", "ENOMEM",
	   of_map(map(NULL, 256 * TIB, PROT_NONE, ANON, -1, 0)));
	IS("mmap of all bytes", "ENOMEM", of_map(map(NULL, ~0UL, PROT_NONE, ANON, -1, 0)));
	IS("mmap NOREPLACE where something is", "EEXIST",
	   of_map(map(p + PAGE, PAGE, RW, ANON | NOREPLACE, -1, 0)));
	IS("mmap NOREPLACE in a hole", "yes",
	   truth(map(hole, PAGE, RW, ANON | NOREPLACE, -1, 0) == hole));
	munmap(hole, PAGE);
	IS("mmap with a wish that is free", "yes", truth(map(hole, PAGE, RW, ANON, -1, 0) == hole));
	munmap(hole, PAGE);
	IS("mmap with a wish inside a free page", "yes",
	   truth(map(hole + 5, PAGE, RW, ANON, -1, 0) == hole));
	munmap(hole, PAGE);
	q = map(p, PAGE, RW, ANON, -1, 0);
	IS("mmap with a wish that is taken", "yes", truth(q != MAP_FAILED && q != p));
	p[PAGE] = 5;
	IS("mmap fixed over memory", "ok",
	   of_map(map(p + PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0)));
	IS("its contents", "0", number(p[PAGE]));
	IS("mmap of a folder", "ENODEV",
	   of_map(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, folder, 0)));
	IS("mmap of a pipe", "ENODEV",
	   of_map(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, pipes[0], 0)));
	IS("mmap of a pipe's other end", "EACCES",
	   of_map(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, pipes[1], 0)));
	IS("mmap of an O_PATH file", "EBADF",
	   of_map(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, path, 0)));
	IS("mmap shared, writable, of a file to read", "EACCES",
	   of_map(map(NULL, PAGE, RW, MAP_SHARED, read_only, 0)));
	IS("mmap private, writable, of a file to read", "ok",
	   of_map(map(NULL, PAGE, RW, MAP_PRIVATE, read_only, 0)));
	IS("mmap of a file to write", "EACCES",
	   of_map(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, write_only, 0)));
	IS("mmap SHARED_VALIDATE", "ok", of_map(map(NULL, PAGE, RW, VALIDATE, memory, 0)));
	IS("mmap SHARED_VALIDATE with SYNC", "EOPNOTSUPP",
	   of_map(map(NULL, PAGE, RW, VALIDATE | SYNC, memory, 0)));
	IS("mmap SHARED_VALIDATE with an unknown flag", "EOPNOTSUPP",
	   of_map(map(NULL, PAGE, RW, VALIDATE | UNKNOWN_FLAG, memory, 0)));
	IS("mmap SHARED with an unknown flag", "ok",
	   of_map(map(NULL, PAGE, RW, MAP_SHARED | UNKNOWN_FLAG, memory, 0)));
	IS("mmap HUGETLB of a small file", "EINVAL",
	   of_map(map(NULL, PAGE, RW, MAP_SHARED | MAP_HUGETLB, memory, 0)));
	IS("mmap HUGETLB of no such size", "EINVAL",
	   of_map(map(NULL, PAGE, RW, ANON | MAP_HUGETLB | 17 << 26, -1, 0)));
	IS("mmap of the last offset", "EOVERFLOW",
	   of_map(map(NULL, PAGE, RW, MAP_SHARED, memory, -(long)PAGE)));
	q = map(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0);
	IS("mmap 32BIT is below 2 GiB", "yes", truth((unsigned long)q < 1UL << 31));
	IS("it can be used", "ok", STORE(q));
	q = map(NULL, PAGE, RW, ANON | MAP_32BIT, -1, 0);
	IS("so is the next one", "yes", truth((unsigned long)q < 1UL << 31));
	q = map((char *)0x50000000, PAGE, RW, ANON | MAP_32BIT, -1, 0);
	IS("mmap 32BIT where nothing is", "yes", truth((unsigned long)q == 0x50000000));
	q = map(q, PAGE, RW, ANON | MAP_32BIT, -1, 0);
	IS("and once more", "yes", truth((unsigned long)q < 0x50000000));
	q = map((char *)LARGE, PAGE, RW, ANON | MAP_32BIT, -1, 0);
	IS("mmap 32BIT at a high place", "yes", truth((unsigned long)q < 1UL << 31));
	IS("mmap 32BIT of 2 GiB", "ENOMEM",
	   of_map(map(NULL, 1UL << 31, PROT_NONE, ANON | MAP_32BIT, -1, 0)));
	IS("mmap of /dev/zero, shared", "ok", STORE(map(NULL, PAGE, RW, MAP_SHARED, zero, 0)));
	IS("mmap of /dev/zero, private", "ok", STORE(map(NULL, PAGE, RW, MAP_PRIVATE, zero, 0)));
	IS("mmap of /dev/zero, any offset", "ok",
	   of_map(map(NULL, PAGE, RW, MAP_PRIVATE, zero, (long)(PAGE << 30))));
	q = map(NULL, PAGE, PROT_NONE, ANON | MAP_POPULATE, -1, 0);
	IS("mmap POPULATE without rights", "0", resident(q));
	q = map(NULL, PAGE, RW, ANON, -1, 0);
	IS("mmap brings no page", "0", resident(q));
	q = map(NULL, PAGE, RW, ANON | MAP_POPULATE, -1, 0);
	IS("mmap POPULATE brings it", "1", resident(q));
	q = map(NULL, PAGE, RW, ANON | MAP_LOCKED, -1, 0);
	IS("mmap LOCKED brings it", "1", resident(q));
	q = map(NULL, PAGE, RW, ANON | MAP_GROWSDOWN, -1, 0);
	IS("mmap GROWSDOWN", "ok", STORE(q));
	BUT("a touch below it", "ok", "SEGV MAPERR 0", "it does not grow", STORE(q - 1));
	unlink("/tmp/semantics");
}

static void of_files(void)
{
	const int fd = file(2, 0);
	char *const p = map(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0);
	char *const own = map(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 0);

	IS("a file's first byte, mapped", "1", number(p[0]));
	p[0] = 7;
	IS("a shared byte is the file's", "7", number(byte_of(fd, 0)));
	IS("pwrite to it", "1", count(pwrite(fd, "\3", 1, 1)));
	IS("it is seen", "3", number(p[1]));
	own[PAGE] = 9;
	IS("a private byte is not the file's", "2", number(byte_of(fd, PAGE)));
	IS("behind the end", "BUS ADRERR 0", LOAD(p + 2 * PAGE));
	IS("ftruncate into a page", "ok", of(ftruncate(fd, PAGE + 100)));
	IS("before the new end", "2", number(p[PAGE + 99]));
	IS("behind it, in its page", "0", number(p[PAGE + 100]));
	p[PAGE + 100] = 1;
	IS("ftruncate to more", "ok", of(ftruncate(fd, 3 * PAGE)));
	IS("ftruncate to a page", "ok", of(ftruncate(fd, PAGE)));
	IS("a page that was cut off", "BUS ADRERR 0", LOAD(p + PAGE));
	IS("its private copy", "BUS ADRERR 0", LOAD(own + PAGE));
	IS("ftruncate to two pages", "ok", of(ftruncate(fd, 2 * PAGE)));
	IS("the page comes back as zeros", "0", number(p[PAGE]));
	p[PAGE] = 4;
	IS("and is the file's", "4", number(byte_of(fd, PAGE)));
	IS("close", "ok", of(close(fd)));
	IS("the mapping stays", "7", number(p[0]));
	IS("ftruncate to less than nothing", "EINVAL", of(ftruncate(file(0, 0), -1)));
}

static void of_munmap(void)
{
	char *const p = pages(4, RW);

	IS("munmap inside a page", "EINVAL", of(munmap(p + 1, PAGE)));
	IS("munmap of no bytes", "EINVAL", of(munmap(p, 0)));
	IS("munmap beyond the addresses", "EINVAL", of(munmap((void *)(128 * TIB), PAGE)));
	IS("munmap over all addresses", "EINVAL", of(munmap(p, -PAGE)));
	IS("munmap of a hole", "ok", of(munmap(p + 4 * PAGE, PAGE)));
	p[PAGE] = 1;
	IS("munmap of one byte", "ok", of(munmap(p + PAGE, 1)));
	IS("its whole page is gone", "SEGV MAPERR 0", LOAD(p + PAGE + 7));
	IS("the one before it is not", "ok", STORE(p));
	IS("nor the one behind it", "ok", STORE(p + 2 * PAGE));
	IS("munmap over the hole", "ok", of(munmap(p, 3 * PAGE)));
	IS("what is left", "ok", STORE(p + 3 * PAGE));
}

static void of_mprotect(void)
{
	char *const p = pages(6, RW), *const none = pages(1, PROT_NONE);
	const int fd = open("/tmp/semantics", O_RDWR | O_CREAT | O_TRUNC, 0600),
		  read_only = open("/tmp/semantics", O_RDONLY);
	char *shown;

	if (ftruncate(fd, PAGE) < 0)
		return;
	shown = map(NULL, PAGE, PROT_READ, MAP_SHARED, read_only, 0);
	IS("mprotect inside a page", "EINVAL", of(protect(p + 1, PAGE, RW)));
	IS("mprotect of no bytes", "ok", of(protect(p, 0, RW)));
	IS("mprotect of no bytes, rights unknown", "ok", of(protect(p, 0, 0x4000)));
	IS("mprotect, rights unknown", "EINVAL", of(protect(p, PAGE, 0x4000)));
	IS("mprotect SEM", "ok", of(protect(p, PAGE, RW | 8)));
	IS("mprotect GROWSDOWN of no stack", "EINVAL", of(protect(p, PAGE, RW | GROWSDOWN)));
	IS("mprotect GROWSUP", "EINVAL", of(protect(p, PAGE, RW | GROWSUP)));
	IS("mprotect GROWSUP and GROWSDOWN", "EINVAL",
	   of(protect(p, PAGE, RW | GROWSDOWN | GROWSUP)));
	IS("mprotect GROWSDOWN of the stack", "ok",
	   of(protect((void *)((unsigned long)&shown & -PAGE), PAGE, RW | GROWSDOWN)));
	IS("mprotect of a hole", "ENOMEM", of(protect(p + 6 * PAGE, PAGE, RW)));
	IS("mprotect over all addresses", "ENOMEM", of(protect(p, -PAGE, RW)));
	munmap(p + 2 * PAGE, PAGE);
	IS("mprotect over a hole", "ENOMEM", of(protect(p, 4 * PAGE, PROT_READ)));
	IS("the part before it", "SEGV ACCERR 0", STORE(p));
	IS("all of it", "SEGV ACCERR 0", STORE(p + 2 * PAGE - 1));
	IS("the part behind it", "ok", STORE(p + 3 * PAGE));
	IS("mprotect of shared memory of a file to read", "EACCES", of(protect(shown, PAGE, RW)));
	IS("its right", "SEGV ACCERR 0", STORE(shown));
	IS("mprotect of a private one", "ok",
	   of(protect(map(NULL, PAGE, PROT_READ, MAP_PRIVATE, read_only, 0), PAGE, RW)));
	IS("a load without rights", "SEGV ACCERR 0", LOAD(none));
	IS("mprotect WRITE", "ok", of(protect(none, PAGE, PROT_WRITE)));
	IS("a store to it", "ok", STORE(none));
	IS("a load from it", "ok", LOAD(none));
	IS("running it", "SEGV ACCERR 0", access_by(do_run, none));
	none[0] = (char)0xc3; /* RET */
	IS("mprotect EXEC", "ok", of(protect(none, PAGE, PROT_READ | PROT_EXEC)));
	IS("running it then", "ok", access_by(do_run, none));
	IS("a store to it then", "SEGV ACCERR 0", STORE(none));
	unlink("/tmp/semantics");
}

static void of_mremap(void)
{
	char *p = pages(4, RW), *const two = pages(2, RW), *q;
	const int fd = file(2, 0);
	char *const view = shared(fd, 2, RW), *const both = shared(-1, 1, RW);

	p[0] = 1;
	p[3 * PAGE] = 4;
	IS("mremap, unknown flag", "EINVAL", of_map(remap(p, PAGE, PAGE, 8, NULL)));
	IS("mremap FIXED alone", "EINVAL", of_map(remap(p, PAGE, PAGE, MREMAP_FIXED, two)));
	IS("mremap DONTUNMAP alone", "EINVAL", of_map(remap(p, PAGE, PAGE, DONTUNMAP, NULL)));
	IS("mremap DONTUNMAP of two sizes", "EINVAL",
	   of_map(remap(p, PAGE, 2 * PAGE, DONTUNMAP | MREMAP_MAYMOVE, NULL)));
	IS("mremap to nothing", "EINVAL", of_map(remap(p, PAGE, 0, MREMAP_MAYMOVE, NULL)));
	IS("mremap inside a page", "EINVAL",
	   of_map(remap(p + 1, PAGE, PAGE, MREMAP_MAYMOVE, NULL)));
	IS("mremap of a hole", "EFAULT",
	   of_map(remap(p - PAGE, PAGE, 2 * PAGE, MREMAP_MAYMOVE, NULL)));
	IS("mremap of more than is there", "EFAULT",
	   of_map(remap(p, 5 * PAGE, 6 * PAGE, MREMAP_MAYMOVE, NULL)));
	IS("mremap beyond the addresses", "EINVAL",
	   of_map(remap(p, PAGE, 256 * TIB, MREMAP_MAYMOVE, NULL)));
	IS("mremap onto itself", "EINVAL",
	   of_map(remap(p, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p + PAGE)));
	IS("mremap to inside a page", "EINVAL",
	   of_map(remap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, two + 1)));
	IS("mremap to beyond the addresses", "EINVAL",
	   of_map(remap(p, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(128 * TIB))));
	IS("mremap in a place without room", "ENOMEM", of_map(remap(two, PAGE, 2 * PAGE, 0, NULL)));
	IS("mremap to the same size", "yes", truth(remap(p, 4 * PAGE, 4 * PAGE, 0, NULL) == p));
	IS("mremap with room", "yes", truth(remap(two, 2 * PAGE, 3 * PAGE, 0, NULL) == two));
	IS("the new page", "0", number(two[2 * PAGE]));
	IS("mremap to less", "yes", truth(remap(two, 3 * PAGE, PAGE, 0, NULL) == two));
	IS("what was cut off", "SEGV MAPERR 0", LOAD(two + PAGE));
	q = remap(p, 4 * PAGE, 8 * PAGE, MREMAP_MAYMOVE, NULL);
	IS("mremap to more", "ok", of_map(q));
	IS("its first page", "1", number(q[0]));
	IS("its fourth page", "4", number(q[3 * PAGE]));
	IS("its last page", "0", number(q[8 * PAGE - 1]));
	p = pages(4, RW);
	IS("mremap FIXED", "yes",
	   truth(remap(q, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, p) == p));
	IS("what came", "1", number(p[0]));
	IS("what is left there", "SEGV MAPERR 0", LOAD(q));
	protect(p + PAGE, PAGE, PROT_READ);
	IS("mremap of two areas to more", "EFAULT",
	   of_map(remap(p, 2 * PAGE, 3 * PAGE, MREMAP_MAYMOVE, NULL)));
	IS("mremap of two areas to less", "yes", truth(remap(p, 3 * PAGE, PAGE, 0, NULL) == p));
	IS("the fourth page", "4", number(p[3 * PAGE]));
	q = remap(p, PAGE, PAGE, MREMAP_MAYMOVE | DONTUNMAP, NULL);
	IS("mremap DONTUNMAP", "yes", truth(q != MAP_FAILED && q != p));
	IS("what moved", "1", number(q[0]));
	IS("what it left", "0", number(p[0]));
	IS("a store there", "ok", STORE(p));
	IS("what moved stays", "1", number(q[0]));
	IS("mremap DONTUNMAP, FIXED", "yes",
	   truth(remap(q, PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED | DONTUNMAP, p) == p));
	IS("what moved there", "1", number(p[0]));
	IS("mremap of size 0, private", "EINVAL", of_map(remap(p, 0, PAGE, MREMAP_MAYMOVE, NULL)));
	q = remap(view + PAGE, 0, PAGE, MREMAP_MAYMOVE, NULL);
	IS("mremap of size 0, a file", "ok", of_map(q));
	q[1] = 8;
	IS("both show the file", "8", number(view[PAGE + 1]));
	BUT("mremap of size 0, shared memory", "ok", "EINVAL", "it has no file to show twice",
	    of_map(remap(both, 0, PAGE, MREMAP_MAYMOVE, NULL)));
}

static void of_madvise(void)
{
	char *const p = pages(5, RW), *const both = shared(-1, 2, RW);
	const int fd = file(3, 0);
	char *const view = map(NULL, 4 * PAGE, RW, MAP_SHARED, fd, 0), *const copy = map(
									       NULL, 3 * PAGE, RW,
									       MAP_PRIVATE, fd, 0);
	char *q;

	IS("madvise, unknown advice", "EINVAL", of(advise(p, PAGE, 1234)));
	IS("madvise 5", "EINVAL", of(advise(p, PAGE, 5)));
	IS("madvise inside a page", "EINVAL", of(advise(p + 1, PAGE, MADV_DONTNEED)));
	IS("madvise of no bytes", "ok", of(advise(p, 0, MADV_DONTNEED)));
	IS("madvise of no bytes, unknown advice", "EINVAL", of(advise(p, 0, 1234)));
	IS("madvise over all addresses", "EINVAL", of(advise(p, -PAGE, MADV_DONTNEED)));
	IS("madvise NORMAL", "ok", of(advise(p, PAGE, MADV_NORMAL)));
	IS("madvise RANDOM", "ok", of(advise(p, PAGE, MADV_RANDOM)));
	IS("madvise SEQUENTIAL", "ok", of(advise(p, PAGE, MADV_SEQUENTIAL)));
	IS("madvise WILLNEED", "ok", of(advise(view, PAGE, MADV_WILLNEED)));
	IS("madvise NORMAL of a hole", "ENOMEM", of(advise(p + 5 * PAGE, PAGE, MADV_NORMAL)));
	IS("madvise DONTDUMP", "ok", of(advise(p, PAGE, MADV_DONTDUMP)));
	IS("madvise DONTFORK", "ok", of(advise(p, PAGE, MADV_DONTFORK)));
	IS("madvise COLD", "ok", of(advise(p, PAGE, COLD)));
	IS("madvise PAGEOUT", "ok", of(advise(p, PAGE, PAGEOUT)));
	IS("madvise HUGEPAGE", "ok", of(advise(p, PAGE, MADV_HUGEPAGE)));
	IS("madvise NOHUGEPAGE", "ok", of(advise(p, PAGE, MADV_NOHUGEPAGE)));
	IS("madvise WIPEONFORK", "ok", of(advise(p, PAGE, WIPEONFORK)));
	IS("madvise WIPEONFORK of shared memory", "EINVAL", of(advise(both, PAGE, WIPEONFORK)));
	p[0] = p[4 * PAGE] = 6;
	munmap(p + 2 * PAGE, PAGE);
	IS("madvise DONTNEED over a hole", "ENOMEM", of(advise(p, 5 * PAGE, MADV_DONTNEED)));
	IS("before it", "0", number(p[0]));
	IS("behind it", "0", number(p[4 * PAGE]));
	p[0] = 6;
	IS("madvise FREE", "ok", of(advise(p, PAGE, MADV_FREE)));
	p[0] = 5;
	IS("a byte written after it", "5", number(p[0]));
	both[0] = 3;
	IS("madvise DONTNEED of shared memory", "ok", of(advise(both, PAGE, MADV_DONTNEED)));
	IS("its contents stay", "3", number(both[0]));
	IS("madvise FREE of shared memory", "EINVAL", of(advise(both, PAGE, MADV_FREE)));
	IS("its contents then", "3", number(both[0]));
	view[0] = 4;
	IS("madvise DONTNEED of a file", "ok", of(advise(view, PAGE, MADV_DONTNEED)));
	IS("the file's byte", "4", number(view[0]));
	copy[0] = 5;
	IS("madvise DONTNEED of a private file", "ok", of(advise(copy, PAGE, MADV_DONTNEED)));
	IS("the file's byte again", "4", number(copy[0]));
	IS("madvise FREE of a file", "EINVAL", of(advise(view, PAGE, MADV_FREE)));
	IS("madvise FREE of a private file", "EINVAL", of(advise(copy, PAGE, MADV_FREE)));
	IS("madvise REMOVE of private memory", "EINVAL", of(advise(p, PAGE, MADV_REMOVE)));
	IS("madvise REMOVE of a private file", "EACCES", of(advise(copy, PAGE, MADV_REMOVE)));
	IS("madvise REMOVE of shared memory", "ok", of(advise(both, PAGE, MADV_REMOVE)));
	IS("what is there", "0", number(both[0]));
	IS("madvise REMOVE of a file", "ok", of(advise(view + PAGE, PAGE, MADV_REMOVE)));
	IS("its mapping", "0", number(view[PAGE]));
	IS("the file", "0", number(byte_of(fd, PAGE)));
	IS("its other pages", "3", number(view[2 * PAGE]));
	view[PAGE] = 2;
	IS("a byte written there", "2", number(byte_of(fd, PAGE)));
	protect(view, PAGE, PROT_READ);
	IS("madvise REMOVE of a file through a mapping to read", "ok",
	   of(advise(view, PAGE, MADV_REMOVE)));
	IS("madvise POPULATE_READ", "ok", of(advise(p + 3 * PAGE, 2 * PAGE, POPULATE_READ)));
	IS("it brings pages", "1", resident(p + 4 * PAGE));
	IS("madvise POPULATE_READ over a hole", "ENOMEM", of(advise(p, 5 * PAGE, POPULATE_READ)));
	IS("madvise POPULATE_WRITE without the right", "EINVAL",
	   of(advise(view, PAGE, POPULATE_WRITE)));
	IS("madvise POPULATE_READ behind a file's end", "EFAULT",
	   of(advise(view + 3 * PAGE, PAGE, POPULATE_READ)));
	q = pages(1, PROT_NONE);
	IS("madvise POPULATE_READ without rights", "EINVAL", of(advise(q, PAGE, POPULATE_READ)));
	q = pages(1, RW);
	IS("madvise POPULATE_WRITE", "ok", of(advise(q, PAGE, POPULATE_WRITE)));
	IS("it brings the page", "1", resident(q));
}

/* Since Linux 6.13; of files and shared memory, since 6.15. An older one is unlike itself here. */
static void of_guards(void)
{
	char *const p = pages(6, RW), *const both = map(NULL, PAGE, RW, MAP_SHARED | MAP_ANONYMOUS,
							-1, 0);
	const int fd = file(2, 0);
	char *const copy = map(NULL, 2 * PAGE, RW, MAP_PRIVATE, fd, 0);
	char *moved;
	int pipes[2];

	if (pipe(pipes) < 0)
		return;
	p[0] = p[PAGE] = p[2 * PAGE] = p[3 * PAGE] = 7;
	IS("madvise GUARD_INSTALL", "ok", of(advise(p + PAGE, 2 * PAGE, GUARD_INSTALL)));
	IS("a load from a guard", "SEGV MAPERR 0", LOAD(p + PAGE));
	IS("a store to a guard", "SEGV MAPERR 0", STORE(p + 3 * PAGE - 1));
	IS("the page before it", "7", number(p[0]));
	IS("the page behind it", "7", number(p[3 * PAGE]));
	IS("write from a guard", "EFAULT", of(write(pipes[1], p + PAGE, 1)));
	IS("mincore of a guard", "0", resident(p + PAGE));
	IS("madvise GUARD_INSTALL over guards", "ok", of(advise(p, 3 * PAGE, GUARD_INSTALL)));
	IS("a load from the first", "SEGV MAPERR 0", LOAD(p));
	IS("madvise DONTNEED of a guard", "ok", of(advise(p, 3 * PAGE, MADV_DONTNEED)));
	IS("it stays", "SEGV MAPERR 0", LOAD(p));
	IS("mprotect of a guard", "ok", of(protect(p, 3 * PAGE, PROT_NONE)));
	IS("a load without the right", "SEGV ACCERR 0", LOAD(p));
	IS("mprotect back", "ok", of(protect(p, 3 * PAGE, RW)));
	IS("it is still there", "SEGV MAPERR 0", LOAD(p));
	IS("madvise POPULATE_READ of a guard", "EFAULT", of(advise(p, PAGE, POPULATE_READ)));
	IS("madvise POPULATE_WRITE of a guard", "EFAULT", of(advise(p, PAGE, POPULATE_WRITE)));
	IS("mlock of a guard", "ENOMEM", of(syscall(SYS_mlock, p, PAGE)));
	munlock(p, PAGE);
	moved = remap(p, 4 * PAGE, 4 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, pages(4, RW));
	IS("mremap of guards", "ok", of_map(moved));
	IS("a load from one that moved", "SEGV MAPERR 0", LOAD(moved + 2 * PAGE));
	IS("the page behind it then", "7", number(moved[3 * PAGE]));
	IS("madvise GUARD_REMOVE", "ok", of(advise(moved, 4 * PAGE, GUARD_REMOVE)));
	IS("what is there", "0", number(moved[PAGE]));
	IS("what had no guard", "7", number(moved[3 * PAGE]));
	IS("madvise GUARD_REMOVE where none is", "ok", of(advise(moved, PAGE, GUARD_REMOVE)));
	IS("madvise GUARD_INSTALL before an unmapping", "ok",
	   of(advise(moved, PAGE, GUARD_INSTALL)));
	map(moved, PAGE, RW, ANON | MAP_FIXED, -1, 0);
	IS("the new mapping", "0", number(moved[0]));
	munmap(moved + PAGE, PAGE);
	IS("madvise GUARD_INSTALL over a hole", "ENOMEM",
	   of(advise(moved, 3 * PAGE, GUARD_INSTALL)));
	IS("behind it", "SEGV MAPERR 0", LOAD(moved + 2 * PAGE));
	IS("madvise GUARD_INSTALL inside a page", "EINVAL",
	   of(advise(moved + 1, PAGE, GUARD_INSTALL)));
	IS("madvise GUARD_INSTALL of no bytes", "ok", of(advise(moved, 0, GUARD_INSTALL)));
	copy[PAGE] = 9;
	IS("madvise GUARD_INSTALL of a private file", "ok",
	   of(advise(copy, 2 * PAGE, GUARD_INSTALL)));
	ftruncate(fd, PAGE);
	IS("a guard behind the file's end", "SEGV MAPERR 0", LOAD(copy + PAGE));
	ftruncate(fd, 2 * PAGE);
	advise(copy, 2 * PAGE, GUARD_REMOVE);
	IS("the file's first byte", "1", number(copy[0]));
	IS("its second page, which was cut off", "0", number(copy[PAGE]));
	BUT("madvise GUARD_INSTALL of shared memory", "ok", "EINVAL", "what it has would be gone",
	    of(advise(both, PAGE, GUARD_INSTALL)));
}

static void of_other_calls(void)
{
	char *const p = pages(3, RW), *const none = pages(1, PROT_NONE);
	unsigned char there[8];

	munmap(p + PAGE, PAGE);
	p[0] = 1;
	IS("msync", "ok", of(msync(p, PAGE, MS_SYNC)));
	IS("msync, no flag", "ok", of(syscall(SYS_msync, p, PAGE, 0)));
	IS("msync, unknown flag", "EINVAL", of(syscall(SYS_msync, p, PAGE, 8)));
	IS("msync ASYNC and SYNC", "EINVAL", of(syscall(SYS_msync, p, PAGE, MS_ASYNC | MS_SYNC)));
	IS("msync inside a page", "EINVAL", of(msync(p + 1, PAGE, MS_SYNC)));
	IS("msync of no bytes", "ok", of(msync(p, 0, MS_SYNC)));
	IS("msync over a hole", "ENOMEM", of(msync(p, 3 * PAGE, MS_SYNC)));
	IS("mincore inside a page", "EINVAL", of(syscall(SYS_mincore, p + 1, PAGE, there)));
	IS("mincore of no bytes", "ok", of(syscall(SYS_mincore, p, 0, there)));
	IS("mincore over a hole", "ENOMEM", of(syscall(SYS_mincore, p, 3 * PAGE, there)));
	IS("mincore without a place for the answer", "EFAULT",
	   of(syscall(SYS_mincore, p, PAGE, none)));
	IS("mincore of a page", "1", resident(p));
	IS("mincore of none", "0", resident(p + 2 * PAGE));
	IS("mlock", "ok", of(syscall(SYS_mlock, p + 2 * PAGE + 5, 1)));
	IS("it brings the page", "1", resident(p + 2 * PAGE));
	IS("mlock of no bytes", "ok", of(syscall(SYS_mlock, p, 0)));
	IS("mlock over a hole", "ENOMEM", of(syscall(SYS_mlock, p, 3 * PAGE)));
	IS("mlock over all addresses", "EINVAL", of(syscall(SYS_mlock, p, -PAGE)));
	IS("mlock without rights", "ENOMEM", of(syscall(SYS_mlock, none, PAGE)));
	IS("mlock2, unknown flag", "EINVAL", of(syscall(SYS_mlock2, p, PAGE, 2)));
	IS("munlock", "ok", of(syscall(SYS_munlock, p, PAGE)));
	IS("munlock over a hole", "ENOMEM", of(syscall(SYS_munlock, p, 3 * PAGE)));
	IS("mlockall of nothing", "EINVAL", of(syscall(SYS_mlockall, 0)));
	IS("mlockall ONFAULT alone", "EINVAL", of(syscall(SYS_mlockall, 4)));
	IS("mlockall, unknown flag", "EINVAL", of(syscall(SYS_mlockall, 8)));
	IS("munlockall", "ok", of(syscall(SYS_munlockall)));
	BUT("remap_file_pages", "EINVAL", "ENOSYS", "deprecated",
	    of(syscall(SYS_remap_file_pages, p, PAGE, 0, 0, 0)));
	BUT("process_madvise, no such descriptor", "EBADF", "ENOSYS", "there is one process",
	    of(syscall(440, -1, NULL, 0, MADV_COLD, 0)));
	BUT("userfaultfd, unknown flag", "EINVAL", "ENOSYS", "nothing here needs it",
	    of(syscall(SYS_userfaultfd, 0x1000)));
	BUT("shmget of nothing", "EINVAL", "ENOSYS", "/dev/shm serves",
	    of(syscall(SYS_shmget, 0, 0, 0)));
}

static void of_policies(void)
{
	char *const p = pages(2, RW);
	unsigned long node = 1, none = 0, mask[16];
	int mode = -1;

	IS("mbind inside a page", "EINVAL", of(syscall(SYS_mbind, p + 1, PAGE, 0, NULL, 0, 0)));
	IS("mbind, unknown mode", "EINVAL", of(syscall(SYS_mbind, p, PAGE, 99, &node, 64, 0)));
	IS("mbind, unknown flag", "EINVAL", of(syscall(SYS_mbind, p, PAGE, 0, NULL, 0, 64)));
	IS("mbind BIND to no node", "EINVAL", of(syscall(SYS_mbind, p, PAGE, 2, &none, 64, 0)));
	IS("mbind DEFAULT with nodes", "EINVAL", of(syscall(SYS_mbind, p, PAGE, 0, &node, 64, 0)));
	IS("mbind of a hole", "EFAULT",
	   of(syscall(SYS_mbind, p + 2 * PAGE, PAGE, 2, &node, 64, 0)));
	IS("mbind, nodes nowhere", "EFAULT", of(syscall(SYS_mbind, p, PAGE, 2, 16, 64, 0)));
	IS("mbind BIND", "ok", of(syscall(SYS_mbind, p, PAGE, 2, &node, 64, 0)));
	IS("get_mempolicy of an address", "ok",
	   of(syscall(SYS_get_mempolicy, &mode, mask, 1024, p, 2)));
	IS("its mode", "2", number(mode));
	IS("get_mempolicy, unknown flag", "EINVAL",
	   of(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 64)));
	IS("set_mempolicy, unknown mode", "EINVAL", of(syscall(SYS_set_mempolicy, 99, NULL, 0)));
	IS("set_mempolicy BIND", "ok", of(syscall(SYS_set_mempolicy, 2, &node, 64)));
	IS("get_mempolicy", "ok", of(syscall(SYS_get_mempolicy, &mode, mask, 1024, NULL, 0)));
	IS("the thread's mode", "2", number(mode));
	IS("set_mempolicy DEFAULT", "ok", of(syscall(SYS_set_mempolicy, 0, NULL, 0)));
}

static long break_at(unsigned long at)
{
	return syscall(SYS_brk, at);
}

static void of_brk(void)
{
	const unsigned long old = (unsigned long)break_at(0), start = (old + PAGE - 1) & -PAGE;
	char *const heap = (void *)start;

	IS("brk by two pages", "yes",
	   truth(break_at(start + 2 * PAGE) == (long)(start + 2 * PAGE)));
	IS("its first byte", "0", number(heap[0]));
	heap[PAGE] = 7;
	IS("brk into a page", "yes", truth(break_at(start + 1) == (long)(start + 1)));
	IS("its page stays", "ok", STORE(heap + PAGE - 1));
	IS("the page behind it", "SEGV MAPERR 0", LOAD(heap + PAGE));
	IS("brk to more", "yes", truth(break_at(start + 2 * PAGE) == (long)(start + 2 * PAGE)));
	IS("the page is zero again", "0", number(heap[PAGE]));
	IS("brk below its beginning", "yes", truth(break_at(PAGE) == (long)(start + 2 * PAGE)));
	IS("brk of more than all RAM", "yes",
	   truth(break_at(start + 16 * TIB) == (long)(start + 2 * PAGE)));
	map(heap + 3 * PAGE, PAGE, RW, ANON | MAP_FIXED, -1, 0);
	IS("brk over a mapping", "yes",
	   truth(break_at(start + 8 * PAGE) == (long)(start + 2 * PAGE)));
	munmap(heap + 3 * PAGE, PAGE);
	break_at(old);
}

static long limit(int which, unsigned long soft)
{
	struct rlimit now;

	getrlimit(which, &now);
	now.rlim_cur = soft;
	return setrlimit(which, &now);
}

static void of_limits(void)
{
	char *const p = pages(1, RW), *none, *q;
	struct rlimit pair = {2, 1};

	IS("getrlimit of no such limit", "EINVAL", of(syscall(SYS_getrlimit, 99, &pair)));
	IS("getrlimit to nowhere", "EFAULT", of(syscall(SYS_getrlimit, RLIMIT_AS, 16)));
	IS("setrlimit, soft above hard", "EINVAL", of(syscall(SYS_setrlimit, RLIMIT_AS, &pair)));
	IS("setrlimit AS", "ok", of(limit(RLIMIT_AS, 64 * MIB)));
	IS("mmap of more", "ENOMEM", of_map(map(NULL, 64 * MIB, RW, ANON, -1, 0)));
	IS("mmap of more, without rights", "ENOMEM",
	   of_map(map(NULL, 64 * MIB, PROT_NONE, ANON, -1, 0)));
	IS("mmap of more, shared", "ENOMEM", of_map(shared(-1, 64 * MIB / PAGE, RW)));
	IS("mmap of less", "ok", of_map(map(NULL, PAGE, RW, ANON, -1, 0)));
	IS("mmap in place of another", "ok", of_map(map(p, PAGE, RW, ANON | MAP_FIXED, -1, 0)));
	IS("mremap to more", "ENOMEM", of_map(remap(p, PAGE, 64 * MIB, MREMAP_MAYMOVE, NULL)));
	IS("brk to more", "yes",
	   truth(break_at((unsigned long)break_at(0) + 64 * MIB) == break_at(0)));
	IS("setrlimit AS back", "ok", of(limit(RLIMIT_AS, RLIM_INFINITY)));
	q = map(NULL, 64 * MIB, RW, ANON, -1, 0);
	IS("mmap of more then", "ok", of_map(q));
	munmap(q, 64 * MIB);
	IS("setrlimit DATA", "ok", of(limit(RLIMIT_DATA, 32 * MIB)));
	IS("mmap of more, private", "ENOMEM", of_map(map(NULL, 64 * MIB, RW, ANON, -1, 0)));
	none = map(NULL, 64 * MIB, PROT_READ, ANON, -1, 0);
	IS("mmap of more, to read", "ok", of_map(none));
	IS("mprotect WRITE of it", "ENOMEM", of(protect(none, 64 * MIB, RW)));
	IS("its right stays", "SEGV ACCERR 0", STORE(none));
	IS("mprotect WRITE of less", "ok", of(protect(none, PAGE, RW)));
	IS("mmap of more, shared memory", "ok", of_map(shared(-1, 64 * MIB / PAGE, RW)));
	IS("brk to more", "yes",
	   truth(break_at((unsigned long)break_at(0) + 64 * MIB) == break_at(0)));
	IS("setrlimit DATA back", "ok", of(limit(RLIMIT_DATA, RLIM_INFINITY)));
}

static int has_line(const char *path, const char *name)
{
	char line[256];
	int found = 0;
	FILE *text = fopen(path, "r");

	while (text && fgets(line, sizeof(line), text))
		found |= strncmp(line, name, strlen(name)) == 0;
	if (text)
		fclose(text);
	return found;
}

static void of_overcommit(void)
{
	static const char *const lines[] = {"CommitLimit",    "Committed_AS",   "HugePages_Total",
					    "HugePages_Free", "HugePages_Rsvd", "HugePages_Surp",
					    "Hugepagesize",   "Hugetlb"};
	char *p;

	IS("overcommit_memory is 0", "yes",
	   truth(has_line("/proc/sys/vm/overcommit_memory", "0\n")));
	IS("mmap of more than all RAM", "ENOMEM", of_map(map(NULL, LARGE, RW, ANON, -1, 0)));
	IS("mmap of it, shared", "ENOMEM",
	   of_map(map(NULL, LARGE, RW, MAP_SHARED | MAP_ANONYMOUS, -1, 0)));
	p = map(NULL, LARGE, RW, ANON | MAP_NORESERVE, -1, 0);
	IS("mmap of it, NORESERVE", "ok", of_map(p));
	IS("its last byte", "ok", STORE(p + LARGE - 1));
	munmap(p, LARGE);
	p = map(NULL, LARGE, PROT_NONE, ANON, -1, 0);
	IS("mmap of it, without rights", "ok", of_map(p));
	IS("mprotect WRITE of it", "ENOMEM", of(protect(p, LARGE, RW)));
	IS("mprotect WRITE of a part", "ok", of(protect(p, MIB, RW)));
	munmap(p, LARGE);
	IS("malloc of it", "yes", truth(malloc(LARGE) == NULL));
	p = pages(1, RW);
	IS("mremap to it", "ENOMEM", of_map(remap(p, PAGE, LARGE, MREMAP_MAYMOVE, NULL)));
	for (unsigned i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		IS(lines[i], "yes", truth(has_line("/proc/meminfo", lines[i])));
}

/* There are no pages in the pools. */
static void of_huge_memfd(void)
{
	const size_t huge = 2 << 20;
	const int fd = (int)syscall(SYS_memfd_create, "x", 4);
	char *taken = map(NULL, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct stat st;
	char byte = 1;

	IS("memfd_create HUGETLB of no such size", "ENODEV",
	   of(syscall(SYS_memfd_create, "x", 4 | 17 << 26)));
	IS("memfd_create HUGETLB", "ok", of(fd));
	IS("its block size", "2097152", fstat(fd, &st) ? "-" : count(st.st_blksize));
	IS("ftruncate of a part of a huge page", "EINVAL", of(ftruncate(fd, PAGE)));
	IS("ftruncate of two huge pages", "ok", of(ftruncate(fd, 2 * huge)));
	IS("write to huge pages", "EINVAL", of(write(fd, &byte, 1)));
	IS("pread of a hole", "1", count(pread(fd, &byte, 1, huge)));
	IS("the byte read", "0", count(byte));
	IS("pread at the end", "0", count(pread(fd, &byte, 1, 2 * huge)));
	IS("fallocate without a page", "ENOSPC", of(fallocate(fd, 0, 0, huge)));
	IS("fallocate of a hole", "ok", of(fallocate(fd, 3, PAGE, huge)));
	IS("mmap at a part of a huge page", "EINVAL",
	   of_map(map(NULL, huge, RW, MAP_SHARED, fd, PAGE)));
	IS("mmap shared without a page", "ENOMEM", of_map(map(NULL, huge, RW, MAP_SHARED, fd, 0)));
	IS("mmap private without a page", "ENOMEM",
	   of_map(map(NULL, huge, RW, MAP_PRIVATE, fd, 0)));
	IS("mmap NORESERVE HUGETLB", "ok",
	   of_map(map(NULL, PAGE, RW, MAP_SHARED | MAP_NORESERVE | MAP_HUGETLB, fd, 2 * huge)));
	IS("mmap NOREPLACE HUGETLB of a taken place", "EEXIST",
	   of_map(mmap((void *)(((unsigned long)taken + huge - 1) & -huge), huge, RW,
		       MAP_SHARED | MAP_NORESERVE | MAP_FIXED_NOREPLACE, fd, 3 * huge)));
	munmap(taken, 2 * huge);
	IS("the size then", "6291456", fstat(fd, &st) ? "-" : count(st.st_size));
	close(fd);
}

static void of_memfd(void)
{
	char name[300], buf[PAGE] = {0};
	int fd, other;
	char *p;

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	IS("memfd_create, unknown flag", "EINVAL", of(syscall(SYS_memfd_create, "x", 0x4000)));
	IS("memfd_create, a long name", "EINVAL", of(syscall(SYS_memfd_create, name, 0)));
	IS("memfd_create, a name nowhere", "EFAULT", of(syscall(SYS_memfd_create, 16, 0)));
	IS("memfd_create HUGETLB, unknown flag", "EINVAL",
	   of(syscall(SYS_memfd_create, "x", 0x4004)));
	of_huge_memfd();
	fd = file(1, 0);
	IS("seals of a memfd", "1", count(fcntl(fd, GET_SEALS)));
	IS("sealing it", "EPERM", of(fcntl(fd, ADD_SEALS, 4)));
	fd = file(2, 2);
	IS("seals with ALLOW_SEALING", "0", count(fcntl(fd, GET_SEALS)));
	IS("an unknown seal", "EINVAL", of(fcntl(fd, ADD_SEALS, 0x400)));
	IS("SEAL_GROW", "ok", of(fcntl(fd, ADD_SEALS, 4)));
	IS("ftruncate to more", "EPERM", of(ftruncate(fd, 3 * PAGE)));
	IS("pwrite behind the end", "EPERM", of(pwrite(fd, "x", 1, 2 * PAGE)));
	IS("fallocate behind the end", "EPERM", of(fallocate(fd, 0, 0, 3 * PAGE)));
	IS("pwrite before the end", "1", count(pwrite(fd, "x", 1, PAGE)));
	IS("ftruncate to less", "ok", of(ftruncate(fd, PAGE)));
	IS("SEAL_SHRINK", "ok", of(fcntl(fd, ADD_SEALS, 2)));
	IS("ftruncate to less then", "EPERM", of(ftruncate(fd, 0)));
	IS("ftruncate to the same", "ok", of(ftruncate(fd, PAGE)));
	IS("seals so far", "6", count(fcntl(fd, GET_SEALS)));
	p = shared(fd, 1, RW);
	IS("SEAL_WRITE while it is mapped", "EBUSY", of(fcntl(fd, ADD_SEALS, 8)));
	munmap(p, PAGE);
	IS("SEAL_WRITE", "ok", of(fcntl(fd, ADD_SEALS, 8)));
	IS("pwrite", "EPERM", of(pwrite(fd, "x", 1, 0)));
	IS("a hole", "EPERM", of(fallocate(fd, PUNCH, 0, PAGE)));
	IS("mmap shared, writable", "EPERM", of_map(shared(fd, 1, RW)));
	IS("mmap private, writable", "ok", STORE(map(NULL, PAGE, RW, MAP_PRIVATE, fd, 0)));
	p = shared(fd, 1, PROT_READ);
	IS("mmap shared, to read", "ok", LOAD(p));
	IS("mprotect WRITE of it", "EACCES", of(protect(p, PAGE, RW)));
	IS("SEAL_SEAL", "ok", of(fcntl(fd, ADD_SEALS, 1)));
	IS("one seal more", "EPERM", of(fcntl(fd, ADD_SEALS, 16)));
	fd = file(1, 2);
	p = shared(fd, 1, RW);
	IS("SEAL_FUTURE_WRITE while it is mapped", "ok", of(fcntl(fd, ADD_SEALS, 16)));
	IS("a store to the mapping", "ok", STORE(p));
	IS("write", "EPERM", of(write(fd, buf, 1)));
	IS("mmap shared, writable, once more", "EPERM", of_map(shared(fd, 1, RW)));
	IS("seals with NOEXEC_SEAL", "32", count(fcntl(file(1, 8), GET_SEALS)));
	other = open("/dev/null", O_RDWR);
	IS("seals of a device", "EINVAL", of(fcntl(other, GET_SEALS)));
}

static void of_fallocate(void)
{
	const int fd = file(4, 0), read_only = open("/proc/self/cmdline", O_RDONLY);
	char *const p = shared(fd, 4, RW), *const own = map(NULL, 4 * PAGE, RW, MAP_PRIVATE, fd, 0);
	struct stat stat;
	int pipes[2];

	if (pipe(pipes) < 0)
		return;
	own[PAGE] = 9;
	p[PAGE] = 2;
	IS("fallocate before the beginning", "EINVAL", of(fallocate(fd, 0, -1, PAGE)));
	IS("fallocate of no bytes", "EINVAL", of(fallocate(fd, 0, 0, 0)));
	IS("fallocate, unknown mode", "EOPNOTSUPP", of(fallocate(fd, 0x400, 0, PAGE)));
	IS("a hole that changes the size", "EOPNOTSUPP", of(fallocate(fd, 2, 0, PAGE)));
	IS("fallocate, no such descriptor", "EBADF", of(fallocate(-1, 0, 0, PAGE)));
	IS("fallocate of a file to read", "EBADF", of(fallocate(read_only, 0, 0, PAGE)));
	IS("fallocate of a pipe", "ESPIPE", of(fallocate(pipes[1], 0, 0, PAGE)));
	IS("fallocate of too much", "EFBIG", of(fallocate(fd, 0, 1L << 62, 1L << 62)));
	IS("a hole", "ok", of(fallocate(fd, PUNCH, PAGE - 1, PAGE + 2)));
	IS("the byte before it", "1", number(byte_of(fd, PAGE - 2)));
	IS("its first byte", "0", number(byte_of(fd, PAGE - 1)));
	IS("its page", "0", number(byte_of(fd, PAGE)));
	IS("its last byte", "0", number(byte_of(fd, 2 * PAGE)));
	IS("the byte behind it", "3", number(byte_of(fd, 2 * PAGE + 1)));
	IS("its mapping", "0", number(p[PAGE]));
	IS("a private copy", "9", number(own[PAGE]));
	p[PAGE] = 5;
	IS("a byte stored there", "5", number(byte_of(fd, PAGE)));
	fstat(fd, &stat);
	IS("the size", "16384", number(stat.st_size));
	IS("a hole behind the end", "ok", of(fallocate(fd, PUNCH, 8 * PAGE, PAGE)));
	IS("fallocate KEEP_SIZE", "ok", of(fallocate(fd, KEEP, 0, 5 * PAGE)));
	fstat(fd, &stat);
	IS("the size then", "16384", number(stat.st_size));
	IS("fallocate", "ok", of(fallocate(fd, 0, 0, 5 * PAGE)));
	fstat(fd, &stat);
	IS("the size at last", "20480", number(stat.st_size));
	IS("the new bytes", "0", number(byte_of(fd, 4 * PAGE)));
}

static void of_copies(void)
{
	char *const p = pages(2, RW), *const none = pages(1, PROT_NONE),
		    *const low = pages(1, PROT_READ), *const only = pages(1, PROT_WRITE);
	int pipes[2];

	if (pipe(pipes) < 0)
		return;
	IS("write from a page without rights", "EFAULT", of(write(pipes[1], none, 1)));
	IS("write from a hole", "EFAULT", of(write(pipes[1], p + 2 * PAGE, 1)));
	IS("write from NULL", "EFAULT", of(write(pipes[1], (void *)8, 1)));
	IS("write from the kernel's addresses", "EFAULT", of(write(pipes[1], (void *)-8192L, 1)));
	IS("write from a page to write", "1", count(write(pipes[1], only, 1)));
	IS("read into a page to read", "EFAULT", of(read(pipes[0], low, 1)));
	IS("read into a page without rights", "EFAULT", of(read(pipes[0], none, 1)));
	BUT("pwrite up to a hole", "100", "EFAULT", "a page is copied whole",
	    count(pwrite(file(1, 0), p + 2 * PAGE - 100, 200, 0)));
	BUT("pread up to a hole", "100", "EFAULT", "likewise",
	    count(pread(file(1, 0), p + 2 * PAGE - 100, 200, 0)));
	IS("what it read", "1", number(p[2 * PAGE - 1]));
}

static void of_signals(void)
{
	char *const p = pages(1, PROT_READ);

	IS("a load from NULL", "SEGV MAPERR 0", LOAD(NULL));
	IS("a load from a hole", "SEGV MAPERR 0", LOAD(p + PAGE + 3));
	IS("a store to a page to read", "SEGV ACCERR 0", STORE(p + 9));
	IS("running a hole", "SEGV MAPERR 0", access_by(do_run, p + PAGE));
	IS("a load from the kernel's half", "SEGV MAPERR 0", LOAD((char *)0xffff888000001000));
	IS("a store to its last page", "SEGV MAPERR 0", STORE((char *)-100L));
	IS("a load from the last page of the lower half", "SEGV MAPERR 0", LOAD((char *)END + 8));
	fault_at = NULL;
	access_by(do_load, (char *)0x1234567812345678);
	IS("a load from no address", "yes",
	   truth(fault_signal == SIGSEGV && fault_code == SI_KERNEL && !fault_at));
	access_by(do_privileged, NULL);
	IS("a privileged instruction", "yes",
	   truth(fault_signal == SIGSEGV && fault_code == SI_KERNEL && !fault_at));
	IS("a division by zero", "FPE INTDIV 0", access_by(do_divide, NULL));
	IS("an unknown instruction", "ILL ILLOPN 0", access_by(do_bad_opcode, NULL));
}

int main(void)
{
	static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
	const struct sigaction action = {.sa_sigaction = caught, .sa_flags = SA_SIGINFO};
	struct utsname names;

	uname(&names);
	here_is_ashlar = strstr(names.release, "ashlar") != NULL;
	for (unsigned i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		sigaction(signals[i], &action, NULL);
	of_mmap();
	of_files();
	of_munmap();
	of_mprotect();
	of_mremap();
	of_madvise();
	of_guards();
	of_other_calls();
	of_policies();
	of_brk();
	of_limits();
	of_overcommit();
	of_memfd();
	of_fallocate();
	of_copies();
	of_signals();
	printf("%d statements, %d unlike\n", statements, unlike);
	return unlike > 0;
}
