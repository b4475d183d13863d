/* Pipes and pairs of sockets: see pipe.h. The lock of the stream guards all but the bytes. */
#include "kernel/program/pipe.h"

#include <arch/atomic.h>

#include "kernel/program/file.h"
#include "kernel/program/open_file.h"
#include "kernel/program/store.h"
#include "mm/mm.h"

enum { PIPE_ORDER = 4 };

struct pipe {
	struct page *page;
	u64 head, tail;
	bool reader_open, writer_open;
	bool reading, writing; /* a thread has the turn */
};

struct pipes {
	struct stream stream;
	struct pipe ring[2];
	unsigned ends; /* that are open */
};

static bool must_not_wait(const struct file *file, const struct span *span)
{
	return span->no_wait || atomic_load_relaxed(&file->flags) & OPEN_NONBLOCK;
}

static u64 filled(const struct pipe *pipe)
{
	return pipe->head - pipe->tail;
}

/* Copy between the ring, from byte number `at` on, and the span. Returns bytes, or an error. */
static s64 copy(const struct pipe *pipe, u64 at, enum copy how, struct span *span, u64 bytes)
{
	u64 done = 0;

	while (done < bytes) {
		const u64 offset = (at + done) % PIPE_SIZE;
		const u64 part = MIN(bytes - done, PIPE_SIZE - offset);
		const int err = span_copy(span, how, (u8 *)page_address(pipe->page) + offset, part);

		if (err)
			return done > 0 ? (s64)done : err;
		done += part;
	}
	return (s64)done;
}

/*
 * Wait for `least` bytes, or as much room to write, and take the turn. Returns how many there are,
 * 0 at the end, or an error.
 */
static s64 begin(struct stream *stream, struct pipe *pipe, bool writes, u64 least, bool no_wait)
{
	bool *turn = writes ? &pipe->writing : &pipe->reading;
	s64 result = 0;

	spin_lock(&stream->lock);
	while (!result) {
		const u64 there = writes ? PIPE_SIZE - filled(pipe) : filled(pipe);

		if ((writes || there == 0) && !(pipe->writer_open && pipe->reader_open)) {
			result = writes ? -EPIPE : 0;
			break;
		}
		if (!*turn && there >= least) {
			*turn = true;
			result = (s64)there;
		} else if (there < least && no_wait) {
			result = -EAGAIN;
		} else {
			result = sleepers_wait(&stream->sleepers, &stream->lock, 0);
		}
	}
	spin_unlock(&stream->lock);
	return result;
}

static s64 pipe_read(struct file *file, struct span *to, u64 at)
{
	struct stream *stream = file->inode->stream;
	struct pipe *pipe = file->in;
	s64 there, done;

	if (to->total == 0)
		return 0;
	there = begin(stream, pipe, false, 1, must_not_wait(file, to));
	if (there <= 0)
		return there;
	done = copy(pipe, pipe->tail, COPY_OUT, to, MIN((u64)there, to->total));
	spin_lock(&stream->lock);
	pipe->tail += (u64)MAX(done, 0);
	pipe->reading = false;
	stream_changed(stream);
	return done;
}

static s64 pipe_write(struct file *file, struct span *from, u64 at)
{
	struct stream *stream = file->inode->stream;
	struct pipe *pipe = file->out;
	const bool whole = from->total <= PIPE_ATOMIC, no_wait = must_not_wait(file, from);
	s64 done = 0;

	while (from->total > 0) {
		s64 part = begin(stream, pipe, true, whole ? from->total : 1, no_wait);

		if (part > 0) {
			const u64 bytes = MIN((u64)part, from->total);

			part = copy(pipe, pipe->head, COPY_IN, from, bytes);
			/* a write that must be whole leaves nothing behind if it fails */
			if (whole && part > 0 && (u64)part < bytes)
				part = -EFAULT;
			spin_lock(&stream->lock);
			pipe->head += (u64)MAX(part, 0);
			pipe->writing = false;
			stream_changed(stream);
		}
		if (part < 0)
			return done > 0 ? done : part;
		done += part;
	}
	return done;
}

