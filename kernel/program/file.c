/*
 * Open files and the table of descriptors: see file.h. One lock guards the table. It is held for a
 * few instructions; files are freed after it is dropped.
 */
#include "kernel/program/file.h"

#include <arch/atomic.h>
#include <arch/cpu.h>

#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
#include "kernel/program/arguments.h"
#include "kernel/program/console_file.h"
#include "kernel/program/cpio.h"
#include "kernel/program/cut.h"
#include "kernel/program/open_file.h"
#include "kernel/program/path.h"
#include "kernel/program/proc_text.h"
#include "kernel/program/store.h"
#include "mm/mm.h"

static struct {
	struct spinlock lock;
	struct file *file[DESCRIPTORS_MAX];
} table = {.lock = {.rank = LOCK_LEAF, .holder = CPU_NONE}};

u32 file_umask;

static void release(struct vm_object *object)
{
	struct file *file = file_of_object(object);

	if (file->ops->release)
		file->ops->release(file);
	inode_put(file->inode);
	store_free(file, sizeof(*file));
}

static bool can_write(const struct vm_object *object)
{
	return file_map_error((const struct file *)object, true, true) == 0;
}

static struct page *page_shown(struct vm_object *object, u64 index, int *err)
{
	return contents_page(&file_of_object(object)->inode->contents, index, err);
}

static int copy_shown(struct vm_object *object, u64 at, void *to, u64 bytes)
{
	return contents_copy(&file_of_object(object)->inode->contents, at, to, bytes);
}

static const struct vm_object_ops object_ops = {
	.page = page_shown, .copy = copy_shown, .can_write = can_write, .release = release};

struct file *file_new(struct inode *inode, const struct file_ops *ops, u32 flags)
{
	struct file *file = inode ? store_alloc(sizeof(*file)) : NULL;

	if (!file) {
		inode_put(inode);
		return NULL;
	}
	file->object = (struct vm_object){.ops = &object_ops, .refs = 1};
	file->flags = flags;
	file->ops = ops;
	file->inode = inode;
	file->lock = SPINLOCK_INIT(LOCK_LEAF);
	return file;
}

void file_get(struct file *file)
{
	vm_object_get(&file->object);
}

void file_put(struct file *file)
{
	if (file)
		vm_object_put(&file->object);
}

struct file *file_of(int descriptor)
{
	struct file *file;

	if (descriptor < 0 || descriptor >= DESCRIPTORS_MAX)
		return NULL;
	spin_lock(&table.lock);
	file = table.file[descriptor];
	if (file)
		file_get(file);
	spin_unlock(&table.lock);
	return file;
}

int descriptor_for(struct file *file, int from)
{
	spin_lock(&table.lock);
	while (from < DESCRIPTORS_MAX && table.file[from])
		from++;
	if (from < DESCRIPTORS_MAX)
		table.file[from] = file;
	spin_unlock(&table.lock);
	if (from < DESCRIPTORS_MAX)
		return from;
	file_put(file);
	return -EMFILE;
}

struct file *descriptor_set(int descriptor, struct file *file)
{
	struct file *former;

	spin_lock(&table.lock);
	former = table.file[descriptor];
	table.file[descriptor] = file;
	spin_unlock(&table.lock);
	return former;
}

/* ---- mappings ---- */

int file_map_error(const struct file *file, bool shared, bool write)
{
	const u32 flags = atomic_load_relaxed(&file->flags);

	if (flags & OPEN_PATH)
		return -EBADF;
	if ((flags & OPEN_ACCESS) == OPEN_WRITE ||
	    (shared && write && (flags & OPEN_ACCESS) != OPEN_BOTH))
		return -EACCES;
	if (shared && write && file_has_seal(file->inode, SEAL_WRITE | SEAL_FUTURE_WRITE))
		return -EPERM;
	if (file->inode->kind != INODE_REGULAR)
		return file_is_zeros(file) ? 0 : -ENODEV;
	if (shared && write)
		inode_touch(file->inode); /* it may be written at any time from now on */
	return 0;
}

bool file_is_zeros(const struct file *file)
{
	return file->ops == &zero_ops;
}

enum pt_level huge_level(u64 flags)
{
	const u64 shift = flags >> 26 & 63;

	if (shift == 30 && cpu_has_1g_mappings())
		return PT_PUD;
	return shift == 0 || shift == 21 ? PT_PMD : PT_PAGE;
}

void file_name(const struct file *file, char *buf, size_t size)
{
	spin_lock(&names.lock);
	names_path(file->inode, buf, size);
	spin_unlock(&names.lock);
}

/* ---- before and after a program ---- */

static const struct {
	const char *path;
	const struct file_ops *ops;
} devices[] = {
	{"/dev/null", &null_ops},       {"/dev/zero", &zero_ops},
	{"/dev/full", &full_ops},       {"/dev/random", &random_ops},
	{"/dev/urandom", &random_ops},  {"/dev/tty", &console_ops},
	{"/dev/console", &console_ops}, {"/dev/stdin", &console_ops},
	{"/dev/stdout", &console_ops},  {"/dev/stderr", &console_ops},
};

