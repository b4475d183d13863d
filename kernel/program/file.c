/*
 * Open files and the table of descriptors: see file.h. One lock guards the table. It is held for a
 * few instructions; files are freed after it is dropped.
 */
#include "kernel/program/file.h"

#include <arch/atomic.h>

#include "kernel/core/printk.h"
#include "kernel/lib/string.h"
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
	int free_from; /* no descriptor below is free */
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

static const struct vm_object_ops object_ops = {
	.page = page_shown, .can_write = can_write, .release = release};

struct file *file_new(struct inode *inode, const struct file_ops *ops, u32 flags)
{
	struct file *file = store_alloc(sizeof(*file));

	if (!file)
		return NULL;
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

int descriptor_give(struct file *file, int from)
{
	int at;

	spin_lock(&table.lock);
	at = MAX(from, table.free_from);
	while (at < DESCRIPTORS_MAX && table.file[at])
		at++;
	if (from <= table.free_from)
		table.free_from = at < DESCRIPTORS_MAX ? at + 1 : at;
	if (at < DESCRIPTORS_MAX)
		table.file[at] = file;
	spin_unlock(&table.lock);
	return at < DESCRIPTORS_MAX ? at : -EMFILE;
}

struct file *descriptor_set(int descriptor, struct file *file)
{
	struct file *former;

	spin_lock(&table.lock);
	former = table.file[descriptor];
	table.file[descriptor] = file;
	if (!file)
		table.free_from = MIN(table.free_from, descriptor);
	spin_unlock(&table.lock);
	return former;
}

/* ---- mappings ---- */

int file_map_error(const struct file *file, bool shared, bool write)
{
	const u32 flags = atomic_load_relaxed(&file->flags);

	if (flags & OPEN_PATH)
		return -EBADF;
	if (shared && write && (flags & OPEN_ACCESS) != OPEN_BOTH)
		return -EACCES;
	if ((flags & OPEN_ACCESS) == OPEN_WRITE)
		return -EACCES;
	if (shared && write && file_has_seal(file->inode, SEAL_WRITE | SEAL_FUTURE_WRITE))
		return -EPERM;
	return file->inode->kind == INODE_REGULAR || file_is_zeros(file) ? 0 : -ENODEV;
}

bool file_is_zeros(const struct file *file)
{
	return file->ops == &zero_ops;
}

void file_name(const struct file *file, char *buf, size_t size)
{
	names_lock();
	names_path(file->inode, buf, size);
	names_unlock();
}

/* ---- before and after a program ---- */

struct device_row {
	const char *path;
	const struct file_ops *ops;
};

static const struct device_row devices[] = {
	{"/dev/null", &null_ops},       {"/dev/zero", &zero_ops},
	{"/dev/full", &full_ops},       {"/dev/random", &random_ops},
	{"/dev/urandom", &random_ops},  {"/dev/tty", &console_ops},
	{"/dev/console", &console_ops}, {"/dev/stdin", &console_ops},
	{"/dev/stdout", &console_ops},  {"/dev/stderr", &console_ops},
};

static const char *const directories[] = {"/dev/shm", "/tmp", "/proc/self", "/sys"};

static int make_devices(void)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(devices) && !err; i++) {
		struct inode *inode = inode_new(INODE_DEVICE, 0666);

		if (!inode)
			return -ENOMEM;
		inode->device = devices[i].ops;
		err = path_make(devices[i].path, inode);
	}
	return err;
}

static int make_directories(void)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_LEN(directories) && !err; i++) {
		struct inode *inode = inode_new(INODE_DIRECTORY, 0777);

		if (!inode)
			return -ENOMEM;
		err = path_make(directories[i], inode);
	}
	return err;
}

static int make_texts(void)
{
	const struct proc_text *row;

	TABLE_FOREACH(row, proc_table)
	{
		struct inode *inode = inode_new(INODE_TEXT, 0444);
		int err;

		if (!inode)
			return -ENOMEM;
		inode->text = row;
		err = path_make(row->path, inode);
		if (err)
			return err;
	}
	return 0;
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
		*err = inode_new_link(entry->data, entry->size, LINK_BORROW, &inode);
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

	if (!inode)
		return -ENOMEM;
	inode->device = &console_ops;
	format(inode->label, sizeof(inode->label), "/dev/console");
	file = file_new(inode, &console_ops, OPEN_BOTH);
	if (!file) {
		inode_put(inode);
		return -ENOMEM;
	}
	for (int i = 0; i < 3; i++) {
		file_get(file);
		descriptor_set(i, file);
	}
	file_put(file);
	return 0;
}

int files_begin(const void *cpio, u64 size)
{
	int err = names_begin();

	if (err) {
		store_end();
		return err;
	}
	console_file_reset();
	file_umask = 022;
	err = make_directories();
	if (!err)
		err = make_devices();
	if (!err)
		err = make_texts();
	if (!err && cpio)
		err = make_files(cpio, size);
	if (!err)
		err = open_console();
	if (err)
		files_end();
	return err;
}

int files_name_program(const char *path, const void *words, u64 size)
{
	struct inode *exe;
	struct inode *cmdline;
	int err = inode_new_link(path, strlen(path), LINK_COPY, &exe);

	if (err)
		return err;
	err = path_make("/proc/self/exe", exe);
	if (err)
		return err;
	cmdline = inode_new(INODE_REGULAR, 0444);
	if (!cmdline)
		return -ENOMEM;
	err = contents_add(&cmdline->contents, words, size);
	if (err) {
		inode_put(cmdline);
		return err;
	}
	return path_make("/proc/self/cmdline", cmdline);
}

void files_end(void)
{
	for (int i = 0; i < DESCRIPTORS_MAX; i++)
		file_put(descriptor_set(i, NULL));
	names_end();
	console_file_reset();
	store_end();
}
