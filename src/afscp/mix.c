/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp bench --mix: clients that read, write, create and remove files, each in a directory of its
 * own below one that is made for the run and removed after it. Each client is a thread with a
 * socket and one call at a time.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "afs/client/data.h"
#include "afs/dir.h"
#include "common/clock.h"
#include "program/message.h"
#include "program/number.h"
#include "afscp/change.h"
#include "afscp/mix.h"

/* ---- the load ---- */

#define SHARE_MAX 1000000u

static const char *const names[MIX_OPS] = {"read", "write", "stat", "create", "remove"};

static const char *mix_name(enum mix_op op)
{
	return names[op];
}

/* "NAME=SHARE" of `length` bytes. */
static int parse_share(const char *text, size_t length, struct mix_spec *spec)
{
	const char *equals = memchr(text, '=', length);
	char number[16];
	uint64_t share;
	size_t digits;

	if (!equals)
		return -1;
	digits = length - (size_t)(equals + 1 - text);
	if (digits >= sizeof(number))
		return -1;
	memcpy(number, equals + 1, digits);
	number[digits] = 0;
	if (tools_parse_uint(number, &share) < 0 || share > SHARE_MAX)
		return -1;
	for (int op = 0; op < MIX_OPS; op++)
		if (strlen(names[op]) == (size_t)(equals - text) &&
		    memcmp(names[op], text, strlen(names[op])) == 0) {
			spec->share[op] = (uint32_t)share;
			return 0;
		}
	return -1;
}

int mix_parse_shares(const char *text, struct mix_spec *spec)
{
	uint64_t sum = 0;

	memset(spec->share, 0, sizeof(spec->share));
	for (;;) {
		size_t length = strcspn(text, ",");

		if (parse_share(text, length, spec) < 0)
			return -1;
		if (text[length] == 0)
			break;
		text += length + 1;
	}
	for (int op = 0; op < MIX_OPS; op++)
		sum += spec->share[op];
	return sum ? 0 : -1;
}

int mix_parse_size(const char *text, struct mix_spec *spec)
{
	const char *dash = strchr(text, '-');
	uint64_t least, most;
	char first[24];

	if (!dash) {
		if (tools_parse_size(text, &least) < 0 || least > MIX_SIZE_MAX)
			return -1;
		spec->least = spec->most = least;
		return 0;
	}
	if ((size_t)(dash - text) >= sizeof(first))
		return -1;
	memcpy(first, text, (size_t)(dash - text));
	first[dash - text] = 0;
	if (tools_parse_size(first, &least) < 0 || tools_parse_size(dash + 1, &most) < 0 ||
	    least > most || most > MIX_SIZE_MAX)
		return -1;
	spec->least = least;
	spec->most = most;
	return 0;
}

enum mix_op mix_choose(const struct mix_spec *spec, uint64_t random)
{
	uint64_t sum = 0, at;

	for (int op = 0; op < MIX_OPS; op++)
		sum += spec->share[op];
	assert(sum > 0);
	at = (random >> 32) * sum >> 32;
	for (int op = 0; op < MIX_OPS; op++) {
		if (at < spec->share[op])
			return (enum mix_op)op;
		at -= spec->share[op];
	}
	return MIX_READ; /* not reached */
}

uint64_t mix_size(const struct mix_spec *spec, uint64_t random)
{
	assert(spec->least <= spec->most);
	return spec->least + ((random >> 32) * (spec->most - spec->least + 1) >> 32);
}

uint64_t mix_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
	z = (z ^ z >> 27) * 0x94d049bb133111ebu;
	return z ^ z >> 31;
}

#define FILES_MAX 20000u /* of a client; beyond, a file is removed instead of created */

struct mix {
	struct copy *copy;
	struct mix_spec spec;
	uint8_t *data; /* spec.most bytes */
	struct base {
		AFSFid above; /* its directory */
		AFSFid fid;
		char name[64], label[COPY_LABEL];
	} base;
	struct worker *workers;
	size_t count;
	uint64_t deadline_ns; /* set before the start */
	atomic_bool stop;     /* the end of the run, an error or a signal */
	atomic_bool failed;
	atomic_int signal; /* that asked for the end; 0 = none */

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t wake;
	size_t ready; /* workers that have made their files, or failed */
	bool go;
};

