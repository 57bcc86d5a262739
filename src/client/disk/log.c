/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The index: a log of records in the byte order of the machine. Each has the sum of itself and of all before, so what follows a lost or
 * torn record counts as nothing: a record that drops a block cannot be missing before one that moves the file to another version.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/disk/folder.h"
#include "client/disk/sum.h"
#include "common/clock.h"
#include "common/grow.h"
#include "common/held.h"

#define LOG_MAGIC     0x3163617866617872ull /* "rxafxac1" */
#define WRITE_BYTES   (4u * 1024)	    /* of records without blocks are written at a time */
#define COMPACT_BYTES (1024u * 1024)	    /* a shorter index is not made anew, */
#define COMPACT_SHARE 32u		 /* but for one that takes such a share of a small cache */
#define RETRY_LOG_NS  (10ull * NS_PER_S) /* after a failure */
#define LOG_LONGEST   (1ull << 30)

struct log_head {
	uint64_t magic, seed;
	uint32_t block, unused;
	uint64_t sum;
};

enum record_kind {
	RECORD_CELL = 1,
	RECORD_FILE,
	RECORD_BLOCK,
	RECORD_DROP,
	RECORD_VERSION,
	RECORD_MOVE,
	RECORD_WHOLE /* its file */
};

/* Before the contents of a record. After them comes the chain, 8 bytes. */
struct record_head {
	uint16_t kind, length; /* bytes of the contents */
	uint32_t id;	       /* of the file or cell */
};

struct file_record {
	uint32_t cell, volume, vnode, unique;
};

struct block_record {
	uint64_t number, sum;
	uint32_t place, length;
};

struct version_record {
	uint64_t version;
	uint32_t incarnation, unused;
};

/* -- writing -------------------------------------------------------------------------------- */

static bool reserve_log(struct disk_log *log, size_t more)
{
	size_t room = log->room ? log->room : WRITE_BYTES;
	unsigned char *buffer;

	if (log->used + more <= log->room)
		return true;
	while (room < log->used + more)
		room *= 2;
	buffer = realloc(log->buffer, room);
	if (!buffer)
		return false;
	log->buffer = buffer;
	log->room = room;
	return true;
}

static void add_record(struct disk_log *log, enum record_kind kind, uint32_t id,
		       const void *contents, size_t length)
{
	struct record_head head = {(uint16_t)kind, (uint16_t)length, id};
	unsigned char *at;

	if (log->broken || !reserve_log(log, sizeof(head) + length + sizeof(uint64_t))) {
		log->broken = true;
		return;
	}
	at = log->buffer + log->used;
	memcpy(at, &head, sizeof(head));
	if (length)
		memcpy(at + sizeof(head), contents, length);
	log->chain = disk_sum(log->chain, at, sizeof(head) + length);
	memcpy(at + sizeof(head) + length, &log->chain, sizeof(log->chain));
	log->used += sizeof(head) + length + sizeof(log->chain);
	log->length += sizeof(head) + length + sizeof(log->chain);
}

static void add_version(struct disk_log *log, enum record_kind kind,
			const struct cl_disk_file *file)
{
	struct version_record record = {file->version.version, file->version.incarnation, 0};

	add_record(log, kind, file->id, &record, sizeof(record));
}

/* Names a file, if the log does not know it. */
static void add_file(struct cl_disk *disk, struct disk_log *log, struct cl_disk_file *file)
{
	struct file_record record = {file->cell->number, file->volume, file->vnode, file->unique};

	if (file->id)
		return;
	if (!file->cell->logged)
		add_record(log, RECORD_CELL, file->cell->number, file->cell->name,
			   strlen(file->cell->name));
	file->cell->logged = true;
	file->id = ++disk->next_id;
	add_record(log, RECORD_FILE, file->id, &record, sizeof(record));
	add_version(log, RECORD_VERSION, file);
}

static void add_whole(struct disk_log *log, const struct cl_disk_file *file)
{
	add_record(log, RECORD_WHOLE, file->id, &file->whole->number, sizeof(file->whole->number));
}

