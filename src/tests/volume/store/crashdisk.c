/* SPDX-License-Identifier: BSD-2-Clause */
/* A disk in memory that loses, tears and reorders what was not flushed. */
#include "tests/volume/store/crashdisk.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512

struct bytes {
	uint8_t *data;
	uint64_t length, room;
};

/* A write that was not flushed; without data: the file was cut or extended to `offset` bytes. */
struct change {
	struct change *next;
	uint64_t offset, size;
	uint8_t *data;
};

struct node {
	struct node *next; /* of all nodes of the disk */
	bool directory;
	struct bytes now, safe;
	struct change *first, **last;
	int error;	   /* of a flush of everything: for the next flush of this file */
	bool lossy;	   /* lost pages, and has not been flushed since */
	struct node *copy; /* while the disk is copied */
};

struct name {
	char path[160];
	struct node *node;
};
struct names {
	struct name *name;
	unsigned count, room;
};

/* A change of names that was not flushed. from "": a new name; to "": a removed one. */
struct move {
	struct move *next;
	char from[160], to[160];
	struct node *node;
};

struct crashdisk {
	pthread_mutex_t lock; /* covers everything */
	struct node *nodes;
	struct names now, safe;
	struct move *first, **last;
	uint64_t calls, stop, stop_seed, fail, fail_more, limit;
	uint64_t reads; /* that succeed before one that fails; UINT64_MAX: none does */
	int fail_errno;
	char lose_path[160]; /* flushes of files below it fail */
	unsigned lose, lost; /* how many more do, and did */
	unsigned regained;   /* files that were written and flushed after such a failure */
	bool lose_memory;
	bool stopped, locked;
	unsigned boots, layers;
};

struct layer {
	struct store_layer base;
	struct crashdisk *disk;
	bool locked;
};

struct open_file {
	struct store_file base;
	struct node *node;
};

_Thread_local volatile bool crashdisk_allocates;

/* More room for `old`, or new room if that is NULL. */
static void *grow(void *old, size_t size)
{
	void *memory;

	crashdisk_allocates = true;
	memory = realloc(old, size ? size : 1);
	crashdisk_allocates = false;
	if (!memory)
		abort();
	return memory;
}

static void *zeroed(size_t size)
{
	return memset(grow(NULL, size), 0, size);
}

uint64_t crashdisk_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15ull;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ z >> 27) * 0x94d049bb133111ebull;
	return z ^ z >> 31;
}

uint64_t crashdisk_random_keep(uint64_t *state)
{
	uint64_t few = crashdisk_random(state) & crashdisk_random(state) &
		       crashdisk_random(state) & crashdisk_random(state);

	switch (crashdisk_random(state) % 4) {
	case 0:
		return few;
	case 1:
		return crashdisk_random(state);
	case 2:
		return ~few;
	default:
		return ~(1ull << crashdisk_random(state) % 8);
	}
}

/* -- contents -- */

static void set_length(struct bytes *bytes, uint64_t length)
{
	if (length > bytes->room) {
		bytes->room = length + length / 2 + 4096;
		bytes->data = grow(bytes->data, bytes->room);
	}
	if (length > bytes->length)
		memset(bytes->data + bytes->length, 0, length - bytes->length);
	bytes->length = length;
}

static void put(struct bytes *bytes, const uint8_t *data, uint64_t size, uint64_t offset)
{
	if (offset + size > bytes->length)
		set_length(bytes, offset + size);
	if (size)
		memcpy(bytes->data + offset, data, size);
}

static void copy_bytes(struct bytes *to, const struct bytes *from)
{
	to->length = 0;
	set_length(to, from->length);
	if (from->length)
		memcpy(to->data, from->data, from->length);
}

static void drop_changes(struct node *node)
{
	struct change *next;

	for (struct change *c = node->first; c; c = next) {
		next = c->next;
		free(c->data);
		free(c);
	}
	node->first = NULL;
	node->last = &node->first;
}

static void add_change(struct node *node, const uint8_t *data, uint64_t size, uint64_t offset)
{
	struct change *c = zeroed(sizeof(*c));

	c->offset = offset;
	c->size = size;
	if (data) {
		c->data = grow(NULL, size);
		memcpy(c->data, data, size);
	}
	*node->last = c;
	node->last = &c->next;
}