struct file {
	AFSFid fid;
	uint64_t length;
	uint64_t number; /* its name */
};

/* One client. The main thread reads the figures after the end of its thread. */
struct worker {
	struct mix *mix;
	struct copy copy;
	pthread_t thread;
	bool started;
	size_t index;
	char label[400];
	AFSFid dir;
	struct file *files;
	size_t file_count, room;
	uint64_t next; /* number of the next new file */
	uint64_t random;
	uint64_t bytes[MIX_OPS];
	struct tools_histogram latency[MIX_OPS];
};

/* ---- operations; 0, or -1 after a message ---- */

static int drop_data(void *arg, struct iovec *iov, unsigned count, uint64_t offset)
{
	(void)arg;
	(void)iov;
	(void)count;
	(void)offset;
	return 0;
}

/* Whether to repeat a failed call that changes nothing but data: 1, or -1 after a message. */
static int may_repeat_call(struct worker *w, struct outage *outage, struct afs_error *error,
			   enum change_op op)
{
	if (change_retry(&w->copy, outage, error, NULL))
		return 1;
	change_complain(&w->copy, op, error);
	return -1;
}

static int read_mix_file(struct worker *w, const struct file *f)
{
	struct outage outage = {0};
	struct afs_fetch fetch;
	struct afs_error error;

	do {
		afs_fetch_init(&fetch, &f->fid, 0, f->length ? f->length : 1);
		if (afs_client_read(w->copy.client, &fetch, w->label, drop_data, NULL, &error) ==
		    0) {
			w->bytes[MIX_READ] += fetch.length;
			if (fetch.length == f->length)
				return 0;
			tools_error("%s: a file has %llu bytes instead of %llu", w->label,
				    (unsigned long long)fetch.length,
				    (unsigned long long)f->length);
			return -1;
		}
	} while (may_repeat_call(w, &outage, &error, CHANGE_STORE) > 0);
	return -1;
}

static int write_mix_file(struct worker *w, struct file *f, enum mix_op op)
{
	uint64_t length = mix_size(&w->mix->spec, mix_random(&w->random));
	struct outage outage = {0};
	struct afs_error error;

	do {
		struct afs_store store = {.fid = f->fid,
					  .how = change_status((uint32_t)time(NULL), (mode_t)-1),
					  .length = length,
					  .data = w->mix->data,
					  .fd = -1};

		if (afs_client_store(w->copy.client, &store, w->label, &error) == 0) {
			f->length = length;
			w->bytes[op] += length;
			return 0;
		}
	} while (may_repeat_call(w, &outage, &error, CHANGE_STORE) > 0);
	return -1;
}

static int stat_mix_file(struct worker *w, const struct file *f)
{
	struct outage outage = {0};
	AFSFetchStatus status;
	struct afs_error error;

	do {
		if (afs_client_status(w->copy.client, &f->fid, w->label, &status, &error) == 0)
			return 0;
	} while (may_repeat_call(w, &outage, &error, CHANGE_STATUS) > 0);
	return -1;
}

static int create_mix_file(struct worker *w)
{
	char name[32];
	struct change c = {.op = CHANGE_CREATE,
			   .label = w->label,
			   .dir = w->dir,
			   .name = name,
			   .how = change_status((uint32_t)time(NULL), 0644)};
	struct file *f;

	if (w->file_count == w->room) {
		size_t room = w->room ? 2 * w->room : 64;
		struct file *more = realloc(w->files, room * sizeof(*more));

		if (!more) {
			tools_error("no memory");
			return -1;
		}
		w->files = more;
		w->room = room;
	}
	f = &w->files[w->file_count];
	*f = (struct file){.number = w->next++};
	snprintf(name, sizeof(name), "f%llu", (unsigned long long)f->number);
	if (change_make(&w->copy, &c) != COPY_GOOD)
		return -1;
	f->fid = c.made.fid;
	w->file_count++;
	return write_mix_file(w, f, MIX_CREATE);
}

static int remove_mix_file(struct worker *w, struct file *f)
{
	char name[32];
	struct change c = {.op = CHANGE_REMOVE, .label = w->label, .dir = w->dir, .name = name};

	snprintf(name, sizeof(name), "f%llu", (unsigned long long)f->number);
	if (change_make(&w->copy, &c) != COPY_GOOD)
		return -1;
	*f = w->files[--w->file_count];
	return 0;
}

