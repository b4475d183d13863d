/*
 * BOOTX64.EFI: the kernel as a program of UEFI, which boots without GRUB. It holds the kernel's ELF
 * and does what GRUB does: it puts the kernel to its place, writes multiboot2 information, ends
 * boot services and enters multiboot2_entry ("Multiboot2 Specification version 2.0", 3.3, 3.4).
 *
 * Words and modules come from ASHLAR.TXT on the volume that the program was loaded from, or from
 * the text it was built with where there is no such file (PXE). Load options replace the words.
 *
 * The kernel's place, from 2 MiB on, may hold memory that firmware uses until boot services end,
 * page tables included. So the kernel is laid out elsewhere below 4 GiB, and leave.S copies it when
 * paging is off. The free part of the place is allocated first, so nothing else lies in it.
 *
 * The log of a run that ended in a reset may still be in memory, and is saved as ASHLAR.LOG.
 *
 * A failure is printed and returned to firmware, which tries its next boot option. Memory that was
 * allocated until then stays allocated.
 */
#include "boot/efi/handover.h"
#include "kernel/lib/string.h"

#define BELOW_4G       0xffffffffULL
#define EFI_LOAD_ERROR (1ULL << 63 | 1)

/* Tags of multiboot2 (3.4, 3.6) */
enum {
	TAG_END = 0,
	TAG_CMDLINE = 1,
	TAG_LOADER = 2,
	TAG_MODULE = 3,
	TAG_FRAMEBUFFER = 8,
	TAG_RSDP_OLD = 14, /* the new one follows */
	TAG_EFI_MEMORY_MAP = 17,
};

enum {
	EXIT_TRIES = 8,
	MAP_SPARE = 8192,   /* bytes by which a memory map may grow */
	BLOCK_ROOM = 16384, /* bytes of all other tags at the most */
	ELF_LOAD = 1,
};

/* ELF-64 Object File Format, version 1.5: of the file header and of a program header */
struct elf {
	u8 ident[24];
	u64 entry, program_headers;
	u8 unused[14];
	u16 header_size, headers;
};

struct elf_segment {
	u32 type, flags;
	u64 offset, vaddr, paddr, file_size, size, align;
};

/* The kernel in memory, where it belongs, and where it is entered. */
struct departure {
	u64 to, from, bytes, entry;
};

/* leave.S */
extern const u8 kernel_elf[], built_text[], built_text_end[], leave[], leave_end[];
typedef __noreturn void (*leave_fn)(u64 to, u64 from, u64 bytes, u64 entry, u64 block);

static const struct efi_guid loaded_image_guid = {0x11d295625b1b31a1, 0x3b7269c9a0003f8e};
static const struct efi_guid file_system_guid = {0x11d26459964e5b22, 0x3b7269c9a000398e};
static const struct efi_guid graphics_guid = {0x4a3823dc9042a9de, 0x6a5180d0de7afb96};
/* of the RSDP: ACPI 1.0 and 2.0 */
static const struct efi_guid acpi_guid[] = {{0x11d32d88eb9d2d30, 0x4dc13f279000169a},
					    {0x11d3e4f18868e871, 0x81883cc7800022bc}};

static struct efi_system_table *efi;
static struct efi_boot_services *boot;
static struct handover given;

/* The multiboot2 information, and how much of it is written. */
static u8 *block;
static u32 used = 8;

void *memcpy(void *to, const void *from, size_t len)
{
	void *at = to;

	__asm__ volatile("rep movsb" : "+D"(at), "+S"(from), "+c"(len) : : "memory");
	return to;
}

void *memset(void *to, int byte, size_t len)
{
	void *at = to;

	__asm__ volatile("rep stosb" : "+D"(at), "+c"(len) : "a"(byte) : "memory");
	return to;
}

static size_t text_size(const char *text)
{
	size_t len = 0;

	while (text[len++])
		;
	return len;
}

static void say(const char *text)
{
	for (u16 one[2] = {0}; *text; text++) {
		one[0] = (u8)*text;
		efi->output->output(efi->output, one);
	}
}

/* Print what failed, with which thing, and why: in words, or as a status. Returns a status. */
static efi_status fail(const char *what, const char *thing, const char *why, efi_status status)
{
	const char number[] = {(char)('0' + (u8)status / 10), (char)('0' + (u8)status % 10), '\0'};

	say("Ashlar cannot ");
	say(what);
	say(thing);
	say(why ? ": " : ": EFI error ");
	say(why ? why : number);
	say("\r\n");
	return status ? status : EFI_LOAD_ERROR;
}

