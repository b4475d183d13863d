/*
 * What runs in the Linux that is measured, for S2's table: a region of huge pages is mapped, each page touched once, and unmapped
 * (Arora, "mm/clear_huge_page: use multi-page clearing", 2023-04: "mmap(MAP_HUGETLB) to demand fault a region", one task).
 *
 *   touch-huge 2M|1G PAGES    the pool must have that many free pages; prints "touch_ns UNMAP_ns" or nothing, and exits with 1
 *
 * Linked to nothing: it starts at _start and makes five system calls (Linux x86-64).
 */
enum { SYS_WRITE = 1, SYS_MMAP = 9, SYS_MUNMAP = 11, SYS_EXIT = 60, SYS_CLOCK_GETTIME = 228 };
enum { PROT_READ_WRITE = 3, MAP_PRIVATE_ANONYMOUS_HUGETLB = 0x40022, MAP_HUGE_SHIFT = 26, CLOCK_MONOTONIC = 1 };

typedef unsigned long u64;

static long call(long number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
{
	register u64 r10 __asm__("r10") = d;
	register u64 r8 __asm__("r8") = e;
	register u64 r9 __asm__("r9") = f;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return result;
}

static u64 now_ns(void)
{
	u64 time[2];

	call(SYS_CLOCK_GETTIME, CLOCK_MONOTONIC, (u64)time, 0, 0, 0, 0);
	return time[0] * 1000000000 + time[1];
}

static void print_number(u64 n, char after)
{
	char text[24];
	int at = sizeof(text);

	text[--at] = after;
	do
		text[--at] = (char)('0' + n % 10);
	while (n /= 10);
	call(SYS_WRITE, 1, (u64)(text + at), sizeof(text) - (u64)at, 0, 0, 0);
}

static u64 number_of(const char *word)
{
	u64 n = 0;

	while (*word >= '0' && *word <= '9')
		n = n * 10 + (u64)(*word++ - '0');
	return n;
}

/* Exit status. */
static int run(long argc, char **argv)
{
	const u64 shift = argc == 3 && argv[1][0] == '1' ? 30 : 21;
	const u64 pages = argc == 3 ? number_of(argv[2]) : 0;
	const long map = call(SYS_MMAP, 0, pages << shift, PROT_READ_WRITE,
			      MAP_PRIVATE_ANONYMOUS_HUGETLB | shift << MAP_HUGE_SHIFT, -1UL, 0);
	u64 start, touched;

	if (pages == 0 || (map < 0 && map > -4096))
		return 1;
	start = now_ns();
	for (u64 i = 0; i < pages; i++)
		*(volatile char *)(map + (i << shift)) = 1;
	touched = now_ns();
	call(SYS_MUNMAP, (u64)map, pages << shift, 0, 0, 0, 0);
	print_number(touched - start, ' ');
	print_number(now_ns() - touched, '\n');
	return 0;
}

__attribute__((used, noreturn)) static void start(long *stack)
{
	call(SYS_EXIT, (u64)run(stack[0], (char **)(stack + 1)), 0, 0, 0, 0, 0);
	__builtin_unreachable();
}

__asm__(".globl _start\n_start: xor %ebp, %ebp; mov %rsp, %rdi; and $-16, %rsp; call start\n");
