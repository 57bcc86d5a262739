/* SPDX-License-Identifier: BSD-2-Clause */
/* SQLite's files on a store_layer: opening, reading, writing, locks, and the index of the log. */
#include "volume/store/disk/vfs.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <sqlite3.h>

#include "common/bytes.h"
#include "volume/store/disk/crc.h"
#include "volume/store/disk/wal.h"

#define PATH_ROOM 64
#define REGION	  32768 /* bytes of a part of the index, as SQLite asks for it */

/* Bytes of the header of a database, as its format defines them. */
#define HEADER	     100
#define HEADER_SIZE  16 /* big-endian, 2 bytes: the size of a page */
#define HEADER_SPARE 20 /* one byte: how many bytes at the end of each page are not SQLite's */

#define REMEDY	     "stop the server and start it again: a copy that has all changes repairs the page"

/* Covered by the lock of the VFS. */
struct locks {
	unsigned shared;			/* connections with any lock */
	const void *reserved, *pending, *exclusive; /* the connection, or NULL */
};

/* The index of the log, which connections share. Covered by the lock of the VFS. */
struct index {
	void **region;
	int regions;
	unsigned users;
	unsigned shared[SQLITE_SHM_NLOCK];
	const void *exclusive[SQLITE_SHM_NLOCK];
};

struct store_vfs {
	sqlite3_vfs base;
	char name[40];
	char folder[PATH_ROOM], database[PATH_ROOM], log[PATH_ROOM], mark[PATH_ROOM]; /* paths */
	struct store_layer *layer;
	pthread_mutex_t lock;
	struct locks locks;
	struct index index;
	struct store_wal *wal; /* has locks of its own */
	struct report *report; /* of damaged pages; or NULL */
	atomic_bool noted;     /* that there is a damaged page */
	struct store_spare spare;
};

/* An open file of one connection: SQLite uses it in one thread at a time. */
struct file {
	sqlite3_file base;
	struct store_vfs *vfs;
	struct store_file *file;
	const char *path; /* constant; owned by SQLite */
	bool log;
	bool sums;    /* its pages have checksums */
	bool alone;   /* another database, which one connection makes: no locks */
	bool created; /* its name may not be on stable storage */
	int level;    /* SQLITE_LOCK_... */
	unsigned shared, exclusive; /* slots of the index that it has locked */
	bool mapped;
};

static _Thread_local int last_errno;

int store_vfs_errno(void)
{
	int err = last_errno;

	last_errno = 0;
	return err;
}

/* The result for SQLite of a failure of the layer. */
static int translate_layer_error(int rc, int code)
{
	last_errno = -rc;
	if (rc == -ENOSPC || rc == -EDQUOT)
		return SQLITE_FULL;
	return rc == -ENOMEM ? SQLITE_IOERR_NOMEM : code;
}

/* -- checksums of pages: the last bytes of each page of the database, which SQLite does not use -- */

uint32_t store_page_sum(uint32_t number, const void *page)
{
	uint8_t bytes[4];

	put32(bytes, number);
	return store_crc(store_crc(0, bytes, sizeof(bytes)), page, STORE_DB_PAGE - STORE_DB_SPARE);
}

bool store_page_is_zero(const void *page)
{
	const uint8_t *bytes = page;

	return !bytes[0] && memcmp(bytes, bytes + 1, STORE_DB_PAGE - 1) == 0;
}

bool store_page_is_sound(uint32_t number, const void *page)
{
	const uint8_t *sum = (const uint8_t *)page + STORE_DB_PAGE - STORE_DB_SPARE;

	return get32(sum) == store_page_sum(number, page);
}

static bool is_whole_page(int size, sqlite3_int64 offset)
{
	return size == STORE_DB_PAGE && offset % STORE_DB_PAGE == 0;
}

/* The number of a page, as SQLite counts. */
static uint32_t get_page_number(sqlite3_int64 offset)
{
	return (uint32_t)(offset / STORE_DB_PAGE) + 1;
}

/* The next start looks at all pages. */
static void note_damage(struct store_vfs *vfs)
{
	const struct store_layer_ops *ops = vfs->layer->ops;
	char path[PATH_ROOM + 16];
	struct store_file *file;

	snprintf(path, sizeof(path), "%s/" STORE_DAMAGED, vfs->folder);
	if (ops->open(vfs->layer, path, STORE_OPEN_WRITE | STORE_OPEN_CREATE, &file))
		return;
	ops->close(file);
	ops->sync_dir(vfs->layer, vfs->folder);
}