static void add_block(struct disk_log *log, const struct kept *kept)
{
	struct block_record record = {kept->number, kept->sum, kept->place, kept->length};

	add_record(log, RECORD_BLOCK, kept->file->id, &record, sizeof(record));
}

void log_block(struct cl_disk *disk, const struct kept *kept)
{
	assert(mutex_is_held(&disk->lock));
	add_file(disk, &disk->log, kept->file);
	add_block(&disk->log, kept);
}

void log_drop(struct cl_disk *disk, const struct kept *kept)
{
	assert(mutex_is_held(&disk->lock));
	add_record(&disk->log, RECORD_DROP, kept->file->id, &kept->number, sizeof(kept->number));
}

void log_version(struct cl_disk *disk, const struct cl_disk_file *file)
{
	assert(mutex_is_held(&disk->lock));
	if (file->id)
		add_version(&disk->log, RECORD_VERSION, file);
}

void log_move(struct cl_disk *disk, const struct cl_disk_file *file)
{
	assert(mutex_is_held(&disk->lock));
	if (file->id)
		add_version(&disk->log, RECORD_MOVE, file);
}

void log_whole(struct cl_disk *disk, struct cl_disk_file *file)
{
	assert(mutex_is_held(&disk->lock));
	add_file(disk, &disk->log, file);
	add_whole(&disk->log, file);
}

/* All that is known, as a new log. With the lock held. */
static void write_all_records(struct cl_disk *disk, struct disk_log *log)
{
	disk->next_id = 0;
	for (struct cell *cell = disk->cells; cell; cell = cell->next)
		cell->logged = false;
	for (size_t i = 0; i < disk->files.size; i++)
		for (struct cl_disk_file *file = *htable_chain(&disk->files, i); file;
		     file = file->link)
			file->id = 0;
	for (size_t i = 0; i < disk->files.size; i++)
		for (struct cl_disk_file *file = *htable_chain(&disk->files, i); file;
		     file = file->link) {
			/* A walk may come by twice. */
			if (file->id || !file->blocks)
				continue;
			add_file(disk, log, file);
			if (file->whole)
				add_whole(log, file);
			for (const struct kept *kept = file->blocks; kept; kept = kept->next)
				add_block(log, kept);
		}
}

/* Begins a log with its head. */
static bool begin_log(struct cl_disk *disk, struct disk_log *log)
{
	struct log_head head = {.magic = LOG_MAGIC, .block = disk->options.block};

	*log = (struct disk_log){.fd = -1};
	if (getrandom(&head.seed, sizeof(head.seed), 0) != sizeof(head.seed))
		return false;
	head.sum = disk_sum(head.seed, &head, offsetof(struct log_head, sum));
	if (!reserve_log(log, sizeof(head)))
		return false;
	memcpy(log->buffer, &head, sizeof(head));
	log->used = log->length = sizeof(head);
	log->chain = head.sum;
	return true;
}

static bool write_fully(int fd, const unsigned char *bytes, size_t length)
{
	while (length) {
		ssize_t done = write(fd, bytes, length);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		bytes += done;
		length -= (size_t)done;
	}
	return true;
}

/* The records that are to be written next; the caller frees them. With the lock held. */
static unsigned char *take_records(struct disk_log *log, size_t *length)
{
	unsigned char *bytes = log->buffer;

	*length = log->used;
	log->buffer = NULL;
	log->used = log->room = 0;
	return bytes;
}

/*
 * Makes the index anew, beside the old one, which counts until the new one has its name. With log_lock held. After a failure the old one is
 * what was true before: blocks whose version has passed, or whose place has other bytes.
 */