static int do_operation(struct worker *w)
{
	enum mix_op op = mix_choose(&w->mix->spec, mix_random(&w->random));
	uint64_t began;
	struct file *f = NULL;
	int rc;

	if (op == MIX_CREATE && w->file_count >= FILES_MAX)
		op = MIX_REMOVE;
	if (w->file_count == 0)
		op = MIX_CREATE;
	else
		f = &w->files[(mix_random(&w->random) >> 32) * w->file_count >> 32];
	copy_fresh(&w->copy);
	began = monotonic_ns();
	rc = op == MIX_READ	? read_mix_file(w, f)
	     : op == MIX_WRITE	? write_mix_file(w, f, MIX_WRITE)
	     : op == MIX_STAT	? stat_mix_file(w, f)
	     : op == MIX_CREATE ? create_mix_file(w)
				: remove_mix_file(w, f);
	if (rc == 0)
		tools_histogram_add(&w->latency[op], monotonic_ns() - began);
	return rc;
}

/* ---- one client ---- */

/* Its directory and its first files. 0, or -1 after a message. */
static int prepare_worker(struct worker *w)
{
	char name[32];
	struct change c = {.op = CHANGE_MKDIR,
			   .label = w->label,
			   .dir = w->mix->base.fid,
			   .name = name,
			   .how = change_status((uint32_t)time(NULL), 0755)};

	snprintf(name, sizeof(name), "client%zu", w->index);
	snprintf(w->label, sizeof(w->label), "%s/%s", w->mix->base.label, name);
	if (copy_locate(&w->copy, w->mix->copy->volume.name, "") < 0 ||
	    change_make(&w->copy, &c) != COPY_GOOD)
		return -1;
	w->dir = c.made.fid;
	for (uint64_t i = 0; i < w->copy.set->files && !atomic_load(&w->mix->stop); i++)
		if (create_mix_file(w) < 0)
			return -1;
	memset(w->bytes, 0, sizeof(w->bytes));
	return 0;
}

static void fail_mix(struct mix *m)
{
	atomic_store(&m->failed, true);
	atomic_store(&m->stop, true);
}

static void *run_worker(void *arg)
{
	struct worker *w = arg;
	struct mix *m = w->mix;
	int rc = prepare_worker(w);

	if (rc < 0)
		fail_mix(m);
	pthread_mutex_lock(&m->lock);
	m->ready++;
	pthread_cond_broadcast(&m->wake);
	while (!m->go)
		pthread_cond_wait(&m->wake, &m->lock);
	pthread_mutex_unlock(&m->lock);
	while (rc == 0 && !atomic_load(&m->stop) && monotonic_ns() < m->deadline_ns)
		rc = do_operation(w);
	if (rc < 0)
		fail_mix(m);
	return NULL;
}

/* ---- the run ---- */

static bool stop_mix(void *arg, int number)
{
	struct mix *m = arg;

	/* The first one ends the run in good order, the second one at once. */
	if (atomic_exchange(&m->signal, number))
		return false;
	atomic_store(&m->stop, true);
	return true;
}

/* Start the clients. 0, or -1 after a message. */
static int start_workers(struct mix *m)
{
	for (size_t i = 0; i < m->count; i++) {
		struct worker *w = &m->workers[i];
		int rc;

		w->mix = m;
		w->index = i;
		w->random = i + 1;
		for (int op = 0; op < MIX_OPS; op++)
			tools_histogram_init(&w->latency[op]);
		if (copy_open(m->copy->run, &w->copy) < 0)
			return -1;
		rc = pthread_create(&w->thread, NULL, run_worker, w);
		if (rc) {
			tools_error("cannot start a thread: %s; use fewer clients", strerror(rc));
			return -1;
		}
		w->started = true;
	}
	return 0;
}

/* Let all clients run, from one moment on, and wait for them; *usage is what that took. */
static void run_workers(struct mix *m, size_t started, struct tools_usage *usage,
			struct counters *before)
{
	struct tools_usage from, to;