/* A page is damaged: the copy may have it. */
static int replace_page(struct file *f, uint32_t number, uint8_t *data)
{
	struct store_vfs *vfs = f->vfs;
	bool spare = vfs->spare.arg && vfs->spare.page(vfs->spare.arg, number, data);

	if (vfs->report)
		report_damage(
			vfs->report,
			spare ? "%s: page %u is damaged: that of the copy is used, and the next "
				"start repairs it; look at the disk"
			      : "%s: page %u is damaged, and what it holds cannot be read; " REMEDY,
			f->path, (unsigned)number);
	if (spare)
		return SQLITE_OK;
	last_errno = EIO;
	return SQLITE_IOERR_DATA;
}

/* A page in the log is damaged: the log of the copy may have it. */
static int replace_frame(struct file *f, uint64_t offset, uint8_t *data)
{
	struct store_vfs *vfs = f->vfs;
	const struct iovec iov = {data, STORE_DB_PAGE};
	bool spare = vfs->spare.arg && vfs->spare.frame(vfs->spare.arg, offset, data) &&
		     store_wal_is_sound(vfs->wal, data, STORE_DB_PAGE, offset);

	if (vfs->report)
		report_damage(
			vfs->report,
			spare ? "%s: the page at byte %llu is damaged, and was repaired from the copy: look at "
				"the disk"
			      : "%s: the page at byte %llu is damaged, and cannot be read: stop the server and "
				"start it again, which keeps what lies in front of it",
			f->path, (unsigned long long)offset);
	/* If it fails, as in a file for reading only, the next reader does it. */
	if (spare)
		vfs->layer->ops->pwritev(f->file, &iov, 1, offset);
	if (spare)
		return SQLITE_OK;
	last_errno = EIO;
	return SQLITE_IOERR_DATA;
}

/*
 * A page of the database was read. The header alone is read before the log is looked at, which may have a newer first
 * page. So what all databases have in common there is not taken from the disk.
 */
static int check_page(struct file *f, uint8_t *data, int size, sqlite3_int64 offset)
{
	uint32_t number = get_page_number(offset);

	if (offset == 0 && size == HEADER) {
		data[HEADER_SIZE] = STORE_DB_PAGE >> 8;
		data[HEADER_SIZE + 1] = STORE_DB_PAGE & 0xff;
		data[HEADER_SPARE] = STORE_DB_SPARE;
		return SQLITE_OK;
	}
	if (!is_whole_page(size, offset) || store_page_is_sound(number, data))
		return SQLITE_OK;
	if (!atomic_exchange(&f->vfs->noted, true))
		note_damage(f->vfs);
	return replace_page(f, number, data);
}

/* Nothing of `data` is changed, since the log has the page as it is. */
static ssize_t write_page(struct file *f, const uint8_t *data, sqlite3_int64 offset)
{
	uint8_t sum[STORE_DB_SPARE];
	const struct iovec iov[] = {{(void *)(uintptr_t)data, STORE_DB_PAGE - STORE_DB_SPARE},
				    {sum, STORE_DB_SPARE}};

	/* Without room for it, the checksum would destroy the page. */
	if (offset == 0 && data[HEADER_SPARE] != STORE_DB_SPARE)
		return -EINVAL;
	put32(sum, store_page_sum(get_page_number(offset), data));
	return f->vfs->layer->ops->pwritev(f->file, iov, 2, (uint64_t)offset);
}

/* -- contents -- */

static int file_close(sqlite3_file *base)
{
	struct file *f = (struct file *)base;

	f->file->layer->ops->close(f->file);
	return SQLITE_OK;
}

/* Bytes of the log that SQLite wrote, but that are not in the file yet. */
static int settle_log_bytes(struct file *f, uint64_t offset, size_t size)
{
	return f->log ? store_wal_settle(f->vfs->wal, f->file, offset, size) : 0;
}