/* What was lost by a flush that failed stays lost. */
static void flush_node(struct node *node)
{
	for (const struct change *c = node->first; c; c = c->next) {
		if (c->data)
			put(&node->safe, c->data, c->size, c->offset);
		else
			set_length(&node->safe, c->offset);
	}
	drop_changes(node);
}

/*
 * Linux, when the disk does not take the pages of a file: an error, once, and they count as
 * written. Lengths go to the journal of the file system. `evicted`: the memory was needed for other pages.
 */
static void lose_node(struct node *node, bool evicted)
{
	set_length(&node->safe, node->now.length);
	drop_changes(node);
	if (evicted)
		copy_bytes(&node->now, &node->safe);
}

/* -- names -- */

static struct name *look(struct names *names, const char *path)
{
	for (unsigned i = 0; i < names->count; i++)
		if (strcmp(names->name[i].path, path) == 0)
			return &names->name[i];
	return NULL;
}

static void set_name(struct names *names, const char *path, struct node *node)
{
	struct name *name = look(names, path);

	if (!name) {
		if (names->count == names->room) {
			names->room = names->room * 2 + 16;
			names->name = grow(names->name, names->room * sizeof(*names->name));
		}
		name = &names->name[names->count++];
		snprintf(name->path, sizeof(name->path), "%s", path);
	}
	name->node = node;
}

static void clear_name(struct names *names, const char *path)
{
	struct name *name = look(names, path);

	if (name)
		*name = names->name[--names->count];
}

static void apply_move(struct names *names, const struct move *move)
{
	if (*move->from)
		clear_name(names, move->from);
	if (*move->to)
		set_name(names, move->to, move->node);
}

static void add_move(struct crashdisk *disk, const char *from, const char *to, struct node *node)
{
	struct move *move = zeroed(sizeof(*move));

	snprintf(move->from, sizeof(move->from), "%s", from);
	snprintf(move->to, sizeof(move->to), "%s", to);
	move->node = node;
	*disk->last = move;
	disk->last = &move->next;
	apply_move(&disk->now, move);
}

static void drop_moves(struct crashdisk *disk)
{
	struct move *next;

	for (struct move *m = disk->first; m; m = next) {
		next = m->next;
		free(m);
	}
	disk->first = NULL;
	disk->last = &disk->first;
}

static bool lies_in(const char *path, const char *directory)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;

	return *path && strlen(directory) == n && strncmp(path, directory, n) == 0;
}

static void flush_names(struct crashdisk *disk, const char *directory)
{
	struct move **link = &disk->first, *move;

	while ((move = *link)) {
		if (!lies_in(move->from, directory) && !lies_in(move->to, directory)) {
			link = &move->next;
			continue;
		}
		apply_move(&disk->safe, move);
		*link = move->next;
		free(move);
	}
	disk->last = link;
}

static struct node *new_node(struct crashdisk *disk, bool directory)
{
	struct node *node = zeroed(sizeof(*node));

	node->directory = directory;
	node->last = &node->first;
	node->next = disk->nodes;
	disk->nodes = node;
	return node;
}

/* -- the layer -- */

static struct crashdisk *enter(struct store_layer *layer)
{
	struct crashdisk *disk = ((struct layer *)layer)->disk;

	pthread_mutex_lock(&disk->lock);
	return disk;
}

static int leave(struct crashdisk *disk, int rc)
{
	pthread_mutex_unlock(&disk->lock);
	return rc;
}

/* Count a call: 0; -errno: it fails; 1: the process dies in it, and *seed says what is done. */
static int count(struct crashdisk *disk, uint64_t *seed)
{
	uint64_t call = disk->calls++;

	if (disk->stopped)
		return -EIO;
	if (call >= disk->fail && call - disk->fail <= disk->fail_more)
		return -disk->fail_errno;
	if (call < disk->stop)
		return 0;
	disk->stopped = true;
	*seed = disk->stop_seed ^ call;
	return 1;
}