	pthread_mutex_lock(&m->lock);
	while (m->ready < started)
		pthread_cond_wait(&m->wake, &m->lock);
	run_counters(m->copy->run, before);
	tools_usage_now(&from);
	m->deadline_ns = monotonic_ns() + m->copy->set->seconds_ms * 1000000;
	m->go = true;
	pthread_cond_broadcast(&m->wake);
	pthread_mutex_unlock(&m->lock);
	for (size_t i = 0; i < started; i++)
		pthread_join(m->workers[i].thread, NULL);
	tools_usage_now(&to);
	*usage = tools_usage_between(&from, &to);
}

static json_t *pack_operation(const struct mix *m, enum mix_op op, double seconds,
			      struct tools_histogram *sum)
{
	uint64_t bytes = 0;

	tools_histogram_init(sum);
	for (size_t i = 0; i < m->count; i++) {
		tools_histogram_merge(sum, &m->workers[i].latency[op]);
		bytes += m->workers[i].bytes[op];
	}
	return json_pack("{s:I, s:f, s:I, s:f, s:f, s:f, s:f, s:f, s:f}", "calls",
			 (json_int_t)sum->count, "calls_per_s",
			 seconds > 0 ? (double)sum->count / seconds : 0, "bytes", (json_int_t)bytes,
			 "MBps", seconds > 0 ? (double)bytes / seconds / 1e6 : 0, "p50_us",
			 (double)tools_histogram_quantile(sum, 0.5) / 1e3, "p99_us",
			 (double)tools_histogram_quantile(sum, 0.99) / 1e3, "p999_us",
			 (double)tools_histogram_quantile(sum, 0.999) / 1e3, "max_us",
			 (double)sum->max / 1e3, "mean_us",
			 sum->count ? tools_histogram_mean(sum) / 1e3 : 0);
}

static json_t *make_mix_report(const struct mix *m, const struct tools_usage *usage,
			       const struct counters *stats)
{
	json_t *o = json_object(), *operations = json_object();
	struct tools_histogram *all = malloc(2 * sizeof(*all));
	uint64_t bytes = 0, calls = 0;

	if (!o || !operations || !all) {
		json_decref(o);
		json_decref(operations);
		free(all);
		return NULL;
	}
	tools_histogram_init(&all[0]);
	for (int op = 0; op < MIX_OPS; op++) {
		json_t *one =
			pack_operation(m, (enum mix_op)op, (double)usage->wall_ns / 1e9, &all[1]);

		tools_histogram_merge(&all[0], &all[1]);
		calls += all[1].count;
		bytes += (uint64_t)json_integer_value(json_object_get(one, "bytes"));
		if (all[1].count)
			json_object_set(operations, mix_name((enum mix_op)op), one);
		json_decref(one);
	}
	json_object_set_new(o, "clients", json_integer((json_int_t)m->count));
	json_object_set_new(o, "size_least", json_integer((json_int_t)m->spec.least));
	json_object_set_new(o, "size_most", json_integer((json_int_t)m->spec.most));
	json_object_set_new(o, "operations", operations);
	tools_report_fill(o, bytes, calls, usage, stats, &all[0]);
	json_object_set_new(o, "config", tools_config_json(&m->copy->run->config));
	json_object_set_new(o, "effective",
			    tools_effective_json(afs_client_endpoint(m->copy->client)));
	json_object_set_new(o, "transport", tools_stats_json(stats));
	json_object_set_new(o, "machine", tools_facts_json());
	json_object_set_new(o, "version", json_string(rxw_version()));
	free(all);
	return o;
}

static void print_operations(json_t *operations)
{
	const char *name;
	json_t *one;

	json_object_foreach(operations, name, one)
	{
		static const char *const keys[] = {"p50_us", "p99_us", "p999_us", "max_us"};
		char times[4][32];

		for (int i = 0; i < 4; i++)
			tools_format_time(
				times[i], sizeof(times[i]),
				(uint64_t)(json_number_value(json_object_get(one, keys[i])) * 1e3));
		printf("  %-9s %lld calls, %.0f calls/s, %.1f MB/s; p50 %s, p99 %s, p99.9 %s, "
		       "max %s\n",
		       name, (long long)json_integer_value(json_object_get(one, "calls")),
		       json_number_value(json_object_get(one, "calls_per_s")),
		       json_number_value(json_object_get(one, "MBps")), times[0], times[1],
		       times[2], times[3]);
	}
}