static int file_read(sqlite3_file *base, void *data, int size, sqlite3_int64 offset)
{
	struct file *f = (struct file *)base;
	const struct iovec iov = {data, (size_t)size};
	int rc = settle_log_bytes(f, (uint64_t)offset, (size_t)size);
	ssize_t n = rc ? rc : f->vfs->layer->ops->preadv(f->file, &iov, 1, (uint64_t)offset, false);

	if (n < 0)
		return translate_layer_error((int)n, SQLITE_IOERR_READ);
	memset((char *)data + n, 0, (size_t)(size - n));
	if (f->sums && n)
		return check_page(f, data, size, offset);
	if (f->log && n == STORE_DB_PAGE && size == n &&
	    !store_wal_is_sound(f->vfs->wal, data, STORE_DB_PAGE, (uint64_t)offset))
		return replace_frame(f, (uint64_t)offset, data);
	return n == size ? SQLITE_OK : SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *data, int size, sqlite3_int64 offset)
{
	struct file *f = (struct file *)base;
	const struct iovec iov = {(void *)data, (size_t)size};
	ssize_t n;

	if (f->log) {
		int rc =
			store_wal_write(f->vfs->wal, f->file, data, (size_t)size, (uint64_t)offset);

		return rc ? translate_layer_error(rc, SQLITE_IOERR_WRITE) : SQLITE_OK;
	}
	if (f->sums && !is_whole_page(size, offset))
		return translate_layer_error(-EINVAL, SQLITE_IOERR_WRITE);
	n = f->sums ? store_wal_moves(f->vfs->wal) : 0;
	if (n < 0)
		return translate_layer_error((int)n, SQLITE_IOERR_WRITE);
	n = f->sums ? write_page(f, data, offset)
		    : f->vfs->layer->ops->pwritev(f->file, &iov, 1, (uint64_t)offset);
	return n == size ? SQLITE_OK
			 : translate_layer_error(n < 0 ? (int)n : -EIO, SQLITE_IOERR_WRITE);
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
	struct file *f = (struct file *)base;
	int rc;

	if (f->log)
		rc = store_wal_truncate(f->vfs->wal, f->file, (uint64_t)size);
	else
		rc = f->vfs->layer->ops->truncate(f->file, (uint64_t)size);
	return rc ? translate_layer_error(rc, SQLITE_IOERR_TRUNCATE) : SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags)
{
	struct file *f = (struct file *)base;
	const struct store_layer_ops *ops = f->vfs->layer->ops;
	int rc = settle_log_bytes(f, 0, SIZE_MAX);

	(void)flags;
	if (!rc)
		rc = f->log ? store_wal_flush(f->vfs->wal, f->file) : ops->sync(f->file);
	if (!rc && f->created) {
		rc = ops->sync_dir(f->vfs->layer, f->vfs->folder);
		f->created = rc != 0;
	}
	return rc ? translate_layer_error(rc, SQLITE_IOERR_FSYNC) : SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
	struct file *f = (struct file *)base;
	uint64_t length = 0;
	int rc = settle_log_bytes(f, 0, SIZE_MAX);

	if (!rc)
		rc = f->vfs->layer->ops->size(f->file, &length);
	*size = (sqlite3_int64)length;
	return rc ? translate_layer_error(rc, SQLITE_IOERR_FSTAT) : SQLITE_OK;
}

/* -- locks of the database: several connections, one process -- */

static int take_database_lock(struct locks *locks, struct file *f, int level)
{
	assert(level > f->level);
	if (locks->exclusive && locks->exclusive != f)
		return SQLITE_BUSY;
	switch (level) {
	case SQLITE_LOCK_SHARED:
		if (locks->pending && locks->pending != f)
			return SQLITE_BUSY;
		locks->shared++;
		break;
	case SQLITE_LOCK_RESERVED:
		if (locks->reserved && locks->reserved != f)
			return SQLITE_BUSY;
		locks->reserved = f;
		break;
	default:
		if ((locks->pending && locks->pending != f) ||
		    (locks->reserved && locks->reserved != f))
			return SQLITE_BUSY;
		locks->pending = f;
		f->level = SQLITE_LOCK_PENDING;
		if (locks->shared > 1)
			return SQLITE_BUSY;
		locks->exclusive = f;
	}
	f->level = level;
	return SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level)
{
	struct file *f = (struct file *)base;
	int rc = SQLITE_OK;

	pthread_mutex_lock(&f->vfs->lock);
	if (f->alone)
		f->level = level;
	else if (f->level < level)
		rc = take_database_lock(&f->vfs->locks, f, level);
	pthread_mutex_unlock(&f->vfs->lock);
	return rc;
}