/* For calls that are done as a whole or not at all: whether to do it, and the result. */
static bool whole(struct crashdisk *disk, int *rc)
{
	uint64_t seed = 0;

	*rc = count(disk, &seed);
	if (*rc <= 0)
		return *rc == 0;
	*rc = -EIO;
	return crashdisk_random(&seed) & 1;
}

static void layer_destroy(struct store_layer *base)
{
	struct layer *layer = (struct layer *)base;
	struct crashdisk *disk = enter(base);

	if (layer->locked)
		disk->locked = false;
	disk->layers--;
	leave(disk, 0);
	free(layer);
}

static bool has_parent(struct crashdisk *disk, const char *path)
{
	const char *slash = strrchr(path, '/');
	char parent[160];
	struct name *name;

	if (!slash)
		return true;
	snprintf(parent, sizeof(parent), "%.*s", (int)(slash - path), path);
	name = look(&disk->now, parent);
	return name && name->node->directory;
}

static int layer_open(struct store_layer *layer, const char *path, unsigned flags,
		      struct store_file **out)
{
	struct crashdisk *disk = enter(layer);
	struct name *name = look(&disk->now, path);
	struct open_file *file;
	struct node *node;
	int rc = 0;

	if (disk->stopped)
		return leave(disk, -EIO);
	if (name && (flags & STORE_OPEN_EXCLUSIVE))
		return leave(disk, -EEXIST);
	if (name && name->node->directory)
		return leave(disk, -EISDIR);
	if (!name && (!(flags & STORE_OPEN_CREATE) || !has_parent(disk, path)))
		return leave(disk, -ENOENT);
	node = name ? name->node : NULL;
	if (!node) {
		if (whole(disk, &rc)) {
			node = new_node(disk, false);
			add_move(disk, "", path, node);
		}
		if (rc)
			return leave(disk, rc);
	}
	file = zeroed(sizeof(*file));
	file->base.layer = layer;
	file->node = node;
	*out = &file->base;
	return leave(disk, 0);
}

static void layer_close(struct store_file *file)
{
	free(file);
}

static ssize_t layer_preadv(struct store_file *base, const struct iovec *iov, int count_of,
			    uint64_t offset, bool cached)
{
	struct open_file *file = (struct open_file *)base;
	struct crashdisk *disk = enter(base->layer);
	ssize_t total = 0;

	(void)cached;
	if (disk->stopped || (disk->reads != UINT64_MAX && disk->reads-- == 0))
		return leave(disk, -EIO);
	for (int i = 0; i < count_of && offset < file->node->now.length; i++) {
		uint64_t n = file->node->now.length - offset;

		if (n > iov[i].iov_len)
			n = iov[i].iov_len;
		memcpy(iov[i].iov_base, file->node->now.data + offset, n);
		offset += n;
		total += (ssize_t)n;
	}
	leave(disk, 0);
	return total;
}

static uint64_t total_length(const struct crashdisk *disk)
{
	uint64_t total = 0;

	for (unsigned i = 0; i < disk->now.count; i++)
		total += disk->now.name[i].node->now.length;
	return total;
}

static ssize_t layer_pwritev(struct store_file *base, const struct iovec *iov, int count_of,
			     uint64_t offset)
{
	struct open_file *file = (struct open_file *)base;
	struct crashdisk *disk = enter(base->layer);
	uint64_t seed = 0, size = 0, at = 0;
	uint8_t *data;
	int rc = count(disk, &seed);

	for (int i = 0; i < count_of; i++)
		size += iov[i].iov_len;
	if (rc == 0 && disk->limit != UINT64_MAX && offset + size > file->node->now.length &&
	    total_length(disk) + offset + size - file->node->now.length > disk->limit)
		rc = -ENOSPC;
	if (rc < 0)
		return leave(disk, rc);
	data = grow(NULL, size);
	for (int i = 0; i < count_of; i++) {
		memcpy(data + at, iov[i].iov_base, iov[i].iov_len);
		at += iov[i].iov_len;
	}
	if (rc == 1)
		size = crashdisk_random(&seed) % (size + 1);
	put(&file->node->now, data, size, offset);
	add_change(file->node, data, size, offset);
	free(data);
	leave(disk, 0);
	return rc == 1 ? -EIO : (ssize_t)size;
}

