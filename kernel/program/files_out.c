/* The files that a program leaves behind: see files_out.h. */
#include "kernel/program/files_out.h"

#include <arch/pgtable.h>

#include "kernel/core/cmdline.h"
#include "kernel/core/printk.h"
#include "kernel/program/cpio.h"
#include "kernel/program/names.h"
#include "kernel/virtio/virtio_mmio.h"
#include "kernel/virtio/virtio_pci.h"
#include "kernel/virtio/virtq.h"
#include "mm/debug/leaks.h"
#include "mm/mm.h"

enum { KIND_CONSOLE = 3, TRANSMIT = 1 };

static bool wanted;
OPTION_BOOL(program.out, wanted,
	    "send new and changed files of a program to the host (virtio console)",
	    .boot_only = true);

static struct {
	struct virtio_device device;
	struct virtq queue;
	struct page *scratch;
	struct virtq_buffer buffer[VIRTQ_SIZE];
	u32 buffers;
} port;

static int set_up(void)
{
	u64 offered, agreed;
	int err;

	if (!port.device.ops && !virtio_pci_find(KIND_CONSOLE, &port.device) &&
	    !virtio_mmio_find(KIND_CONSOLE, &port.device)) {
		pr_err("program.out: this machine has no modern virtio console on PCI or where "
		       "virtio_mmio.device= says; the program is not started");
		return -ENODEV;
	}
	if (!port.scratch) {
		port.scratch = page_alloc(1, USE_UNMOVABLE, PAGE_ZERO, NODE_NONE);
		leaks_keep(port.scratch ? 2 : 0);
	}
	err = port.scratch ? virtio_begin(&port.device, 0, &offered, &agreed) : -ENOMEM;
	if (!err)
		err = virtq_begin(&port.queue, &port.device, TRANSMIT);
	if (!err) {
		virtio_ready(&port.device);
		return 0;
	}
	pr_err("program.out: %s; the program is not started",
	       err == -ENOMEM ? "there are no 3 free pages for the queue"
			      : "the virtio console cannot be set up");
	if (port.device.was_reset)
		virtq_end(&port.queue);
	return err;
}

int files_out_begin(void)
{
	return wanted && virtq_most(&port.queue) == 0 ? set_up() : 0;
}

/* ---- the image ---- */

/* The directories of the kernel, whose files are not sent. */
static bool is_left_out(const struct entry *entry)
{
	return entry == names_find(names.root, "dev", 3) ||
	       entry == names_find(names.root, "proc", 4) ||
	       entry == names_find(names.root, "sys", 3);
}

/* Is it as it was in FILES=, also by the names of its directories? */
static bool is_as_given(const struct entry *entry)
{
	bool given = entry->inode->given;

	for (; given && entry; entry = entry->directory->entry)
		given = !entry->inode->moved;
	return given;
}

static int put_file(const char *name, const struct inode *inode, files_put_fn *put, char *scratch)
{
	const u64 size = inode_size(inode);
	const char *zeros = scratch + PAGE_SIZE;
	u64 bytes = 0;
	int err = put(scratch, cpio_header(scratch, name, inode->mode,
					   (u32)(inode->mtime_ns / NS_PER_S), (u32)size));

	for (u64 at = 0; at < size && !err; at += bytes) {
		const void *piece = contents_bytes(&inode->contents, at, &bytes);

		err = put(piece ? piece : zeros, bytes);
	}
	if (!err && size % CPIO_ALIGNMENT)
		err = put(zeros, CPIO_ALIGNMENT - size % CPIO_ALIGNMENT);
	return err ? err : put(NULL, 0);
}

static int put_entry(const struct entry *entry, files_put_fn *put, char *scratch)
{
	const struct inode *inode = entry->inode;
	char path[CPIO_NAME_MAX + 2];

	if (inode->kind != INODE_REGULAR || is_as_given(entry))
		return 0;
	if (names_path_of(entry, path, sizeof(path)) < sizeof(path) && inode_size(inode) >> 32 == 0)
		return put_file(path + 1, inode, put, scratch);
	pr_err("program.out: %s does not arrive: its name has more than %u bytes, or it has 4 GiB",
	       path, CPIO_NAME_MAX);
	return 0;
}

int files_out_write(files_put_fn *put, void *scratch)
{
	const struct entry *entry = names_next(NULL, true);
	int err = 0;

	while (entry && !err) {
		const bool inner = !is_left_out(entry);

		err = inner ? put_entry(entry, put, scratch) : 0;
		entry = names_next(entry, inner);
	}
	if (!err)
		err = put(scratch, cpio_header(scratch, CPIO_LAST, 0, 0, 0));
	return err ? err : put(NULL, 0);
}

/* ---- the device ---- */

static int flush(void)
{
	const u32 count = port.buffers;

	port.buffers = 0;
	virtq_send(&port.queue, port.buffer, count);
	return virtq_wait(&port.queue);
}

static int put_buffer(const void *bytes, u64 size)
{
	const int err = !bytes || port.buffers == virtq_most(&port.queue) ? flush() : 0;

	if (bytes && !err)
		port.buffer[port.buffers++] =
			(struct virtq_buffer){.start = virt_to_phys(bytes), .bytes = (u32)size};
	return err;
}

void files_out_send(void)
{
	if (virtq_most(&port.queue) > 0 &&
	    files_out_write(put_buffer, page_address(port.scratch)) < 0)
		pr_err("program.out: the device failed; not all files arrive");
}