static const char *const directories[] = {"/dev/shm", "/tmp", "/proc/self", "/sys"};

/* A file of the kernel's own, of which one of the two says what it is. */
static int make(const char *path, enum inode_kind kind, u32 mode, const struct file_ops *device,
		const struct proc_text *text)
{
	struct inode *inode = inode_new(kind, mode);

	if (!inode)
		return -ENOMEM;
	if (device)
		inode->device = device;
	if (text)
		inode->text = text;
	return path_make(path, inode);
}

static int make_own(void)
{
	const struct proc_text *row;
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(directories) && !err; i++)
		err = make(directories[i], INODE_DIRECTORY, 0777, NULL, NULL);
	for (size_t i = 0; i < ARRAY_LEN(devices) && !err; i++)
		err = make(devices[i].path, INODE_DEVICE, 0666, devices[i].ops, NULL);
	TABLE_FOREACH(row, proc_table)
	{
		if (!err)
			err = make(row->path, INODE_TEXT, 0444, NULL, row);
	}
	return err;
}

/* The inode of an entry of FILES=, or NULL with *err; 0 if the entry is of another type. */
static struct inode *inode_of_entry(const struct cpio_entry *entry, int *err)
{
	struct inode *inode = NULL;

	*err = 0;
	switch (entry->mode & CPIO_TYPE) {
	case CPIO_FOLDER:
		inode = inode_new(INODE_DIRECTORY, entry->mode);
		break;
	case CPIO_FILE:
		inode = inode_new(INODE_REGULAR, entry->mode);
		if (inode)
			contents_init(&inode->contents, entry->data, entry->size);
		break;
	case CPIO_LINK:
		*err = inode_new_link(entry->data, entry->size, &inode);
		break;
	default:
		pr_warn("FILES: %s is left out: it is no file, folder or link", entry->name);
		return NULL;
	}
	if (!inode && !*err)
		*err = -ENOMEM;
	if (inode)
		inode->mtime_ns = entry->mtime * NS_PER_S;
	return inode;
}

static int make_files(const void *cpio, u64 size)
{
	struct cpio_reader reader = cpio_reader(cpio, size);
	struct cpio_entry entry;

	while (cpio_next(&reader, &entry)) {
		int err;
		struct inode *inode = inode_of_entry(&entry, &err);

		if (inode)
			err = path_make(entry.name, inode);
		if (inode && !err && (entry.mode & CPIO_TYPE) == CPIO_FILE)
			inode->given = true;
		if (err) {
			pr_err("FILES: %s cannot be made: error %d", entry.name, -err);
			return err;
		}
	}
	if (reader.error) {
		pr_err("FILES: %s, in entry \"%s\" at byte %llu", reader.error, entry.name,
		       reader.at);
		return -EINVAL;
	}
	return 0;
}

/* Descriptors 0, 1 and 2 share one open file, as after a login. */
static int open_console(void)
{
	struct inode *inode = inode_new(INODE_DEVICE, 0620);
	struct file *file;

	if (inode)
		inode->device = &console_ops;
	file = file_new(inode, &console_ops, OPEN_BOTH);
	for (int i = 0; file && i < 3; i++) {
		file_get(file);
		descriptor_set(i, file);
	}
	file_put(file);
	return file ? 0 : -ENOMEM;
}

int files_begin(const void *cpio, u64 size)
{
	int err = names_begin();

	console_file_reset();
	file_umask = 022;
	if (!err)
		err = make_own();
	if (!err && cpio)
		err = make_files(cpio, size);
	if (!err)
		err = open_console();
	if (err)
		files_end();
	return err;
}

const void *files_bytes(const char *path, u64 *size)
{
	struct path found = {.inode = NULL};
	const void *bytes = NULL;

	spin_lock(&names.lock);
	if (path_walk(&found, names.root, path, strlen(path), PATH_FOLLOW) == 0 && found.inode &&
	    found.inode->kind == INODE_REGULAR) {
		bytes = found.inode->contents.source;
		*size = found.inode->contents.source_size;
	}
	spin_unlock(&names.lock);
	return bytes;
}

static int make_words(const char *path, const struct arguments *words)
{
	struct inode *inode = inode_new(INODE_REGULAR, 0444);
	int err;

	if (!inode)
		return -ENOMEM;
	err = contents_add(&inode->contents, words->text, words->bytes);
	if (!err)
		return path_make(path, inode);
	inode_put(inode);
	return err;
}

int files_name_program(const char *path, const struct arguments *args,
		       const struct arguments *environment)
{
	struct inode *exe;
	int err = inode_new_link(path, strlen(path), &exe);

	if (!err)
		err = path_make("/proc/self/exe", exe);
	if (!err)
		err = make_words("/proc/self/cmdline", args);
	return err ? err : make_words("/proc/self/environ", environment);
}

void files_end(void)
{
	for (int i = 0; i < DESCRIPTORS_MAX; i++)
		file_put(descriptor_set(i, NULL));
	names_end();
	store_end();
}