static int file_unlock(sqlite3_file *base, int level)
{
	struct file *f = (struct file *)base;
	struct locks *locks = &f->vfs->locks;

	pthread_mutex_lock(&f->vfs->lock);
	if (f->alone) {
		f->level = level;
	} else if (f->level > level) {
		if (locks->reserved == f)
			locks->reserved = NULL;
		if (locks->pending == f)
			locks->pending = NULL;
		if (locks->exclusive == f)
			locks->exclusive = NULL;
		assert(level != SQLITE_LOCK_NONE || locks->shared > 0);
		if (level == SQLITE_LOCK_NONE)
			locks->shared--;
		f->level = level;
	}
	pthread_mutex_unlock(&f->vfs->lock);
	return SQLITE_OK;
}

static int file_check_reserved(sqlite3_file *base, int *reserved)
{
	struct file *f = (struct file *)base;

	pthread_mutex_lock(&f->vfs->lock);
	*reserved = f->vfs->locks.reserved != NULL;
	pthread_mutex_unlock(&f->vfs->lock);
	return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int op, void *arg)
{
	(void)base, (void)op, (void)arg;
	return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *base)
{
	(void)base;
	return 4096;
}

static int file_device(sqlite3_file *base)
{
	(void)base;
	return SQLITE_IOCAP_POWERSAFE_OVERWRITE;
}

/* -- the index of the log -- */

static int index_map(sqlite3_file *base, int number, int size, int extend, void volatile **region)
{
	struct file *f = (struct file *)base;
	struct index *index = &f->vfs->index;
	int rc = SQLITE_OK;

	*region = NULL;
	if (size != REGION)
		return SQLITE_IOERR_SHMSIZE;
	pthread_mutex_lock(&f->vfs->lock);
	if (!f->mapped) {
		f->mapped = true;
		index->users++;
	}
	while (extend && index->regions <= number) {
		void **grown = realloc(index->region,
				       (size_t)(index->regions + 1) * sizeof(*grown));
		void *memory = grown ? calloc(1, REGION) : NULL;

		if (grown)
			index->region = grown;
		if (!memory) {
			rc = SQLITE_IOERR_NOMEM;
			break;
		}
		index->region[index->regions++] = memory;
	}
	if (number < index->regions)
		*region = index->region[number];
	pthread_mutex_unlock(&f->vfs->lock);
	return rc;
}

static bool slots_free(const struct index *index, const struct file *f, unsigned mask,
		       bool exclusive)
{
	for (int i = 0; i < SQLITE_SHM_NLOCK; i++) {
		if (!(mask >> i & 1))
			continue;
		if (index->exclusive[i] && index->exclusive[i] != f)
			return false;
		if (exclusive && index->shared[i] > (f->shared >> i & 1))
			return false;
	}
	return true;
}

static void slots_lock(struct index *index, struct file *f, unsigned mask, bool exclusive)
{
	for (int i = 0; i < SQLITE_SHM_NLOCK; i++) {
		if (!(mask >> i & 1))
			continue;
		if (exclusive)
			index->exclusive[i] = f;
		else if (!(f->shared >> i & 1))
			index->shared[i]++;
	}
	if (exclusive)
		f->exclusive |= mask;
	else
		f->shared |= mask;
}

static void slots_unlock(struct index *index, struct file *f, unsigned mask)
{
	for (int i = 0; i < SQLITE_SHM_NLOCK; i++) {
		if (!(mask >> i & 1))
			continue;
		assert(!(f->shared >> i & 1) || index->shared[i] > 0);
		if (f->shared >> i & 1)
			index->shared[i]--;
		if (index->exclusive[i] == f)
			index->exclusive[i] = NULL;
	}
	f->shared &= ~mask;
	f->exclusive &= ~mask;
}

static int index_lock(sqlite3_file *base, int first, int count, int flags)
{
	struct file *f = (struct file *)base;
	struct index *index = &f->vfs->index;
	unsigned mask = ((1u << count) - 1) << first;
	bool exclusive = (flags & SQLITE_SHM_EXCLUSIVE) != 0;
	int rc = SQLITE_OK;

	assert(first >= 0 && count > 0 && first + count <= SQLITE_SHM_NLOCK);
	pthread_mutex_lock(&f->vfs->lock);
	if (flags & SQLITE_SHM_UNLOCK)
		slots_unlock(index, f, mask);
	else if (slots_free(index, f, mask, exclusive))
		slots_lock(index, f, mask, exclusive);
	else
		rc = SQLITE_BUSY;
	pthread_mutex_unlock(&f->vfs->lock);
	return rc;
}