static int layer_truncate(struct store_file *base, uint64_t length)
{
	struct open_file *file = (struct open_file *)base;
	struct crashdisk *disk = enter(base->layer);
	int rc;

	if (whole(disk, &rc)) {
		set_length(&file->node->now, length);
		add_change(file->node, NULL, 0, length);
	}
	return leave(disk, rc);
}

static int layer_punch(struct store_file *base, uint64_t offset, uint64_t length)
{
	(void)base, (void)offset, (void)length;
	return -EOPNOTSUPP;
}

static int layer_size(struct store_file *base, uint64_t *length)
{
	struct open_file *file = (struct open_file *)base;
	struct crashdisk *disk = enter(base->layer);

	*length = file->node->now.length;
	return leave(disk, disk->stopped ? -EIO : 0);
}

/* A file, or all files in a directory, whose name ends with '/', or all. */
static bool is_below(const char *path, const char *top)
{
	size_t n = strlen(top);

	return !n || (top[n - 1] == '/' ? strncmp(path, top, n) == 0 : strcmp(path, top) == 0);
}

/* Whether a flush of the file is to fail now. */
static bool loses(struct crashdisk *disk, const struct node *node)
{
	for (unsigned i = 0; disk->lose && node->first && i < disk->now.count; i++)
		if (disk->now.name[i].node == node &&
		    is_below(disk->now.name[i].path, disk->lose_path))
			return true;
	return false;
}

static int lose_pages(struct crashdisk *disk, struct node *node)
{
	disk->lose--;
	disk->lost++;
	node->lossy = true;
	lose_node(node, disk->lose_memory);
	return -EIO;
}

static void keep_pages(struct crashdisk *disk, struct node *node)
{
	if (node->lossy && node->first) {
		node->lossy = false;
		disk->regained++;
	}
	flush_node(node);
}

static int layer_sync(struct store_file *base)
{
	struct open_file *file = (struct open_file *)base;
	struct crashdisk *disk = enter(base->layer);
	int rc;

	if (!whole(disk, &rc))
		return leave(disk, rc);
	/* The error of a flush of everything, which the file has not told yet. */
	if (file->node->error) {
		rc = file->node->error;
		file->node->error = 0;
	} else if (loses(disk, file->node)) {
		rc = lose_pages(disk, file->node);
	} else {
		keep_pages(disk, file->node);
	}
	return leave(disk, rc);
}

static int layer_will_need(struct store_file *base, uint64_t offset, uint64_t length)
{
	(void)base, (void)offset, (void)length;
	return 0;
}

static int layer_rename(struct store_layer *layer, const char *from, const char *to)
{
	struct crashdisk *disk = enter(layer);
	struct name *name = look(&disk->now, from);
	int rc;

	if (!name || !has_parent(disk, to))
		return leave(disk, disk->stopped ? -EIO : -ENOENT);
	if (whole(disk, &rc))
		add_move(disk, from, to, name->node);
	return leave(disk, rc);
}

static int layer_unlink(struct store_layer *layer, const char *path)
{
	struct crashdisk *disk = enter(layer);
	struct name *name = look(&disk->now, path);
	int rc;

	if (!name)
		return leave(disk, disk->stopped ? -EIO : -ENOENT);
	if (whole(disk, &rc))
		add_move(disk, path, "", name->node);
	return leave(disk, rc);
}

static int layer_mkdir(struct store_layer *layer, const char *path)
{
	struct crashdisk *disk = enter(layer);
	int rc;

	if (disk->stopped)
		return leave(disk, -EIO);
	if (look(&disk->now, path))
		return leave(disk, -EEXIST);
	if (!has_parent(disk, path))
		return leave(disk, -ENOENT);
	if (whole(disk, &rc))
		add_move(disk, "", path, new_node(disk, true));
	return leave(disk, rc);
}

static int layer_rmdir(struct store_layer *layer, const char *path)
{
	struct crashdisk *disk = enter(layer);
	struct name *name = look(&disk->now, path);
	int rc;

	if (!name)
		return leave(disk, disk->stopped ? -EIO : -ENOENT);
	for (unsigned i = 0; i < disk->now.count; i++)
		if (lies_in(disk->now.name[i].path, path))
			return leave(disk, -ENOTEMPTY);
	if (whole(disk, &rc))
		add_move(disk, path, "", name->node);
	return leave(disk, rc);
}

