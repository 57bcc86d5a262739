/* SPDX-License-Identifier: BSD-2-Clause */
/* A layer in a folder of its own that counts what passes, and fails on demand. */
#include "tests/tools/testing.h"
#include "tests/volume/store/spy.h"

struct spy_file {
	struct store_file file;
	struct store_file *below;
	bool data; /* an object */
};

static struct spy *spy_of(struct store_layer *layer)
{
	return (struct spy *)(void *)layer;
}

static struct store_layer *below(struct store_layer *layer)
{
	return spy_of(layer)->below;
}

static struct store_file *file_below(struct store_file *file)
{
	return ((struct spy_file *)(void *)file)->below;
}

static const struct store_layer_ops *ops_below(struct store_file *file)
{
	return spy_of(file->layer)->below->ops;
}

static int spy_open(struct store_layer *layer, const char *path, unsigned flags,
		    struct store_file **file)
{
	struct spy *spy = spy_of(layer);
	struct spy_file *made;
	struct store_file *inner;
	int rc = 0;

	pthread_mutex_lock(&spy->lock);
	if (spy->open_limit && spy->open >= spy->open_limit)
		rc = -EMFILE;
	spy->open += rc == 0;
	if (spy->open > spy->most)
		spy->most = spy->open;
	pthread_mutex_unlock(&spy->lock);
	if (rc)
		return rc;
	rc = spy->below->ops->open(spy->below, path, flags, &inner);
	pthread_mutex_lock(&spy->lock);
	spy->open -= rc != 0;
	spy->opens += rc == 0;
	pthread_mutex_unlock(&spy->lock);
	if (rc)
		return rc;
	made = calloc(1, sizeof(*made));
	ck_assert_ptr_nonnull(made);
	made->file.layer = layer;
	made->below = inner;
	made->data = strncmp(path, "files/", 6) == 0;
	*file = &made->file;
	return 0;
}

static void spy_close(struct store_file *file)
{
	struct spy *spy = spy_of(file->layer);

	ops_below(file)->close(file_below(file));
	free(file);
	pthread_mutex_lock(&spy->lock);
	spy->open--;
	pthread_mutex_unlock(&spy->lock);
}

static ssize_t spy_preadv(struct store_file *file, const struct iovec *iov, int count,
			  uint64_t offset, bool cached)
{
	struct spy *spy = spy_of(file->layer);
	ssize_t n = ops_below(file)->preadv(file_below(file), iov, count, offset, cached);

	pthread_mutex_lock(&spy->lock);
	if (n > 0 && ((struct spy_file *)(void *)file)->data)
		spy->data_read += (uint64_t)n;
	pthread_mutex_unlock(&spy->lock);
	return n;
}

/* With the lock held. */
static void wait_held(struct spy *spy, unsigned kind)
{
	if (spy->pass || !(spy->hold & kind))
		return;
	spy->held++;
	pthread_cond_broadcast(&spy->changed);
	while (spy->hold & kind)
		pthread_cond_wait(&spy->changed, &spy->lock);
	spy->held--;
}

static ssize_t spy_pwritev(struct store_file *file, const struct iovec *iov, int count,
			   uint64_t offset)
{
	struct spy *spy = spy_of(file->layer);
	ssize_t n;

	pthread_mutex_lock(&spy->lock);
	if (((struct spy_file *)(void *)file)->data)
		wait_held(spy, SPY_BYTES);
	pthread_mutex_unlock(&spy->lock);
	n = ops_below(file)->pwritev(file_below(file), iov, count, offset);
	pthread_mutex_lock(&spy->lock);
	if (spy->writes < SPY_WRITES)
		spy->write[spy->writes] = (struct spy_write){offset, n > 0 ? (uint64_t)n : 0};
	spy->writes++;
	if (n > 0 && ((struct spy_file *)(void *)file)->data)
		spy->data_written += (uint64_t)n;
	pthread_mutex_unlock(&spy->lock);
	return n;
}

static int spy_file_truncate(struct store_file *file, uint64_t length)
{
	return ops_below(file)->truncate(file_below(file), length);
}

static int spy_punch(struct store_file *file, uint64_t offset, uint64_t length)
{
	return ops_below(file)->punch(file_below(file), offset, length);
}

static int spy_size(struct store_file *file, uint64_t *length)
{
	return ops_below(file)->size(file_below(file), length);
}

static int spy_sync(struct store_file *file)
{
	struct spy *spy = spy_of(file->layer);
	int rc;

	pthread_mutex_lock(&spy->lock);
	spy->syncs++;
	wait_held(spy, SPY_FILES);
	rc = spy->fail_sync;
	pthread_mutex_unlock(&spy->lock);
	return rc ? rc : ops_below(file)->sync(file_below(file));
}

static int spy_allocate(struct store_file *file, uint64_t offset, uint64_t length)
{
	return ops_below(file)->allocate(file_below(file), offset, length);
}

static int spy_will_need(struct store_file *file, uint64_t offset, uint64_t length)
{
	return ops_below(file)->will_need(file_below(file), offset, length);
}

static int spy_rename(struct store_layer *layer, const char *from, const char *to)
{
	return below(layer)->ops->rename(below(layer), from, to);
}

static int spy_unlink(struct store_layer *layer, const char *path)
{
	int rc = below(layer)->ops->unlink(below(layer), path);
	struct spy *spy = spy_of(layer);

	pthread_mutex_lock(&spy->lock);
	spy->unlinks += rc == 0;
	pthread_mutex_unlock(&spy->lock);
	return rc;
}