static efi_status allocate(u32 type, u64 bytes, u64 *address)
{
	*address = BELOW_4G;
	return boot->allocate_pages(EFI_MAX_ADDRESS, type, DIV_ROUND_UP(bytes, PAGE_SIZE), address);
}

/* Append a tag. Returns the place of its data. */
static void *add_tag(u32 type, u32 size)
{
	u32 *tag = (u32 *)(block + used);

	tag[0] = type;
	tag[1] = 8 + size;
	used += ALIGN_UP(8 + size, 8U);
	return tag + 2;
}

static void add_text(u32 type, const char *text)
{
	memcpy(add_tag(type, (u32)text_size(text)), text, text_size(text));
}

/* Read a file as a whole into memory below 4 GiB. */
static efi_status read_file(struct efi_file *root, const char *path, u64 *address, u64 *size)
{
	u16 name[BOOT_MODULE_TEXT_MAX];
	struct efi_file *file;
	efi_status status;

	for (size_t i = 0; i < text_size(path); i++)
		name[i] = path[i] == '/' ? '\\' : (u8)path[i];
	status = root->open(root, &file, name, EFI_FILE_READ, 0);
	if (status)
		return status;
	status = file->set_position(file, EFI_FILE_END);
	if (!status)
		status = file->get_position(file, size);
	if (!status)
		status = file->set_position(file, 0);
	if (!status)
		status = allocate(EFI_LOADER_DATA, *size + 1, address);
	if (!status)
		status = file->read(file, size, (void *)*address);
	file->close(file);
	return status;
}

static struct efi_file *open_volume(void *device)
{
	struct efi_file_system *system;
	struct efi_file *root;

	if (!device || boot->handle_protocol(device, &file_system_guid, (void **)&system) ||
	    system->open_volume(system, &root))
		return NULL;
	return root;
}

static efi_status read_words(const struct efi_loaded_image *image, struct efi_file *root)
{
	const efi_status not_found = 1ULL << 63 | 14;
	u64 text = (u64)built_text, size = (u64)(built_text_end - built_text);
	efi_status status = root ? read_file(root, "ASHLAR.TXT", &text, &size) : not_found;
	const char *wrong;

	if (status && status != not_found)
		return fail("read ", "ASHLAR.TXT", NULL, status);
	wrong = handover_read_text((const u8 *)text, size, &given);
	if (wrong)
		return fail("use ", "ASHLAR.TXT", wrong, 0);
	if (image->options)
		handover_read_options(image->options, image->options_size, &given);
	return 0;
}

/* Load the modules and append their tags. A module's own text begins behind its file's name. */
static efi_status add_modules(struct efi_file *root)
{
	for (size_t i = 0; i < given.modules; i++) {
		char *path = given.module[i], *words = path;
		u64 address, size;
		efi_status status;
		u32 *tag;

		while (*words && *words != ' ')
			words++;
		if (*words)
			*words++ = '\0';
		if (!root)
			return fail("load ", path, "the program was not loaded from a volume", 0);
		status = read_file(root, path, &address, &size);
		if (status)
			return fail("load ", path, NULL, status);
		tag = add_tag(TAG_MODULE, 8 + (u32)text_size(words));
		tag[0] = (u32)address;
		tag[1] = (u32)(address + size);
		memcpy(tag + 2, words, text_size(words));
	}
	return 0;
}

/* The screen as firmware left it. A screen without a framebuffer is left out. */
static void add_framebuffer(void)
{
	struct efi_graphics *graphics;
	const struct efi_graphics_info *info;
	bool bgr;
	u32 *tag;

	if (boot->locate_protocol(&graphics_guid, NULL, (void **)&graphics))
		return;
	info = graphics->mode->info;
	if (info->format > EFI_PIXEL_BGR)
		return;
	bgr = info->format == EFI_PIXEL_BGR;
	tag = add_tag(TAG_FRAMEBUFFER, 32);
	tag[0] = (u32)graphics->mode->address;
	tag[1] = (u32)(graphics->mode->address >> 32);
	tag[2] = info->pixels_per_line * 4;
	tag[3] = info->width;
	tag[4] = info->height;
	tag[5] = 32 | BOOT_FB_RGB << 8;       /* bits per pixel, type */
	tag[6] = 0x08080800 | (bgr ? 16 : 0); /* red: position, size; green */
	tag[7] = 0x00000800 | (bgr ? 0 : 16); /* blue */
}