static int layer_list(struct store_layer *layer, const char *path, store_list_fn fn, void *arg)
{
	struct crashdisk *disk = enter(layer);
	struct names found = {0};
	int rc;

	if (strcmp(path, ".") == 0)
		path = "";
	rc = disk->stopped ? -EIO : *path && !look(&disk->now, path) ? -ENOENT : 0;
	for (unsigned i = 0; !rc && i < disk->now.count; i++)
		if (lies_in(disk->now.name[i].path, path))
			set_name(&found, disk->now.name[i].path, disk->now.name[i].node);
	leave(disk, 0);
	for (unsigned i = 0; !rc && i < found.count; i++) {
		const char *slash = strrchr(found.name[i].path, '/');

		rc = fn(arg, slash ? slash + 1 : found.name[i].path,
			found.name[i].node->directory);
	}
	free(found.name);
	return rc;
}

static int layer_sync_dir(struct store_layer *layer, const char *path)
{
	struct crashdisk *disk = enter(layer);
	int rc;

	if (whole(disk, &rc))
		flush_names(disk, strcmp(path, ".") == 0 ? "" : path);
	return leave(disk, rc);
}

static int flush_all(struct crashdisk *disk)
{
	int rc = 0;

	for (struct node *node = disk->nodes; node; node = node->next) {
		if (loses(disk, node))
			rc = node->error = lose_pages(disk, node);
		else
			keep_pages(disk, node);
	}
	for (struct move *move = disk->first; move; move = move->next)
		apply_move(&disk->safe, move);
	drop_moves(disk);
	return rc;
}

static int layer_sync_all(struct store_layer *layer)
{
	struct crashdisk *disk = enter(layer);
	int rc;

	if (whole(disk, &rc))
		rc = flush_all(disk);
	return leave(disk, rc);
}

static int layer_space(struct store_layer *layer, uint64_t *available, uint64_t *total)
{
	struct crashdisk *disk = enter(layer);
	uint64_t used = total_length(disk);

	*total = disk->limit == UINT64_MAX ? 1ull << 40 : disk->limit;
	*available = used < *total ? *total - used : 0;
	return leave(disk, disk->stopped ? -EIO : 0);
}

static int layer_boot(struct store_layer *layer, char id[64])
{
	struct crashdisk *disk = enter(layer);

	memset(id, 0, 64);
	snprintf(id, 64, "boot-%u", disk->boots);
	return leave(disk, 0);
}

static int layer_lock(struct store_layer *base, const char *path)
{
	struct layer *layer = (struct layer *)base;
	struct crashdisk *disk = enter(base);
	int rc = disk->locked && !layer->locked ? -EBUSY : 0;

	(void)path;
	if (!rc)
		disk->locked = layer->locked = true;
	return leave(disk, rc);
}

static const struct store_layer_ops layer_ops = {
	.destroy = layer_destroy,
	.open = layer_open,
	.close = layer_close,
	.preadv = layer_preadv,
	.pwritev = layer_pwritev,
	.truncate = layer_truncate,
	.punch = layer_punch,
	.size = layer_size,
	.sync = layer_sync,
	.will_need = layer_will_need,
	.rename = layer_rename,
	.unlink = layer_unlink,
	.mkdir = layer_mkdir,
	.rmdir = layer_rmdir,
	.list = layer_list,
	.sync_dir = layer_sync_dir,
	.sync_all = layer_sync_all,
	.space = layer_space,
	.boot = layer_boot,
	.lock = layer_lock,
};

struct store_layer *crashdisk_layer(struct crashdisk *disk)
{
	struct layer *layer = zeroed(sizeof(*layer));

	layer->base.ops = &layer_ops;
	layer->disk = disk;
	pthread_mutex_lock(&disk->lock);
	disk->layers++;
	pthread_mutex_unlock(&disk->lock);
	return &layer->base;
}

/* -- the disk -- */

struct crashdisk *crashdisk_new(void)
{
	struct crashdisk *disk = zeroed(sizeof(*disk));

