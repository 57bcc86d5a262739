/* SPDX-License-Identifier: BSD-2-Clause */
/* The import copies the contents of files, with their holes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "admin/import.h"

/* Pieces of one file, each of which is stored on its own: one for 128 KiB of its length, between these. */
#define PIECES_LEAST 128
#define PIECES_MOST  4096

struct piece {
	uint64_t start, end;
};

static unsigned most_pieces(uint64_t size)
{
	uint64_t most = size >> 17;

	return most < PIECES_LEAST ? PIECES_LEAST : most > PIECES_MOST ? PIECES_MOST : (unsigned)most;
}

/*
 * Where a file has data. Holes shorter than `gap` count as data. Returns the number of pieces, or
 * `most` + 1 if there are more.
 */
static unsigned find_pieces(int fd, uint64_t size, uint64_t gap, unsigned most, struct piece *piece)
{
	unsigned count = 0;
	off_t at = 0;

	while ((uint64_t)at < size) {
		off_t start = lseek(fd, at, SEEK_DATA), end;

		if (start < 0 && errno == ENXIO)
			break;
		end = start < 0 ? -1 : lseek(fd, start, SEEK_HOLE);
		/* A file system that cannot tell. */
		if (end < 0 || end <= start) {
			piece[0] = (struct piece){0, size};
			return 1;
		}
		at = end;
		if ((uint64_t)start >= size)
			break;
		if ((uint64_t)end > size)
			end = (off_t)size;
		if (count && (uint64_t)start - piece[count - 1].end < gap) {
			piece[count - 1].end = (uint64_t)end;
			continue;
		}
		if (count == most)
			return most + 1;
		piece[count++] = (struct piece){(uint64_t)start, (uint64_t)end};
	}
	return count;
}

/* Few enough pieces: short holes of a file with very many are filled. */
static unsigned choose_pieces(int fd, uint64_t size, struct piece *piece)
{
	unsigned most = most_pieces(size), count = most + 1;

	for (uint64_t gap = 1; count > most; gap = gap < 65536 ? 65536 : gap * 4)
		count = find_pieces(fd, size, gap, most, piece);
	return count;
}

/* The bytes of a piece go to a writer. 0, a result of the store, or 1000 + errno of the file. */
#define SOURCE_ERROR 1000
static int copy_piece_to_writer(struct admin_import *import, const char *path, int fd,
				const struct piece *piece, struct store_writer *writer)
{
	uint64_t at = piece->start;

	while (at < piece->end) {
		size_t want =
			piece->end - at < ADMIN_BUFFER ? (size_t)(piece->end - at) : ADMIN_BUFFER;
		ssize_t n = pread(fd, import->buffer, want, (off_t)at);
		struct iovec iov = {import->buffer, (size_t)n};
		int rc;

		if (n <= 0)
			return SOURCE_ERROR + (n < 0 ? errno : 0);
		rc = import->run->store->ops->write(writer, &iov, 1);
		if (rc)
			return rc;
		at += (uint64_t)n;
		import->bytes += (uint64_t)n;
		admin_import_progress(import, path);
		if (admin_stopped(import->run))
			return SOURCE_ERROR + EINTR;
	}
	return 0;
}

static int store_piece(struct admin_import *import, const char *path, int fd, uint64_t size,
		       const struct piece *piece, const struct store_fid *fid,
		       const struct store_set *set)
{
	struct store *store = import->run->store;
	struct store_writer *writer;
	struct store_status status;
	struct store_changes changes = {0};
	int rc = store->ops->write_begin(store, &admin_caller, fid, set, piece->start,
					 piece->end - piece->start, size, &writer);

	if (rc)
		return rc;
	rc = copy_piece_to_writer(import, path, fd, piece, writer);
	if (rc) {
		store->ops->write_abort(writer);
		return rc;
	}
	rc = store->ops->write_commit(writer, &status, &changes);
	if (!rc)
		admin_changed(import->run, &changes);
	return rc;
}

int admin_import_data(struct admin_import *import, const char *path, int fd, uint64_t size,
		      const struct store_fid *fid, const struct store_set *set)
{
	static const struct store_set unfinished = {.mask = STORE_SET_MTIME};
	struct piece piece[PIECES_MOST + 1];
	unsigned count = choose_pieces(fd, size, piece);
	int rc = 0;

	/* A hole at the end. */
	if (!count || piece[count - 1].end < size)
		piece[count++] = (struct piece){size, size};
	for (unsigned i = 0; !rc && i < count; i++)
		rc = store_piece(import, path, fd, size, &piece[i], fid,
				 i + 1 < count ? &unfinished : set);
	if (rc == SOURCE_ERROR + EINTR && admin_stopped(import->run)) {
		admin_fail(import->run, 1, "interrupted");
		return -1;
	}
	if (rc >= SOURCE_ERROR) {
		admin_import_skip(import, path,
				  rc == SOURCE_ERROR ? "became shorter while it was read"
						     : strerror(rc - SOURCE_ERROR));
		return 1;
	}
	return rc ? admin_import_refused(import, path, rc) ? -1 : 1 : 0;
}

int admin_import_measure(struct admin_import *import, const char *path, int fd, uint64_t *size)
{
	ssize_t n = 0;

	*size = 0;
	while (*size < ADMIN_BUFFER) {
		n = pread(fd, import->buffer + *size, ADMIN_BUFFER - *size, (off_t)*size);
		if (n <= 0)
			break;
		*size += (uint64_t)n;
	}
	if (n == 0)
		return 0;
	admin_import_skip(
		import, path,
		n < 0 ? strerror(errno)
		      : "says that it is empty, but has more than 1 MiB; copy it to a file first");
	return 1;
}

int admin_import_unsized(struct admin_import *import, const char *path, uint64_t size,
			 const struct store_fid *fid, const struct store_set *set)
{
	struct store *store = import->run->store;
	struct iovec iov = {import->buffer, (size_t)size};
	struct store_changes changes = {0};
	struct store_writer *writer;
	struct store_status status;
	int rc = store->ops->write_begin(store, &admin_caller, fid, set, 0, size, size, &writer);

	if (rc)
		goto refused;
	rc = store->ops->write(writer, &iov, 1);
	if (rc) {
		store->ops->write_abort(writer);
		goto refused;
	}
	rc = store->ops->write_commit(writer, &status, &changes);
	if (rc)
		goto refused;
	admin_changed(import->run, &changes);
	import->bytes += size;
	return 0;
refused:
	return admin_import_refused(import, path, rc) ? -1 : 1;
}
