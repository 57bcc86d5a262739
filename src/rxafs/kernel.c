/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The kernel's caches. Notifications can wait for requests that this program has not answered yet, so threads
 * of their own write them, without locks that a request takes.
 */
#include "rxafs/kernel.h"

#include <assert.h>
#include <errno.h>
#include <linux/fuse.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/htable.h"
#include "rxafs/lanes.h"

/*
 * Threads. One may wait for a page that is being read or for the lock of a directory, as long as a server does not answer, so few of
 * them work for one server or cell.
 */
#define FLUSHERS 256
/* How long a server waits for the kernel (K-163). */
#define SETTLE_NS (100 * NS_PER_MS)

/* Expired names of directories are expired once more after this time. */
#define AGAIN_NS (1 * (uint64_t)NS_PER_S)
/* Of the kernel's protocol: names can be expired. */
#define EXPIRE_MINOR 38
#ifndef FUSE_EXPIRE_ONLY
#	define FUSE_EXPIRE_ONLY 1
#endif

/* A name that the kernel may keep. */
struct given {
	void *link;
	uint64_t hash;
	bool directory;
	size_t length;
	char name[];
};

/* What is known of an object that the kernel holds. */
struct known {
	struct mount *mount;
	pthread_mutex_t lock; /* of the names */
	struct htable names;
	bool has_names;
	uint64_t name_changes; /* that were told */
	uint64_t generation;
	_Atomic uint64_t contents; /* of the kernel's pages; 0 = unknown */
	atomic_uint waiting;	   /* changes that a flusher has not yet taken */
};

struct work {
	struct lane_item item;
	rxafs_object *object;
	struct rxafs_awaited server; /* whose requests the kernel may wait for */
	/* Names of directories that are expired for the second time, when it is `due`. */
	struct given *names;
	uint64_t due;
	struct work *next; /* of those that are due later */
};

struct flusher {
	pthread_t threads[FLUSHERS];
	unsigned count, idle;
	pthread_mutex_t lock;
	pthread_cond_t some, done;
	struct lanes lanes;
	struct work *later, **last_later; /* in the order of `due` */
	uint64_t added, finished;	  /* pieces of work; finished ones may be any of them */
	bool ending;
};

static uint64_t hash_given(const void *item, const uint64_t key[2])
{
	(void)key;
	return ((const struct given *)item)->hash;
}

static uint64_t hash_given_name(const char *name, size_t length)
{
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (uint8_t)name[i]) * 1099511628211u;
	return hash ^ hash >> 32;
}

static void free_names(struct given *names)
{
	while (names) {
		struct given *next = names->link;

		free(names);
		names = next;
	}
}

static void drop_known(void *data)
{
	struct known *known = data;

	if (known->has_names)
		htable_fini(&known->names, free);
	pthread_mutex_destroy(&known->lock);
	free(known);
}

/* NULL: no memory; then the kernel keeps nothing of it. */
static struct known *get_known(struct mount *mount, rxafs_object *object)
{
	struct known *known = rxafs_own_data(object);

	if (known)
		return known;
	known = calloc(1, sizeof *known);
	if (!known)
		return NULL;
	known->mount = mount;
	known->generation = atomic_fetch_add(&mount->generation, 1) + 1;
	pthread_mutex_init(&known->lock, NULL);
	return rxafs_set_own_data(object, known, drop_known);
}

static struct given *find_given(struct known *known, uint64_t hash, const char *name, size_t length)
{
	for (struct given *g = htable_first(&known->names, hash); g; g = g->link)
		if (g->hash == hash && g->length == length && !memcmp(g->name, name, length))
			return g;
	return NULL;
}

/* With the lock. */
static bool add_given(struct known *known, const char *name, bool directory)
{
	size_t length = strlen(name);
	uint64_t hash = hash_given_name(name, length);
	struct given *g;

	if (!known->has_names)
		known->has_names = htable_init(&known->names, offsetof(struct given, link),
					       hash_given, NULL, 0);
	if (!known->has_names)
		return false;
	g = find_given(known, hash, name, length);
	if (g) {
		g->directory = directory;
		return true;
	}
	g = malloc(sizeof *g + length + 1);
	if (!g)
		return false;
	g->hash = hash;
	g->directory = directory;
	g->length = length;
	memcpy(g->name, name, length + 1);
	htable_add(&known->names, g);
	return true;
}