	pthread_mutex_init(&disk->lock, NULL);
	disk->last = &disk->first;
	disk->stop = disk->fail = disk->limit = disk->reads = UINT64_MAX;
	return disk;
}

void crashdisk_free(struct crashdisk *disk)
{
	struct node *next;

	drop_moves(disk);
	for (struct node *node = disk->nodes; node; node = next) {
		next = node->next;
		drop_changes(node);
		free(node->now.data);
		free(node->safe.data);
		free(node);
	}
	free(disk->now.name);
	free(disk->safe.name);
	pthread_mutex_destroy(&disk->lock);
	free(disk);
}

uint64_t crashdisk_calls(struct crashdisk *disk)
{
	uint64_t calls;

	pthread_mutex_lock(&disk->lock);
	calls = disk->calls;
	pthread_mutex_unlock(&disk->lock);
	return calls;
}

void crashdisk_stop_at(struct crashdisk *disk, uint64_t call, uint64_t seed)
{
	pthread_mutex_lock(&disk->lock);
	disk->stop = call;
	disk->stop_seed = seed;
	pthread_mutex_unlock(&disk->lock);
}

bool crashdisk_stopped(struct crashdisk *disk)
{
	bool stopped;

	pthread_mutex_lock(&disk->lock);
	stopped = disk->stopped;
	pthread_mutex_unlock(&disk->lock);
	return stopped;
}

void crashdisk_fail_at(struct crashdisk *disk, uint64_t call, uint64_t more, int err)
{
	pthread_mutex_lock(&disk->lock);
	disk->fail = call;
	disk->fail_more = more;
	disk->fail_errno = err;
	pthread_mutex_unlock(&disk->lock);
}

void crashdisk_lose(struct crashdisk *disk, const char *path, unsigned times, bool memory)
{
	pthread_mutex_lock(&disk->lock);
	snprintf(disk->lose_path, sizeof(disk->lose_path), "%s", path);
	disk->lose = times;
	disk->lose_memory = memory;
	disk->lost = disk->regained = 0;
	pthread_mutex_unlock(&disk->lock);
}

unsigned crashdisk_lost(struct crashdisk *disk)
{
	unsigned lost;

	pthread_mutex_lock(&disk->lock);
	lost = disk->lost;
	pthread_mutex_unlock(&disk->lock);
	return lost;
}

unsigned crashdisk_regained(struct crashdisk *disk)
{
	unsigned regained;

	pthread_mutex_lock(&disk->lock);
	regained = disk->regained;
	pthread_mutex_unlock(&disk->lock);
	return regained;
}

bool crashdisk_fail_read(struct crashdisk *disk, uint64_t after)
{
	bool waits;

	pthread_mutex_lock(&disk->lock);
	waits = disk->reads != UINT64_MAX;
	disk->reads = after;
	pthread_mutex_unlock(&disk->lock);
	return waits;
}

void crashdisk_limit(struct crashdisk *disk, uint64_t bytes)
{
	pthread_mutex_lock(&disk->lock);
	disk->limit = bytes;
	pthread_mutex_unlock(&disk->lock);
}

uint64_t crashdisk_used(struct crashdisk *disk)
{
	uint64_t used;

	pthread_mutex_lock(&disk->lock);
	used = total_length(disk);
	pthread_mutex_unlock(&disk->lock);
	return used;
}

static void restart(struct crashdisk *disk)
{
	if (disk->layers)
		abort();
	disk->stopped = disk->locked = false;
	disk->stop = disk->fail = UINT64_MAX;
}

void crashdisk_killed(struct crashdisk *disk)
{
	restart(disk);
}

unsigned crashdisk_pending(struct crashdisk *disk)
{
	unsigned n = 0;

	pthread_mutex_lock(&disk->lock);
	for (const struct move *move = disk->first; move; move = move->next)
		n++;
	for (const struct node *node = disk->nodes; node; node = node->next)
		for (const struct change *c = node->first; c; c = c->next)
			n++;
	pthread_mutex_unlock(&disk->lock);
	return n;
}

static bool kept(uint64_t keep, unsigned *item)
{
	return keep >> (*item)++ % 64 & 1;
}