static void index_barrier(sqlite3_file *base)
{
	(void)base;
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static int index_unmap(sqlite3_file *base, int remove)
{
	struct file *f = (struct file *)base;
	struct index *index = &f->vfs->index;

	(void)remove;
	pthread_mutex_lock(&f->vfs->lock);
	slots_unlock(index, f, f->shared | f->exclusive);
	assert(!f->mapped || index->users > 0);
	if (f->mapped && --index->users == 0) {
		for (int i = 0; i < index->regions; i++)
			free(index->region[i]);
		free(index->region);
		index->region = NULL;
		index->regions = 0;
	}
	f->mapped = false;
	pthread_mutex_unlock(&f->vfs->lock);
	return SQLITE_OK;
}

static const sqlite3_io_methods methods = {
	.iVersion = 2,
	.xClose = file_close,
	.xRead = file_read,
	.xWrite = file_write,
	.xTruncate = file_truncate,
	.xSync = file_sync,
	.xFileSize = file_size,
	.xLock = file_lock,
	.xUnlock = file_unlock,
	.xCheckReservedLock = file_check_reserved,
	.xFileControl = file_control,
	.xSectorSize = file_sector,
	.xDeviceCharacteristics = file_device,
	.xShmMap = index_map,
	.xShmLock = index_lock,
	.xShmBarrier = index_barrier,
	.xShmUnmap = index_unmap,
};

/* -- names -- */

static int vfs_open(sqlite3_vfs *base, const char *path, sqlite3_file *out, int flags,
		    int *out_flags)
{
	struct store_vfs *vfs = (struct store_vfs *)base;
	struct file *f = (struct file *)out;
	unsigned open = flags & SQLITE_OPEN_READWRITE ? STORE_OPEN_WRITE : 0;
	int rc;

	memset(f, 0, sizeof(*f));
	if (!path || (flags & SQLITE_OPEN_DELETEONCLOSE))
		return SQLITE_CANTOPEN; /* temporary files stay in memory */
	f->vfs = vfs;
	f->path = path;
	f->log = (flags & SQLITE_OPEN_WAL) != 0;
	f->alone = (flags & SQLITE_OPEN_MAIN_DB) && strcmp(path, vfs->database) != 0;
	f->sums = flags & SQLITE_OPEN_MAIN_DB;
	rc = vfs->layer->ops->open(vfs->layer, path, open, &f->file);
	if (rc == -ENOENT && (flags & SQLITE_OPEN_CREATE)) {
		f->created = true;
		rc = vfs->layer->ops->open(vfs->layer, path, open | STORE_OPEN_CREATE, &f->file);
	}
	if (rc)
		return translate_layer_error(rc, SQLITE_CANTOPEN);
	f->base.pMethods = &methods;
	if (out_flags)
		*out_flags = flags;
	return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *base, const char *path, int sync)
{
	struct store_vfs *vfs = (struct store_vfs *)base;
	int rc = vfs->layer->ops->unlink(vfs->layer, path);

	if (rc == -ENOENT)
		return SQLITE_IOERR_DELETE_NOENT;
	if (!rc && strcmp(path, vfs->log) == 0)
		store_wal_removed(vfs->wal);
	if (!rc && sync)
		rc = vfs->layer->ops->sync_dir(vfs->layer, vfs->folder);
	return rc ? translate_layer_error(rc, SQLITE_IOERR_DELETE) : SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *base, const char *path, int flags, int *result)
{
	struct store_vfs *vfs = (struct store_vfs *)base;
	struct store_file *file;
	uint64_t length = 0;
	int rc = vfs->layer->ops->open(vfs->layer, path, 0, &file);

	*result = 0;
	if (rc == -ENOENT)
		return SQLITE_OK;
	if (rc)
		return translate_layer_error(rc, SQLITE_IOERR_ACCESS);
	rc = vfs->layer->ops->size(file, &length);
	vfs->layer->ops->close(file);
	if (rc)
		return translate_layer_error(rc, SQLITE_IOERR_ACCESS);
	*result = flags != SQLITE_ACCESS_EXISTS || length > 0;
	return SQLITE_OK;
}

static int vfs_full_path(sqlite3_vfs *base, const char *path, int size, char *out)
{
	(void)base;
	return snprintf(out, (size_t)size, "%s", path) < size ? SQLITE_OK : SQLITE_CANTOPEN;
}

static int vfs_random(sqlite3_vfs *base, int size, char *out)
{
	ssize_t n = getrandom(out, (size_t)size, 0);

	(void)base;
	return n < 0 ? 0 : (int)n;
}

static int vfs_sleep(sqlite3_vfs *base, int us)
{
	const struct timespec time = {us / 1000000, us % 1000000 * 1000L};

	(void)base;
	nanosleep(&time, NULL);
	return us;
}

static int vfs_time(sqlite3_vfs *base, sqlite3_int64 *ms)
{
	struct timespec now;

	(void)base;
	clock_gettime(CLOCK_REALTIME, &now);
	/* Milliseconds since the epoch of Julian days. */
	*ms = 210866760000000ll + now.tv_sec * 1000ll + now.tv_nsec / 1000000;
	return SQLITE_OK;
}

static int vfs_time_days(sqlite3_vfs *base, double *days)
{
	sqlite3_int64 ms;
	int rc = vfs_time(base, &ms);

	*days = (double)ms / 86400000.0;
	return rc;
}

static int vfs_last_error(sqlite3_vfs *base, int size, char *text)
{
	(void)base, (void)size, (void)text;
	return last_errno;
}

/* -- the VFS -- */

int store_vfs_create(struct store_layer *layer, int (*before_log_sync)(void *arg), void *arg,
		     struct store_vfs **out)
{
	return store_vfs_create_in(layer, "meta", before_log_sync, arg, out);
}

int store_vfs_create_in(struct store_layer *layer, const char *folder,
			int (*before_log_sync)(void *arg), void *arg, struct store_vfs **out)
{
	struct store_vfs *vfs = calloc(1, sizeof(*vfs));

	assert(strlen(folder) + 8 < PATH_ROOM);
	*out = NULL;
	if (!vfs)
		return -ENOMEM;
	snprintf(vfs->folder, PATH_ROOM, "%s", folder);
	snprintf(vfs->database, PATH_ROOM, "%.48s/db", folder);
	snprintf(vfs->log, PATH_ROOM, "%.48s/db-wal", folder);
	snprintf(vfs->mark, PATH_ROOM, "%.48s/mark", folder);
	vfs->layer = layer;
	pthread_mutex_init(&vfs->lock, NULL);
	snprintf(vfs->name, sizeof(vfs->name), "store-%p", (void *)vfs);
	vfs->base = (sqlite3_vfs){
		.iVersion = 2,
		.szOsFile = sizeof(struct file),
		.mxPathname = 64,
		.zName = vfs->name,
		.xOpen = vfs_open,
		.xDelete = vfs_delete,
		.xAccess = vfs_access,
		.xFullPathname = vfs_full_path,
		.xRandomness = vfs_random,
		.xSleep = vfs_sleep,
		.xCurrentTime = vfs_time_days,
		.xGetLastError = vfs_last_error,
		.xCurrentTimeInt64 = vfs_time,
	};
	if (store_wal_create(layer, vfs->mark, vfs->log, before_log_sync, arg, &vfs->wal) == 0) {
		if (sqlite3_vfs_register(&vfs->base, 0) == SQLITE_OK) {
			*out = vfs;
			return 0;
		}
		store_wal_destroy(vfs->wal);
	}
	pthread_mutex_destroy(&vfs->lock);
	free(vfs);
	return -ENOMEM;
}

void store_vfs_destroy(struct store_vfs *vfs)
{
	if (!vfs)
		return;
	sqlite3_vfs_unregister(&vfs->base);
	store_wal_destroy(vfs->wal);
	pthread_mutex_destroy(&vfs->lock);
	free(vfs);
}

void store_vfs_report(struct store_vfs *vfs, struct report *report)
{
	vfs->report = report;
}

void store_vfs_spare(struct store_vfs *vfs, const struct store_spare *spare)
{
	vfs->spare = *spare;
}

const char *store_vfs_name(const struct store_vfs *vfs)
{
	return vfs->name;
}

struct store_wal *store_vfs_wal(struct store_vfs *vfs)
{
	return vfs->wal;
}

int store_vfs_recover(struct store_vfs *vfs, enum store_past *past)
{
	return store_wal_recover(vfs->wal, past);
}

int store_vfs_begin(struct store_vfs *vfs, bool strict)
{
	return store_wal_begin(vfs->wal, strict);
}

int store_vfs_mark(struct store_vfs *vfs)
{
	return store_wal_move(vfs->wal);
}

int store_vfs_emptied(struct store_vfs *vfs)
{
	return store_wal_emptied(vfs->wal);
}

int store_vfs_end(struct store_vfs *vfs)
{
	return store_wal_end(vfs->wal);
}

uint64_t store_vfs_log_size(const struct store_vfs *vfs)
{
	return store_wal_size(vfs->wal);
}