void kernel_note_name(struct mount *mount, rxafs_object *directory, const char *name,
		      bool is_directory)
{
	struct known *known = mount->keep_names ? get_known(mount, directory) : NULL;

	if (!known)
		return;
	pthread_mutex_lock(&known->lock);
	add_given(known, name, is_directory);
	pthread_mutex_unlock(&known->lock);
}

uint64_t kernel_begin_look(struct mount *mount, rxafs_object *directory)
{
	struct known *known = mount->keep_names ? get_known(mount, directory) : NULL;
	uint64_t changes = 0;

	if (!known)
		return 0;
	pthread_mutex_lock(&known->lock);
	changes = known->name_changes;
	pthread_mutex_unlock(&known->lock);
	return changes;
}

/* False: the names have changed since, or it cannot be noted; then the kernel must not keep it. */
static bool note_look(struct mount *mount, const struct kernel_look *look, bool directory)
{
	struct known *known = mount->keep_names ? get_known(mount, look->directory) : NULL;
	bool noted;

	if (!known)
		return false;
	pthread_mutex_lock(&known->lock);
	noted = known->name_changes == look->begun && add_given(known, look->name, directory);
	pthread_mutex_unlock(&known->lock);
	return noted;
}

static bool may_keep(struct mount *mount, const struct rxafs_attributes *attributes)
{
	return mount->keep_names && (!mount->many_users || attributes->for_all);
}

static double seconds_of(uint64_t ns)
{
	return ns > 3600 * (uint64_t)NS_PER_S ? 3600.0 : (double)ns / NS_PER_S;
}

double kernel_attribute_time(struct mount *mount, const struct rxafs_attributes *attributes)
{
	return may_keep(mount, attributes) ? seconds_of(attributes->valid_ns) : 0;
}

static double name_time(struct mount *mount, const struct kernel_look *look,
			const struct rxafs_attributes *attributes, bool directory)
{
	if (!may_keep(mount, attributes) || !attributes->name_valid_ns ||
	    !note_look(mount, look, directory))
		return 0;
	return seconds_of(attributes->name_valid_ns);
}

double kernel_missing_time(struct mount *mount, const struct kernel_look *look,
			   const struct rxafs_attributes *attributes)
{
	return name_time(mount, look, attributes, false);
}

/*
 * The kernel refuses access lists of POSIX, which cp -p and sed -i set, to all but the owner, and git trusts no
 * folder of another user. The numbers of owners in AFS belong to no user of this machine.
 */
void kernel_show_owner(const struct mount *mount, struct stat *stat)
{
	if (!mount->own_files)
		return;
	stat->st_uid = getuid();
	stat->st_gid = getgid();
}

void kernel_fill_entry(struct mount *mount, const struct kernel_look *look, rxafs_object *object,
		       const struct rxafs_attributes *attributes, struct fuse_entry_param *entry)
{
	struct known *known = get_known(mount, object);

	*entry = (struct fuse_entry_param){
		.ino = object_node(mount, object),
		.generation = known ? known->generation : 0,
		.attr = attributes->stat,
		.attr_timeout = known ? kernel_attribute_time(mount, attributes) : 0,
	};
	kernel_show_owner(mount, &entry->attr);
	/*
	 * To unhash the name of a directory would take it out of the kernel's tree, and the working directories of
	 * processes with it. A kernel that cannot expire such names asks for them each time.
	 */
	if (known && !attributes->volatile_name &&
	    (mount->can_expire || !S_ISDIR(attributes->stat.st_mode)))
		entry->entry_timeout =
			name_time(mount, look, attributes, S_ISDIR(attributes->stat.st_mode));
}

bool kernel_keeps_pages(struct mount *mount, rxafs_object *object, uint64_t contents)
{
	struct known *known = get_known(mount, object);

	return known && atomic_exchange(&known->contents, contents) == contents && contents;
}

void kernel_begin(struct mount *mount, unsigned minor)
{
	mount->can_expire = minor >= EXPIRE_MINOR;
}

/* -- invalidation ------------------------------------------------------------------------- */