static int spy_mkdir(struct store_layer *layer, const char *path)
{
	return below(layer)->ops->mkdir(below(layer), path);
}

static int spy_rmdir(struct store_layer *layer, const char *path)
{
	return below(layer)->ops->rmdir(below(layer), path);
}

static int spy_list(struct store_layer *layer, const char *path, store_list_fn fn, void *arg)
{
	return below(layer)->ops->list(below(layer), path, fn, arg);
}

static int spy_sync_dir(struct store_layer *layer, const char *path)
{
	struct spy *spy = spy_of(layer);
	int rc;

	pthread_mutex_lock(&spy->lock);
	if (spy->dir_syncs < 64)
		snprintf(spy->synced_dir[spy->dir_syncs], sizeof(spy->synced_dir[0]), "%s", path);
	spy->dir_syncs++;
	wait_held(spy, SPY_DIRS);
	rc = spy->fail_sync_dir;
	pthread_mutex_unlock(&spy->lock);
	return rc ? rc : below(layer)->ops->sync_dir(below(layer), path);
}

static int spy_sync_all(struct store_layer *layer)
{
	struct spy *spy = spy_of(layer);
	int rc;

	pthread_mutex_lock(&spy->lock);
	spy->all_syncs++;
	rc = spy->fail_sync;
	pthread_mutex_unlock(&spy->lock);
	return rc ? rc : below(layer)->ops->sync_all(below(layer));
}

static int spy_space(struct store_layer *layer, uint64_t *available, uint64_t *total)
{
	return below(layer)->ops->space(below(layer), available, total);
}

static int spy_lock(struct store_layer *layer, const char *path)
{
	return below(layer)->ops->lock(below(layer), path);
}

static int spy_boot(struct store_layer *layer, char id[64])
{
	return below(layer)->ops->boot(below(layer), id);
}

static const struct store_layer_ops spy_ops = {
	.open = spy_open,
	.close = spy_close,
	.preadv = spy_preadv,
	.pwritev = spy_pwritev,
	.truncate = spy_file_truncate,
	.punch = spy_punch,
	.allocate = spy_allocate,
	.size = spy_size,
	.sync = spy_sync,
	.will_need = spy_will_need,
	.rename = spy_rename,
	.unlink = spy_unlink,
	.mkdir = spy_mkdir,
	.rmdir = spy_rmdir,
	.list = spy_list,
	.sync_dir = spy_sync_dir,
	.sync_all = spy_sync_all,
	.space = spy_space,
	.boot = spy_boot,
	.lock = spy_lock,
};

struct spy *spy_on(const char *folder)
{
	struct spy *spy = calloc(1, sizeof(*spy));

	ck_assert_ptr_nonnull(spy);
	spy->layer.ops = &spy_ops;
	ck_assert_int_eq(store_layer_posix(folder, &spy->below), 0);
	pthread_mutex_init(&spy->lock, NULL);
	pthread_cond_init(&spy->changed, NULL);
	return spy;
}

struct spy *spy_new(void)
{
	char *folder = test_folder();
	struct spy *spy = spy_on(folder);

	spy->folder = folder;
	return spy;
}

void spy_free(struct spy *spy)
{
	char *command;

	ck_assert_uint_eq(spy->open, 0);
	spy->below->ops->destroy(spy->below);
	if (spy->folder) {
		ck_assert_int_gt(asprintf(&command, "rm -rf '%s'", spy->folder), 0);
		ck_assert_int_eq(system(command), 0);
		free(command);
	}
	free(spy->folder);
	pthread_mutex_destroy(&spy->lock);
	pthread_cond_destroy(&spy->changed);
	free(spy);
}

void spy_reset(struct spy *spy)
{
	pthread_mutex_lock(&spy->lock);
	spy->opens = spy->syncs = spy->all_syncs = spy->dir_syncs = spy->unlinks = spy->writes = 0;
	spy->data_read = spy->data_written = 0;
	spy->most = spy->open;
	pthread_mutex_unlock(&spy->lock);
}

void spy_hold(struct spy *spy, unsigned hold)
{
	pthread_mutex_lock(&spy->lock);
	spy->hold = hold;
	pthread_cond_broadcast(&spy->changed);
	pthread_mutex_unlock(&spy->lock);
}

void spy_await_held(struct spy *spy)
{
	pthread_mutex_lock(&spy->lock);
	while (!spy->held)
		pthread_cond_wait(&spy->changed, &spy->lock);
	pthread_mutex_unlock(&spy->lock);
}

void spy_pass(struct spy *spy)
{
	pthread_mutex_lock(&spy->lock);
	spy->pass = true;
	pthread_mutex_unlock(&spy->lock);
}

void spy_truncate(struct spy *spy, const char *path, uint64_t length)
{
	struct store_file *file;

	ck_assert_int_eq(spy->below->ops->open(spy->below, path, STORE_OPEN_WRITE, &file), 0);
	ck_assert_int_eq(spy->below->ops->truncate(file, length), 0);
	spy->below->ops->close(file);
}

bool spy_exists(struct spy *spy, const char *path)
{
	struct store_file *file;

	if (spy->below->ops->open(spy->below, path, 0, &file) < 0)
		return false;
	spy->below->ops->close(file);
	return true;
}