static void renew_log(struct cl_disk *disk)
{
	struct disk_log log;
	unsigned char *bytes;
	size_t length;
	bool made;
	int fd;

	pthread_mutex_lock(&disk->lock);
	made = begin_log(disk, &log);
	if (made)
		write_all_records(disk, &log);
	made = made && !log.broken;
	bytes = take_records(&log, &length);
	free(disk->log.buffer);
	log.fd = disk->log.fd;
	disk->log = log;
	pthread_mutex_unlock(&disk->lock);
	fd = openat(disk->folder, "index.new", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	made = made && fd >= 0 && write_fully(fd, bytes, length) &&
	       !renameat(disk->folder, "index.new", disk->folder, "index");
	free(bytes);
	pthread_mutex_lock(&disk->lock);
	if (made) {
		if (disk->log.fd >= 0)
			close(disk->log.fd);
		disk->log.fd = fd;
	} else {
		if (fd >= 0)
			close(fd);
		disk->log.broken = true;
		disk->log.retry_at = monotonic_ns() + RETRY_LOG_NS;
	}
	pthread_mutex_unlock(&disk->lock);
}

/* Whether most of the log is about what has passed. */
static bool is_bloated(const struct cl_disk *disk)
{
	uint64_t live = disk->statistics.blocks * sizeof(struct block_record) +
			disk->statistics.files * sizeof(struct file_record);

	return disk->log.length > 6 * live &&
	       (disk->log.length > COMPACT_BYTES ||
		disk->log.length > disk->options.bytes_most / COMPACT_SHARE);
}

uint64_t log_bytes(const struct cl_disk *disk)
{
	return (disk->log.length + disk->log.length / 4 + 4 * PAGE) & ~(uint64_t)(PAGE - 1);
}

void log_write(struct cl_disk *disk, bool all)
{
	unsigned char *bytes = NULL;
	size_t length = 0;
	bool renew, write;

	pthread_mutex_lock(&disk->lock);
	write = disk->log.used >= (all ? 1 : WRITE_BYTES) || disk->log.broken;
	pthread_mutex_unlock(&disk->lock);
	if (!write)
		return;
	pthread_mutex_lock(&disk->log_lock);
	pthread_mutex_lock(&disk->lock);
	renew = disk->log.broken ? monotonic_ns() >= disk->log.retry_at : is_bloated(disk);
	if (!renew && !disk->log.broken)
		bytes = take_records(&disk->log, &length);
	pthread_mutex_unlock(&disk->lock);
	if (renew) {
		renew_log(disk);
	} else if (length && !write_fully(disk->log.fd, bytes, length)) {
		pthread_mutex_lock(&disk->lock);
		disk->log.broken = true;
		disk->log.retry_at = monotonic_ns() + RETRY_LOG_NS;
		pthread_mutex_unlock(&disk->lock);
	}
	free(bytes);
	pthread_mutex_unlock(&disk->log_lock);
}

/* -- reading -------------------------------------------------------------------------------- */

/* What the records have named so far. */
struct reader {
	struct cl_disk *disk;
	struct cl_disk_file **files; /* by id, from 1 on, each with a reference */
	size_t count, room;
	uint64_t places; /* in the file of blocks */
};

static struct cl_disk_file *find_file_by_id(const struct reader *reader, uint32_t id)
{
	return id && id <= reader->count ? reader->files[id - 1] : NULL;
}

static void forget_block(struct kept *kept)
{
	struct cl_disk *disk = kept->file->disk;
	struct place *place = &disk->places[kept->place];

	assert(!kept->in_whole && place->kept == kept);
	disk->allocated -= place->allocated;
	*place = (struct place){.next = NO_PLACE};
	table_remove(kept);
}

static void forget_blocks(struct cl_disk_file *file)
{
	if (file->whole)
		table_forget_whole(file->whole);
	while (file->blocks)
		forget_block(file->blocks);
}

static bool read_whole_record(const struct reader *reader, uint32_t id,
			      const unsigned char *contents, size_t length)
{
	struct cl_disk_file *file = find_file_by_id(reader, id);
	uint32_t number;

	if (length != sizeof(number) || !file)
		return false;
	memcpy(&number, contents, sizeof(number));
	forget_blocks(file);
	return table_add_whole(file, number) != NULL;
}

/* A block of a whole. */
static bool add_to_whole(struct cl_disk_file *file, const struct block_record *record)
{
	uint32_t bytes = (record->length + PAGE - 1) & ~(PAGE - 1);
	struct kept *kept = table_find(file, record->number)
				    ? NULL
				    : table_add(file, record->number, record->length, record->sum);

	if (!kept)
		return false;
	kept->place = file->whole->number;
	kept->in_whole = true;
	file->whole->bytes += bytes;
	file->disk->allocated += bytes;
	return true;
}

static bool read_cell_record(const struct reader *reader, uint32_t number,
			     const unsigned char *contents, size_t length)
{
	char name[CELL_MOST + 1] = {0};
	struct cell *cell;

	if (!length || length > CELL_MOST || !number)
		return false;
	memcpy(name, contents, length);
	cell = table_get_cell(reader->disk, name);
	if (!cell)
		return false;
	cell->number = number;
	cell->logged = true;
	if (reader->disk->next_cell < number)
		reader->disk->next_cell = number;
	return true;
}

static bool read_file_record(struct reader *reader, uint32_t id, const unsigned char *contents,
			     size_t length)
{
	struct cell *cell = reader->disk->cells;
	struct cl_disk_file *file;
	struct file_record record;

	if (length != sizeof(record) || id != reader->count + 1)
		return false;
	memcpy(&record, contents, sizeof(record));
	while (cell && cell->number != record.cell)
		cell = cell->next;
	if (!cell || !grow_array(&reader->files, &reader->room, reader->count,
				 sizeof(struct cl_disk_file *)))
		return false;
	file = table_get_file(reader->disk, cell, record.volume, record.vnode, record.unique);
	if (!file)
		return false;
	file->references++;
	file->id = id;
	reader->files[reader->count++] = file;
	return true;
}

static bool read_block_record(struct reader *reader, uint32_t id, const unsigned char *contents,
			      size_t length)
{
	struct cl_disk *disk = reader->disk;
	struct cl_disk_file *file = find_file_by_id(reader, id);
	struct block_record record;
	struct kept *kept;

	if (length != sizeof(record) || !file)
		return false;
	memcpy(&record, contents, sizeof(record));
	if (!record.length || record.length > disk->options.block)
		return false;
	if (file->whole)
		return add_to_whole(file, &record);
	if (record.place >= reader->places)
		return false;
	kept = table_find(file, record.number);
	if (kept)
		forget_block(kept);
	if (record.place < disk->place_count && disk->places[record.place].kept)
		forget_block(disk->places[record.place].kept);
	if (record.place >= reader->places)
		return true; /* the file of blocks was cut */
	kept = table_add(file, record.number, record.length, record.sum);
	if (!kept)
		return false;
	kept->place = record.place;
	if (place_claim(disk, record.place, record.length, kept))
		return true;
	table_remove(kept);
	return false;
}

static bool read_version_record(struct reader *reader, enum record_kind kind, uint32_t id,
				const unsigned char *contents, size_t length)
{
	struct cl_disk_file *file = find_file_by_id(reader, id);
	struct version_record record;

	if (length != sizeof(record) || !file)
		return false;
	memcpy(&record, contents, sizeof(record));
	if (kind == RECORD_VERSION)
		forget_blocks(file);
	file->version = (struct cl_disk_version){record.version, record.incarnation};
	return true;
}

static bool read_drop_record(struct reader *reader, uint32_t id, const unsigned char *contents,
			     size_t length)
{
	struct cl_disk_file *file = find_file_by_id(reader, id);
	uint64_t number;
	struct kept *kept;

	if (length != sizeof(number) || !file)
		return false;
	memcpy(&number, contents, sizeof(number));
	kept = table_find(file, number);
	if (kept && kept->in_whole)
		return false;
	if (kept)
		forget_block(kept);
	return true;
}

static bool read_one_record(struct reader *reader, const struct record_head *head,
			    const unsigned char *contents)
{
	switch (head->kind) {
	case RECORD_CELL:
		return read_cell_record(reader, head->id, contents, head->length);
	case RECORD_FILE:
		return read_file_record(reader, head->id, contents, head->length);
	case RECORD_BLOCK:
		return read_block_record(reader, head->id, contents, head->length);
	case RECORD_DROP:
		return read_drop_record(reader, head->id, contents, head->length);
	case RECORD_WHOLE:
		return read_whole_record(reader, head->id, contents, head->length);
	case RECORD_VERSION:
	case RECORD_MOVE:
		return read_version_record(reader, head->kind, head->id, contents, head->length);
	default:
		return false;
	}
}

/* Reads records until one is not sound. The bytes that count. */
static size_t read_records(struct reader *reader, const unsigned char *bytes, size_t length,
			   uint64_t *chain)
{
	struct record_head head;
	size_t at = sizeof(struct log_head), size;
	uint64_t next, stored;

	while (length - at >= sizeof(head)) {
		memcpy(&head, bytes + at, sizeof(head));
		size = sizeof(head) + head.length;
		if (length - at < size + sizeof(stored))
			break;
		next = disk_sum(*chain, bytes + at, size);
		memcpy(&stored, bytes + at + size, sizeof(stored));
		if (next != stored || !read_one_record(reader, &head, bytes + at + sizeof(head)))
			break;
		*chain = next;
		at += size + sizeof(stored);
	}
	return at;
}

/* The bytes of an index; NULL if there is none that could be used. */
static unsigned char *load_log(int fd, size_t *length)
{
	struct stat st;
	unsigned char *bytes;
	size_t done = 0;
	ssize_t got;

	if (fstat(fd, &st) || st.st_size < (off_t)sizeof(struct log_head) ||
	    (uint64_t)st.st_size > LOG_LONGEST)
		return NULL;
	*length = (size_t)st.st_size;
	bytes = malloc(*length);
	while (bytes && done < *length &&
	       (got = pread(fd, bytes + done, *length - done, (off_t)done)) > 0)
		done += (size_t)got;
	if (!bytes || done < *length) {
		free(bytes);
		return NULL;
	}
	return bytes;
}

/* Takes what an index says. False: nothing of it can be used. */
static bool use_log(struct cl_disk *disk, int fd, uint64_t places)
{
	struct reader reader = {.disk = disk, .places = places};
	struct log_head head;
	size_t length = 0, good;
	unsigned char *bytes = load_log(fd, &length);
	bool used = false;

	if (!bytes)
		return false;
	memcpy(&head, bytes, sizeof(head));
	if (head.magic != LOG_MAGIC || head.block != disk->options.block ||
	    head.sum != disk_sum(head.seed, &head, offsetof(struct log_head, sum)))
		goto out;
	disk->log = (struct disk_log){.fd = fd, .chain = head.sum};
	pthread_mutex_lock(&disk->lock);
	good = read_records(&reader, bytes, length, &disk->log.chain);
	disk->log.length = good;
	disk->next_id = (uint32_t)reader.count;
	for (size_t i = 0; i < reader.count; i++) {
		reader.files[i]->references--;
		table_drop_file(reader.files[i]);
	}
	pthread_mutex_unlock(&disk->lock);
	free(reader.files);
	used = true;
	if ((good < length && ftruncate(fd, (off_t)good)) || lseek(fd, 0, SEEK_END) < 0)
		disk->log.broken = true;
out:
	free(bytes);
	return used;
}

int log_open(struct cl_disk *disk)
{
	struct stat st;
	int fd = openat(disk->folder, "index", O_RDWR | O_CLOEXEC | O_NOFOLLOW);

	disk->log.fd = -1;
	if (fstat(disk->blocks_fd, &st)) {
		if (fd >= 0)
			close(fd);
		return -errno;
	}
	if (fd >= 0 &&
	    use_log(disk, fd, ((uint64_t)st.st_size + disk->options.block - 1) >> disk->shift))
		return 0;
	if (fd >= 0)
		close(fd);
	pthread_mutex_lock(&disk->log_lock);
	renew_log(disk);
	pthread_mutex_unlock(&disk->log_lock);
	return 0;
}

void log_close(struct cl_disk *disk)
{
	disk->log.retry_at = 0;
	log_write(disk, true);
	free(disk->log.buffer);
	if (disk->log.fd >= 0)
		close(disk->log.fd);
}