/* libfuse offers it only with protocols that it speaks itself. */
static void expire_name(struct mount *mount, fuse_ino_t node, const struct given *g)
{
	struct fuse_notify_inval_entry_out entry = {
		.parent = node,
		.namelen = (uint32_t)g->length,
#if FUSE_KERNEL_MINOR_VERSION >= EXPIRE_MINOR
		.flags = FUSE_EXPIRE_ONLY
#else
		.padding = FUSE_EXPIRE_ONLY
#endif
	};
	struct fuse_out_header header = {
		.error = FUSE_NOTIFY_INVAL_ENTRY,
		.len = (uint32_t)(sizeof header + sizeof entry + g->length + 1)};
	struct iovec iov[3] = {{&header, sizeof header},
			       {&entry, sizeof entry},
			       {(void *)(uintptr_t)g->name, g->length + 1}};

	/* ENOENT: the kernel knows no such name. */
	if (writev(mount->device, iov, 3) < 0)
		return;
}

static void push_later(struct flusher *f, rxafs_object *object, struct given *names)
{
	struct work *work = malloc(sizeof *work);

	if (!work) {
		free_names(names);
		return;
	}
	*work = (struct work){.object = rxafs_hold(object),
			      .server = rxafs_awaited_of(object),
			      .names = names,
			      .due = monotonic_ns() + AGAIN_NS};
	pthread_mutex_lock(&f->lock);
	*f->last_later = work;
	f->last_later = &work->next;
	pthread_cond_signal(&f->some);
	pthread_mutex_unlock(&f->lock);
}

/*
 * A look-up that asks for an expired name again is not kept out by the directory's lock: the kernel may store its answer, from before the change,
 * after the notification. So names of directories are expired twice. Other names are unhashed, where a late answer does no harm.
 */
static void forget_names(struct mount *mount, struct known *known, rxafs_object *object,
			 fuse_ino_t node)
{
	struct given *again = NULL, *next;
	struct htable names;

	pthread_mutex_lock(&known->lock);
	if (!known->has_names) {
		pthread_mutex_unlock(&known->lock);
		return;
	}
	names = known->names;
	known->has_names = false;
	pthread_mutex_unlock(&known->lock);
	for (size_t i = 0; i < names.size; i++)
		for (struct given *g = *htable_chain(&names, i); g; g = next) {
			next = g->link;
			if (g->directory) {
				expire_name(mount, node, g);
				g->link = again;
				again = g;
			} else {
				fuse_lowlevel_notify_inval_entry(mount->session, node, g->name,
								 g->length);
				free(g);
			}
		}
	htable_fini(&names, NULL);
	if (again)
		push_later(mount->flusher, object, again);
}

static void flush_object(struct mount *mount, rxafs_object *object)
{
	struct known *known = rxafs_own_data(object);
	fuse_ino_t node = object_node(mount, object);
	unsigned what = atomic_exchange(&known->waiting, 0);

	if (what & RXAFS_CHANGED_NAMES)
		forget_names(mount, known, object, node);
	/* A negative offset leaves the pages alone. */
	if (what)
		fuse_lowlevel_notify_inval_inode(mount->session, node,
						 what & RXAFS_CHANGED_DATA ? 0 : -1, 0);
}

static void do_work(struct mount *mount, struct work *work)
{
	if (!work->names) {
		flush_object(mount, work->object);
	} else {
		for (struct given *g = work->names; g; g = g->link)
			expire_name(mount, object_node(mount, work->object), g);
	}
}

static void free_work(struct work *work)
{
	rxafs_release(work->object);
	free_names(work->names);
	free(work);
}

static void *flush_loop(void *arg);

/* With the lock: another thread, if there is work that may begin. */
static void wake_flusher(struct mount *mount, struct flusher *f)
{
	if (!lanes_ready(&f->lanes))
		return;
	if (f->idle)
		pthread_cond_signal(&f->some);
	else if (!f->ending && f->count < FLUSHERS &&
		 !pthread_create(&f->threads[f->count], NULL, flush_loop, mount))
		f->count++;
}

/* With the lock. */
static void queue_due_work(struct flusher *f)
{
	while (f->later && (f->ending || f->later->due <= monotonic_ns())) {
		struct work *work = f->later;

		if (!lanes_add(&f->lanes, &work->server, &work->item))
			return;
		f->later = work->next;
		if (!f->later)
			f->last_later = &f->later;
	}
}