/* Of a write, each sector is there or not. */
static void tear(struct node *node, const struct change *c, uint64_t *seed)
{
	for (uint64_t at = 0; at < c->size;) {
		uint64_t n = SECTOR - (c->offset + at) % SECTOR;

		if (n > c->size - at)
			n = c->size - at;
		if (crashdisk_random(seed) & 1)
			put(&node->safe, c->data + at, n, c->offset + at);
		at += n;
	}
}

static void crash_node(struct node *node, uint64_t keep, unsigned *item, bool torn, uint64_t *seed)
{
	for (const struct change *c = node->first; c; c = c->next) {
		if (!kept(keep, item))
			continue;
		if (!c->data)
			set_length(&node->safe, c->offset);
		else if (torn && crashdisk_random(seed) % 2)
			tear(node, c, seed);
		else
			put(&node->safe, c->data, c->size, c->offset);
	}
	copy_bytes(&node->now, &node->safe);
	drop_changes(node);
}

/* Names in directories that are not there go as well. */
static void drop_orphans(struct crashdisk *disk)
{
	for (unsigned i = 0; i < disk->now.count;) {
		if (has_parent(disk, disk->now.name[i].path)) {
			i++;
			continue;
		}
		disk->now.name[i] = disk->now.name[--disk->now.count];
		i = 0;
	}
}

static void copy_names(struct names *to, const struct names *from)
{
	to->count = 0;
	for (unsigned i = 0; i < from->count; i++)
		set_name(to, from->name[i].path, from->name[i].node);
}

void crashdisk_crashed(struct crashdisk *disk, uint64_t keep, bool torn, uint64_t seed)
{
	unsigned item = 0;

	restart(disk);
	for (const struct move *move = disk->first; move; move = move->next)
		if (kept(keep, &item))
			apply_move(&disk->safe, move);
	drop_moves(disk);
	for (struct node *node = disk->nodes; node; node = node->next)
		crash_node(node, keep, &item, torn, &seed);
	copy_names(&disk->now, &disk->safe);
	drop_orphans(disk);
	copy_names(&disk->safe, &disk->now);
	disk->boots++;
}

struct crashdisk *crashdisk_copy(const struct crashdisk *disk)
{
	struct crashdisk *copy = crashdisk_new();

	for (struct node *node = disk->nodes; node; node = node->next) {
		struct node *n = node->copy = new_node(copy, node->directory);

		copy_bytes(&n->now, &node->now);
		copy_bytes(&n->safe, &node->safe);
		for (const struct change *c = node->first; c; c = c->next)
			add_change(n, c->data, c->size, c->offset);
	}
	for (unsigned i = 0; i < disk->safe.count; i++)
		set_name(&copy->safe, disk->safe.name[i].path, disk->safe.name[i].node->copy);
	copy_names(&copy->now, &copy->safe);
	for (const struct move *move = disk->first; move; move = move->next)
		add_move(copy, move->from, move->to, move->node->copy);
	copy->now.count = 0;
	for (unsigned i = 0; i < disk->now.count; i++)
		set_name(&copy->now, disk->now.name[i].path, disk->now.name[i].node->copy);
	copy->calls = disk->calls;
	copy->boots = disk->boots;
	copy->limit = disk->limit;
	return copy;
}

bool crashdisk_flip(struct crashdisk *disk, const char *path, uint64_t bit)
{
	struct name *name = look(&disk->now, path);

	if (!name || bit / 8 >= name->node->now.length)
		return false;
	name->node->now.data[bit / 8] ^= (uint8_t)(1u << bit % 8);
	flush_node(name->node);
	return true;
}

uint64_t crashdisk_length(const struct crashdisk *disk, const char *path)
{
	struct name *name = look(&((struct crashdisk *)disk)->now, path);

	return name ? name->node->now.length : UINT64_MAX;
}

void crashdisk_list(const struct crashdisk *disk,
		    void (*each)(void *arg, const char *path, uint64_t length), void *arg)
{
	for (unsigned i = 0; i < disk->now.count; i++)
		if (!disk->now.name[i].node->directory)
			each(arg, disk->now.name[i].path, disk->now.name[i].node->now.length);
}