static void add_acpi(void)
{
	for (u64 i = 0; i < efi->configurations; i++) {
		const struct efi_configuration *entry = &efi->configuration[i];

		for (u32 v2 = 0; v2 < 2; v2++) {
			if (entry->guid.low == acpi_guid[v2].low &&
			    entry->guid.high == acpi_guid[v2].high)
				memcpy(add_tag(TAG_RSDP_OLD + v2, v2 ? 36 : 20), entry->table,
				       v2 ? 36 : 20);
		}
	}
}

/* Take a snapshot of the memory map: where it lies, its size, and that of an entry. */
static efi_status get_map(u64 *map, u64 *size, u64 *entry)
{
	u64 key;
	u32 version;
	efi_status status;

	*size = 0;
	boot->get_memory_map(size, NULL, &key, entry, &version);
	*size += MAP_SPARE; /* allocating memory adds entries */
	status = allocate(EFI_LOADER_DATA, *size, map);
	if (!status)
		status = boot->get_memory_map(size, (void *)*map, &key, entry, &version);
	/* smaller entries would never end */
	return status || *entry >= sizeof(struct efi_memory) ? status : EFI_LOAD_ERROR;
}

/* Write a log to ASHLAR.LOG, oldest bytes first. */
static efi_status write_log(struct efi_file *root, const struct log_record *log)
{
	const u64 newest = log->end % log->size;
	u64 older = handover_log_older(log), newer = newest;
	struct efi_file *file;
	efi_status status;

	if (!root->open(root, &file, u"ASHLAR.LOG", EFI_FILE_READ | EFI_FILE_WRITE, 0))
		file->remove(file);
	status = root->open(root, &file, u"ASHLAR.LOG",
			    EFI_FILE_READ | EFI_FILE_WRITE | EFI_FILE_CREATE, 0);
	if (status)
		return status;
	status = file->write(file, &older, log->text + newest);
	if (!status)
		status = file->write(file, &newer, log->text);
	file->close(file);
	return status;
}

/*
 * Look for the log of a run that ended in a reset, in memory that nothing has used since, and save
 * it once. Returns whether there was one: after "once" the kernel has had its run, even if the log
 * cannot be written. Otherwise that is no reason not to start.
 */
static bool save_log(struct efi_file *root)
{
	u64 map, size, entry;

	if (!root || get_map(&map, &size, &entry))
		return false;
	for (u64 at = 0; at + entry <= size; at += entry) {
		const struct efi_memory *m = (const struct efi_memory *)(map + at);
		const u64 start = MAX(m->start, PAGE_SIZE);
		const u64 end = MIN(m->start + (m->pages << PAGE_SHIFT), LOG_PHYS_MAX);
		const struct log_record *log;
		efi_status status;

		if (m->type != EFI_CONVENTIONAL || start >= end)
			continue;
		log = handover_find_log((const u8 *)start, end - start);
		if (!log)
			continue;
		if (handover_log_sum(log) != log->sum)
			say("Ashlar: memory has changed since; a part of the log may be wrong\r\n");
		status = write_log(root, log);
		if (status)
			fail("write ", "ASHLAR.LOG", NULL, status);
		else
			say("Ashlar: ASHLAR.LOG has the log of the last run\r\n");
		((struct log_record *)log)->magic = 0;
		/* a reset would lose the change, and the log would be found again */
		__asm__ volatile("clflush %0; mfence" : : "m"(log->magic) : "memory");
		return true;
	}
	return false;
}

/*
 * Find memory for the kernel's image, which belongs to [start, end). All free parts of its place
 * are allocated.
 */