/* With the lock. NULL: the end. */
static struct work *take_flush_work(struct mount *mount, struct flusher *f)
{
	for (;;) {
		struct work *work;

		queue_due_work(f);
		work = (struct work *)lanes_take(&f->lanes, f->ending);
		if (work) {
			/* This one may be long. */
			wake_flusher(mount, f);
			return work;
		}
		if (f->ending)
			return NULL;
		f->idle++;
		if (f->later)
			monotonic_wait(&f->some, &f->lock, f->later->due);
		else
			pthread_cond_wait(&f->some, &f->lock);
		f->idle--;
	}
}

static void *flush_loop(void *arg)
{
	struct mount *mount = arg;
	struct flusher *f = mount->flusher;
	struct work *work;

	pthread_mutex_lock(&f->lock);
	while ((work = take_flush_work(mount, f))) {
		struct lane *lane = work->item.lane;
		bool ending = f->ending, counted = !work->names;
		uint64_t started = work->item.started;

		pthread_mutex_unlock(&f->lock);
		if (!ending)
			do_work(mount, work);
		free_work(work);
		pthread_mutex_lock(&f->lock);
		lanes_done(&f->lanes, lane, started);
		if (counted) {
			f->finished++;
			pthread_cond_broadcast(&f->done);
		}
	}
	pthread_mutex_unlock(&f->lock);
	return NULL;
}

void flusher_changed(void *arg, rxafs_object *object, unsigned what)
{
	struct mount *mount = arg;
	struct flusher *f = mount->flusher;
	struct known *known = f ? rxafs_own_data(object) : NULL;
	struct work *work;

	/* What the kernel does not know it need not forget. */
	if (!known)
		return;
	if (what & RXAFS_CHANGED_NAMES) {
		pthread_mutex_lock(&known->lock);
		known->name_changes++;
		pthread_mutex_unlock(&known->lock);
	}
	if (atomic_fetch_or(&known->waiting, what))
		return;
	work = malloc(sizeof *work);
	if (!work) {
		atomic_store(&known->waiting, 0);
		return;
	}
	*work = (struct work){.object = rxafs_hold(object), .server = rxafs_awaited_of(object)};
	pthread_mutex_lock(&f->lock);
	if (!f->ending && lanes_add(&f->lanes, &work->server, &work->item)) {
		f->added++;
		wake_flusher(mount, f);
		work = NULL;
	}
	pthread_mutex_unlock(&f->lock);
	if (work) {
		atomic_store(&known->waiting, 0);
		free_work(work);
	}
}

void flusher_settle(void *arg)
{
	struct flusher *f = ((struct mount *)arg)->flusher;
	uint64_t until = monotonic_ns() + SETTLE_NS, goal;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	goal = f->added;
	while (f->finished < goal && !f->ending)
		if (monotonic_wait(&f->done, &f->lock, until) == ETIMEDOUT)
			break;
	pthread_mutex_unlock(&f->lock);
}

int flusher_start(struct mount *mount)
{
	struct flusher *f = calloc(1, sizeof *f);

	if (!f)
		return -ENOMEM;
	pthread_mutex_init(&f->lock, NULL);
	monotonic_cond_init(&f->done);
	monotonic_cond_init(&f->some);
	f->last_later = &f->later;
	f->lanes.most = FLUSHERS;
	mount->flusher = f;
	if (pthread_create(&f->threads[0], NULL, flush_loop, mount))
		return -EAGAIN;
	f->count = 1;
	return 0;
}

void flusher_stop(struct mount *mount)
{
	struct flusher *f = mount->flusher;

	if (!f)
		return;
	pthread_mutex_lock(&f->lock);
	f->ending = true;
	pthread_cond_broadcast(&f->some);
	pthread_cond_broadcast(&f->done);
	pthread_mutex_unlock(&f->lock);
	for (unsigned i = 0; i < f->count; i++)
		pthread_join(f->threads[i], NULL);
}

void flusher_free(struct mount *mount)
{
	struct flusher *f = mount->flusher;

	if (!f)
		return;
	mount->flusher = NULL;
	lanes_free(&f->lanes);
	pthread_cond_destroy(&f->some);
	pthread_cond_destroy(&f->done);
	pthread_mutex_destroy(&f->lock);
	free(f);
}