/* ---- both ends ---- */

/*
 * `head` and `tail` only rise, and an end closes once. A reader learns that the other end is closed
 * as a hangup, a writer as an error, and a socket as an end that can be read; it is a hangup if
 * both ways are closed.
 */
static struct file_look pipe_look(struct file *file)
{
	struct stream *stream = file->inode->stream;
	const struct pipe *in = file->in, *out = file->out;
	struct file_look look = {0};

	spin_lock(&stream->lock);
	if (out) {
		look.waiting = (s64)filled(out);
		look.ready |= PIPE_SIZE - filled(out) >= PIPE_ATOMIC ? READY_OUT : 0;
		look.ready |= in || out->reader_open ? 0 : READY_ERROR;
		look.changes += out->tail + !out->reader_open;
	}
	if (in) {
		look.waiting = (s64)filled(in);
		look.ready |= filled(in) > 0 || (out && !in->writer_open) ? READY_IN : 0;
		look.ready |= in->writer_open || (out && out->reader_open) ? 0 : READY_HANGUP;
		look.changes += in->head + !in->writer_open;
	}
	spin_unlock(&stream->lock);
	return look;
}

/* Lock held. */
static void close_ways(struct file *file, unsigned how)
{
	if (file->in && how & 1)
		file->in->reader_open = false;
	if (file->out && how & 2)
		file->out->writer_open = false;
}

void pipe_shut(struct file *file, unsigned how)
{
	struct stream *stream = file->inode->stream;

	spin_lock(&stream->lock);
	close_ways(file, how);
	stream_changed(stream);
}

/* The rings end with the second end. */
static void pipe_release(struct file *file)
{
	struct pipes *pipes = container_of(file->inode->stream, struct pipes, stream);
	bool last;

	spin_lock(&pipes->stream.lock);
	close_ways(file, 3);
	last = --pipes->ends == 0;
	stream_changed(&pipes->stream);
	for (unsigned i = 0; last && i < 2; i++)
		if (pipes->ring[i].page)
			page_put(pipes->ring[i].page);
}

static const struct file_ops pipe_ops = {
	.read = pipe_read,
	.write = pipe_write,
	.look = pipe_look,
	.release = pipe_release,
};

bool pipe_is_socket(const struct file *file)
{
	return file->ops == &pipe_ops && file->in && file->out;
}

static bool open_ring(struct pipe *pipe, struct file *reader, struct file *writer)
{
	pipe->page = store_pages(PIPE_ORDER, 0);
	pipe->reader_open = pipe->writer_open = true;
	reader->in = pipe;
	writer->out = pipe;
	return pipe->page != NULL;
}

int pipe_new(enum pipe_kind kind, u32 flags, struct file *ends[2])
{
	const bool both = kind == PIPE_SOCKETS;
	struct pipes *pipes;

	ends[0] = stream_new(&pipe_ops, flags | (both ? OPEN_BOTH : 0), sizeof(*pipes));
	if (!ends[0])
		return -ENOMEM;
	pipes = container_of(ends[0]->inode->stream, struct pipes, stream);
	if (both)
		ends[0]->inode->mode = MODE_SOCKET | 0600;
	inode_get(ends[0]->inode);
	ends[1] = file_new(ends[0]->inode, &pipe_ops, flags | (both ? OPEN_BOTH : OPEN_WRITE));
	pipes->ends = ends[1] ? 2 : 1;
	if (ends[1] && open_ring(&pipes->ring[0], ends[0], ends[1]) &&
	    (!both || open_ring(&pipes->ring[1], ends[1], ends[0])))
		return 0;
	file_put(ends[1]);
	file_put(ends[0]);
	return -ENOMEM;
}