static int report_mix(const struct mix *m, const struct tools_usage *usage,
		      const struct counters *before)
{
	struct counters now;
	json_t *o;

	run_counters(m->copy->run, &now);
	now = tools_stats_between(before, &now);
	o = make_mix_report(m, usage, &now);
	if (m->copy->set->json)
		return tools_json_print(o) < 0 ? TOOLS_EXIT_FAILURE : 0;
	if (!o) {
		tools_error("no memory");
		return TOOLS_EXIT_FAILURE;
	}
	tools_report_print("bench", o);
	print_operations(json_object_get(o, "operations"));
	json_decref(o);
	return 0;
}

/* Make the directory of the run below the one of the command line. 0, or -1 after a message. */
static int make_base(struct mix *m)
{
	struct copy *copy = m->copy;
	struct afs_object object;
	struct change c = {.op = CHANGE_MKDIR, .label = m->base.label, .name = m->base.name};
	uint32_t number = 0;
	size_t length;

	if (copy_walk(copy, true, &object) < 0)
		return -1;
	if (object.status.FileType != AFS_TYPE_DIR) {
		tools_error("%s:%s is no directory, as --mix needs", copy->volume.name, copy->path);
		return -1;
	}
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint32_t)getpid();
	length = strlen(copy->path);
	snprintf(m->base.name, sizeof(m->base.name), "afscp-bench.%08x", number);
	snprintf(m->base.label, sizeof(m->base.label), "%s:%.200s%s%.32s", copy->volume.name,
		 copy->path, length && copy->path[length - 1] == '/' ? "" : "/", m->base.name);
	c.dir = m->base.above = object.fid;
	c.how = change_status((uint32_t)time(NULL), 0755);
	if (change_make(copy, &c) != COPY_GOOD)
		return -1;
	m->base.fid = c.made.fid;
	return 0;
}

static int parse_mix_options(struct mix *m)
{
	const struct copy_settings *set = m->copy->set;

	m->spec.least = m->spec.most = 4096;
	if (mix_parse_shares(set->mix, &m->spec) < 0) {
		tools_error("option --mix: invalid value \"%s\"; use for example "
			    "read=70,write=20,stat=5,create=3,remove=2",
			    set->mix);
		return -1;
	}
	if (set->size && mix_parse_size(set->size, &m->spec) < 0) {
		tools_error("option --size: invalid value \"%s\"; use a length or a range of at "
			    "most 256M, for example 4K-1M",
			    set->size);
		return -1;
	}
	return 0;
}

/* ---- the end ---- */

#define DEPTH_MAX 1536 /* directories below the one that is removed */

/* Remove a file, a link or an empty directory; with --force it may be gone. After a message. */
static enum copy_result remove_one(struct copy *copy, const AFSFid *dir, const char *name,
				   bool directory, const char *label)
{
	struct change c = {.op = directory ? CHANGE_RMDIR : CHANGE_REMOVE,
			   .label = label,
			   .dir = *dir,
			   .name = name};
	struct afs_error error;
	enum copy_result rc = change_try(copy, &c, &error);

	/* Another client has removed it meanwhile. */
	if (rc != COPY_GOOD && copy->set->force && error.number == ENOENT)
		return COPY_GOOD;
	if (rc != COPY_GOOD)
		change_complain(copy, c.op, &error);
	return rc;
}

static enum copy_result remove_directory(struct copy *copy, const AFSFid *dir, const char *name,
					 const AFSFid *fid, const char *label, unsigned depth);

/* The image of a directory; free() it. */
static enum copy_result read_base_image(struct copy *copy, const AFSFid *fid, const char *label,
					uint8_t **image, size_t *length)
{
	struct outage outage = {0};
	struct afs_error error;

	copy_fresh(copy);
	while (afs_client_contents(copy->client, fid, label,
				   (size_t)AFS_DIR_PAGES_MAX * AFS_DIR_PAGE, image, length,
				   &error) < 0)
		if (!copy_retry_or_complain(copy, &outage, &error))
			return copy_judge(copy, &error);
	if (afs_dir_check(*image, *length) == 0)
		return COPY_GOOD;
	tools_error("%s: the server sent a malformed directory", label);
	free(*image);
	return COPY_FAILED;
}