static efi_status claim(u64 start, u64 end, u64 *image)
{
	u64 map, size, entry;
	efi_status status = get_map(&map, &size, &entry);

	if (status)
		return fail("get ", "the memory map", NULL, status);
	if (handover_ram_between((const u8 *)map, size, entry, start, end) != end - start)
		return fail("load ", "the kernel", "its place, from 2 MiB on, is not all RAM", 0);
	for (u64 at = 0; at + entry <= size; at += entry) {
		const struct efi_memory *m = (const struct efi_memory *)(map + at);
		const u64 stop = MIN(m->start + (m->pages << PAGE_SHIFT), end);
		u64 from = MAX(m->start, start);

		if (m->type == EFI_CONVENTIONAL && from < stop)
			boot->allocate_pages(EFI_ADDRESS, EFI_LOADER_DATA,
					     (stop - from) >> PAGE_SHIFT, &from);
	}
	status = allocate(EFI_LOADER_DATA, end - start, image);
	return status ? fail("load ", "the kernel", "too little memory below 4 GiB", status) : 0;
}

/* Lay the kernel out in memory, and fill in how leave() is to be called, but for the block. */
static efi_status load_kernel(struct departure *go)
{
	const struct elf *elf = (const struct elf *)kernel_elf;
	const struct elf_segment *segment = (const void *)(kernel_elf + elf->program_headers);
	u64 end = 0;
	efi_status status;

	go->to = ~0ULL;
	for (u32 i = 0; i < elf->headers; i++) {
		if (segment[i].type != ELF_LOAD)
			continue;
		go->to = MIN(go->to, segment[i].paddr);
		end = MAX(end, ALIGN_UP(segment[i].paddr + segment[i].size, PAGE_SIZE));
	}
	go->bytes = end - go->to;
	go->entry = elf->entry;
	status = claim(go->to, end, &go->from);
	if (status)
		return status;
	memset((void *)go->from, 0, go->bytes);
	for (u32 i = 0; i < elf->headers; i++) {
		if (segment[i].type == ELF_LOAD)
			memcpy((void *)(go->from + segment[i].paddr - go->to),
			       kernel_elf + segment[i].offset, segment[i].file_size);
	}
	return 0;
}

/*
 * End boot services with their last memory map, whose tag is the last one. The map may change
 * between the two calls; then both are repeated (7.4.6).
 */
static efi_status exit_boot_services(void *image, u32 room)
{
	const u32 before = used;
	efi_status status = 1;

	for (int tries = 0; tries < EXIT_TRIES && status; tries++) {
		u64 size = room - before - 32, key, entry = 0;
		u32 version, *tag;

		used = before;
		tag = add_tag(TAG_EFI_MEMORY_MAP, 8);
		status = boot->get_memory_map(&size, tag + 2, &key, &entry, &version);
		if (status)
			break;
		tag[-1] += (u32)size;
		tag[0] = (u32)entry;
		tag[1] = version;
		used += ALIGN_UP((u32)size, 8U);
		status = boot->exit_boot_services(image, key);
	}
	add_tag(TAG_END, 0);
	*(u32 *)block = used;
	return status;
}

efi_status EFIAPI efi_main(void *self, struct efi_system_table *table)
{
	struct efi_loaded_image *image;
	struct efi_file *root;
	struct departure go;
	u64 page, map, room, entry;
	efi_status status;

	efi = table;
	boot = table->boot;
	status = boot->handle_protocol(self, &loaded_image_guid, (void **)&image);
	if (status)
		return fail("find ", "itself", NULL, status);
	root = open_volume(image->device);
	status = read_words(image, root);
	if (!status && save_log(root) && given.once)
		return 0;
	if (!status)
		status = load_kernel(&go);
	if (status)
		return status;
	status = get_map(&map, &room, &entry);
	room += BLOCK_ROOM;
	if (!status)
		status = allocate(EFI_LOADER_DATA, room, (u64 *)&block);
	if (!status)
		status = allocate(EFI_LOADER_CODE, PAGE_SIZE, &page);
	if (status)
		return fail("start ", "the kernel", "too little memory below 4 GiB", status);
	add_text(TAG_CMDLINE, given.words);
	add_text(TAG_LOADER, "BOOTX64.EFI");
	add_framebuffer();
	add_acpi();
	status = add_modules(root);
	if (status)
		return status;
	memcpy((void *)page, leave, (size_t)(leave_end - leave));
	status = exit_boot_services(self, (u32)room);
	if (status)
		/* cppcheck-suppress missingReturn; leave_fn does not return */
		return fail("end ", "boot services", NULL, status);
	((leave_fn)page)(go.to, go.from, go.bytes, go.entry, (u64)block);
}