static enum copy_result remove_image_entry(struct copy *copy, const AFSFid *dir,
					   const struct afs_dir_entry *entry, const char *label,
					   unsigned depth)
{
	const AFSFid fid = {dir->Volume, entry->vnode, entry->unique};
	char *path = copy_join_label(label, entry->name);
	enum copy_result rc = COPY_STOP;

	/* A directory of the volume has an odd number. */
	if (path && fid.Vnode & 1)
		rc = remove_directory(copy, dir, entry->name, &fid, path, depth);
	else if (path)
		rc = remove_one(copy, dir, entry->name, false, path);
	free(path);
	return rc;
}

/* Remove the contents of a directory. COPY_FAILED: something is left. */
static enum copy_result remove_below(struct copy *copy, const AFSFid *fid, const char *label,
				     unsigned depth)
{
	enum copy_result rc, all = COPY_GOOD;
	struct afs_dir_entry entry;
	uint32_t cursor = 0;
	uint8_t *image;
	size_t length;

	if (depth == DEPTH_MAX) {
		tools_error("%s: more than %d directories deep", label, DEPTH_MAX);
		return COPY_FAILED;
	}
	rc = read_base_image(copy, fid, label, &image, &length);
	if (rc != COPY_GOOD)
		return rc;
	while (rc != COPY_STOP && afs_dir_next(image, length, &cursor, &entry) > 0) {
		if (strcmp(entry.name, ".") == 0 || strcmp(entry.name, "..") == 0)
			continue;
		rc = remove_image_entry(copy, fid, &entry, label, depth + 1);
		all = rc == COPY_GOOD ? all : rc;
	}
	free(image);
	return all;
}

static enum copy_result remove_directory(struct copy *copy, const AFSFid *dir, const char *name,
					 const AFSFid *fid, const char *label, unsigned depth)
{
	enum copy_result rc = remove_below(copy, fid, label, depth);

	return rc == COPY_GOOD ? remove_one(copy, dir, name, true, label) : rc;
}

static enum copy_result remove_tree(struct copy *copy, const AFSFid *dir, const char *name,
				    const AFSFid *fid, const char *label)
{
	return remove_directory(copy, dir, name, fid, label, 0);
}

/* Everything between the making and the removal of the directory. */
static int run_in_base(struct mix *m)
{
	int status = TOOLS_EXIT_FAILURE;
	struct tools_usage usage;
	struct counters before;
	size_t started = 0;

	if (start_workers(m) < 0)
		fail_mix(m);
	while (started < m->count && m->workers[started].started)
		started++;
	run_workers(m, started, &usage, &before);
	if (!atomic_load(&m->failed))
		status = report_mix(m, &usage, &before);
	run_give_up(m->copy->run, GIVE_UP_MS);
	for (size_t i = 0; i < m->count; i++) {
		copy_close(&m->workers[i].copy);
		free(m->workers[i].files);
	}
	if (remove_tree(m->copy, &m->base.above, m->base.name, &m->base.fid, m->base.label) !=
	    COPY_GOOD)
		status = TOOLS_EXIT_FAILURE;
	return status;
}

int bench_mix(struct copy *copy)
{
	struct mix m = {.copy = copy, .count = (size_t)copy->set->clients};
	int status = TOOLS_EXIT_USAGE;

	if (parse_mix_options(&m) < 0)
		return status;
	status = TOOLS_EXIT_FAILURE;
	m.workers = calloc(m.count, sizeof(*m.workers));
	m.data = malloc(m.spec.most + 1);
	pthread_mutex_init(&m.lock, NULL);
	pthread_cond_init(&m.wake, NULL);
	if (!m.workers || !m.data) {
		tools_error("memory is exhausted by %zu clients", m.count);
	} else {
		for (uint64_t i = 0; i < m.spec.most; i++)
			m.data[i] = (uint8_t)(i * 7 + (i >> 8));
		run_set_interrupt(copy->run, stop_mix, &m);
		if (make_base(&m) == 0)
			status = run_in_base(&m);
		run_set_interrupt(copy->run, NULL, NULL);
	}
	/* It ends by the signal that stopped the run. */
	if (atomic_load(&m.signal))
		atomic_store(&copy->run->signal, atomic_load(&m.signal));
	pthread_cond_destroy(&m.wake);
	pthread_mutex_destroy(&m.lock);
	free(m.data);
	free(m.workers);
	return status;
}
