/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * afscp bench --mix: clients that read, write, create and remove files, each in a directory of its
 * own below one that is made for the run and removed after it. Each client is a thread with a
 * socket and one call at a time. A call that fails is repeated as the operations of librxafs are.
 */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "afs/fetch.h"
#include "afs/fetchstatus.h"
#include "afs/numbers.h"
#include "common/clock.h"
#include "common/grow.h"
#include "program/message.h"
#include "program/number.h"
#include "afscp/commands.h"
#include "afscp/load.h"
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
	struct run *run;
	struct load load;
	struct mix_spec spec;
	uint8_t *data;	  /* spec.most bytes */
	struct spot base; /* the directory of the run */
	AFSFid base_fid;
	char *label; /* of it */
	struct worker *workers;
	size_t count;
	uint64_t deadline_ns; /* set before the start */
	atomic_bool stop;     /* the end of the run, an error or a signal */
	atomic_bool failed;
	atomic_bool aborting; /* calls, after a second signal */
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
	pthread_t thread;
	size_t index;
	char label[400];
	pthread_mutex_t lock; /* of: */
	rxw_call *running;    /* or NULL */
	AFSFid dir;
	struct file *files;
	size_t file_count, room;
	uint64_t next; /* number of the next new file */
	uint64_t random;
	uint64_t bytes[MIX_OPS];
	struct tools_histogram latency[MIX_OPS];
};

static void format_mix_name(char name[32], const struct file *f)
{
	snprintf(name, 32, "f%llu", (unsigned long long)f->number);
}

/* ---- single calls; 0 or a negative errno, with the failure in the attempt ---- */

static int note_mix_failure(struct worker *w, struct attempt *t, int number, const char *text)
{
	struct rxafs_failure *f = &t->request.failure;

	f->number = number;
	f->volume = w->mix->load.fid.Volume;
	load_name_server(&w->mix->load, f->server, sizeof(f->server));
	snprintf(f->text, sizeof(f->text), "%s", text);
	return -number;
}

/* A call, on a new connection after a failure. 0 or a negative errno. */
static int begin_mix_call(struct worker *w, struct attempt *t, bool moves_data, rxw_call **call)
{
	const struct rxw_call_options co = {
		.size = sizeof(co),
		.deadline_ms = moves_data ? 0 : (unsigned)t->run->set.timeout_ms};
	struct load *load = &w->mix->load;
	int rc = t->value < 0 ? -RXW_ECALL : 0;

	if (rc == 0)
		rc = bare_begin(load->clients[w->index], &co, call);
	/* The connection has failed, perhaps since the last call. */
	if (rc == -RXW_ECALL) {
		rc = load_reconnect(load, w->index, t->error.code);
		if (rc == 0)
			rc = bare_begin(load->clients[w->index], &co, call);
	}
	if (rc < 0) {
		t->request.failure.origin = RXAFS_FROM_NETWORK;
		return note_mix_failure(w, t, ETIMEDOUT, tools_result_text(rc));
	}
	pthread_mutex_lock(&w->lock);
	w->running = *call;
	if (atomic_load(&w->mix->aborting))
		rxw_call_abort(*call, RXW_USER_ABORT);
	pthread_mutex_unlock(&w->lock);
	return 0;
}

static int judge_mix_call(struct worker *w, struct attempt *t, int32_t code, enum rxw_origin origin)
{
	struct rxafs_failure *f = &t->request.failure;
	bool peer = origin == RXW_ORIGIN_PEER;
	struct afs_error error;

	afs_error_code(&error, "", code, origin);
	f->code = code;
	f->origin = peer ? RXAFS_FROM_SERVER : RXAFS_FROM_NETWORK;
	/* A server that starts or stops also refuses the rest of calls that the one before it has served. */
	f->maybe_done = t->op != CHANGE_NONE && (!peer || (code < 0 && code >= RXW_RESTARTING));
	return note_mix_failure(w, t,
				tools_renewal_expired(code, origin) ? EKEYEXPIRED
				: !peer				    ? ETIMEDOUT
				: error.number			    ? error.number
								    : EIO,
				t->op == CHANGE_NONE ? "FetchData64" : "a change");
}

/* `why`: the reply makes no sense; or NULL. */
static int end_mix_call(struct worker *w, struct attempt *t, rxw_call *call, int32_t code,
			const char *why)
{
	enum rxw_origin origin = RXW_ORIGIN_NONE;

	pthread_mutex_lock(&w->lock);
	w->running = NULL;
	pthread_mutex_unlock(&w->lock);
	code = rxw_call_end(call, code, &origin);
	if (code == 0 && !why)
		return 0;
	if (atomic_load(&w->mix->aborting))
		return -EINTR;
	if (why && (code == 0 || code == RXW_USER_ABORT)) {
		t->request.failure.origin = RXAFS_FROM_NETWORK;
		return note_mix_failure(w, t, EIO, why);
	}
	return judge_mix_call(w, t, code, origin);
}

static const char *check_mix_status(int32_t code, const AFSFetchStatus *status)
{
	return code == 0 && !afs_status_usable(status) ? "malformed status" : NULL;
}

static int fetch_once(struct worker *w, struct attempt *t, const struct file *f, uint64_t *length)
{
	enum afs_fetch_result result;
	struct afs_fetch fetch;
	rxw_call *call;
	int rc = begin_mix_call(w, t, true, &call);

	if (rc < 0)
		return rc;
	afs_fetch_init(&fetch, &f->fid, 0, f->length ? f->length : 1);
	result = afs_fetch_drop(&fetch, call);
	rc = end_mix_call(w, t, call, result == AFS_FETCH_DONE ? 0 : RXW_USER_ABORT, fetch.why);
	if (rc == 0)
		bare_promised(w->mix->load.clients[w->index], &fetch.fid, &fetch.callback);
	*length = fetch.length;
	return rc;
}

static int store_once(struct worker *w, struct attempt *t, const AFSFid *fid, uint64_t length)
{
	const AFSStoreStatus how = {.Mask = AFS_SETMODTIME, .ClientModTime = (uint32_t)time(NULL)};
	AFSFetchStatus status;
	AFSVolSync sync;
	rxw_call *call;
	int32_t code;
	int rc = begin_mix_call(w, t, true, &call);

	if (rc < 0)
		return rc;
	code = StartRXAFS_StoreData64(call, fid, &how, 0, length, length);
	if (code == 0 && rxw_call_write(call, w->mix->data, length) != (ssize_t)length)
		code = RXW_USER_ABORT; /* the end tells the code of the call */
	if (code == 0)
		code = EndRXAFS_StoreData64(call, &status, &sync);
	return end_mix_call(w, t, call, code, check_mix_status(code, &status));
}

static int stat_once(struct worker *w, struct attempt *t, const AFSFid *fid)
{
	AFSFetchStatus status;
	AFSCallBack callback;
	AFSVolSync sync;
	rxw_call *call;
	int32_t code;
	int rc = begin_mix_call(w, t, false, &call);

	if (rc < 0)
		return rc;
	code = StartRXAFS_FetchStatus(call, fid)
		       ?: EndRXAFS_FetchStatus(call, &status, &callback, &sync);
	rc = end_mix_call(w, t, call, code, check_mix_status(code, &status));
	if (rc == 0)
		bare_promised(w->mix->load.clients[w->index], fid, &callback);
	return rc;
}

/* CreateFile or MakeDir. */
static int make_once(struct worker *w, struct attempt *t, const AFSFid *dir, const char *name,
		     AFSFid *fid)
{
	bool directory = t->op == CHANGE_MKDIR;
	const AFSStoreStatus how = {.Mask = AFS_SETMODTIME | AFS_SETMODE,
				    .ClientModTime = (uint32_t)time(NULL),
				    .UnixModeBits = directory ? 0755 : 0644};
	AFSFetchStatus status, dir_status;
	AFSCallBack callback;
	AFSVolSync sync;
	rxw_call *call;
	int32_t code;
	int rc = begin_mix_call(w, t, false, &call);

	if (rc < 0)
		return rc;
	if (directory)
		code = StartRXAFS_MakeDir(call, dir, name, &how)
			       ?: EndRXAFS_MakeDir(call, fid, &status, &dir_status, &callback,
						   &sync);
	else
		code = StartRXAFS_CreateFile(call, dir, name, &how)
			       ?: EndRXAFS_CreateFile(call, fid, &status, &dir_status, &callback,
						      &sync);
	rc = end_mix_call(w, t, call, code, check_mix_status(code, &status));
	if (rc == 0)
		bare_promised(w->mix->load.clients[w->index], fid, &callback);
	return rc;
}

static int remove_once(struct worker *w, struct attempt *t, const char *name)
{
	AFSFetchStatus status;
	AFSVolSync sync;
	rxw_call *call;
	int rc = begin_mix_call(w, t, false, &call);

	if (rc < 0)
		return rc;
	return end_mix_call(w, t, call,
			    StartRXAFS_RemoveFile(call, &w->dir, name)
				    ?: EndRXAFS_RemoveFile(call, &status, &sync),
			    NULL);
}

/* ---- operations; 0, or -1 after a message ---- */

static int read_mix_file(struct worker *w, const struct file *f)
{
	struct attempt t = attempt_begin(w->mix->run, CHANGE_NONE, w->label);
	uint64_t length = 0;

	while (attempt_again(&t, fetch_once(w, &t, f, &length)))
		;
	if (t.value < 0)
		return -1;
	w->bytes[MIX_READ] += length;
	if (length == f->length)
		return 0;
	tools_error("%s: a file has %llu bytes instead of %llu", w->label,
		    (unsigned long long)length, (unsigned long long)f->length);
	return -1;
}

static int write_mix_file(struct worker *w, struct file *f, enum mix_op op)
{
	struct attempt t = attempt_begin(w->mix->run, CHANGE_STORE, w->label);
	uint64_t length = mix_size(&w->mix->spec, mix_random(&w->random));

	while (attempt_again(&t, store_once(w, &t, &f->fid, length)))
		;
	if (t.value < 0)
		return -1;
	f->length = length;
	w->bytes[op] += length;
	return 0;
}

static int stat_mix_file(struct worker *w, const struct file *f)
{
	struct attempt t = attempt_begin(w->mix->run, CHANGE_NONE, w->label);

	while (attempt_again(&t, stat_once(w, &t, &f->fid)))
		;
	return t.value < 0 ? -1 : 0;
}

static int create_mix_file(struct worker *w)
{
	struct attempt t = attempt_begin(w->mix->run, CHANGE_CREATE, w->label);
	char name[32];
	struct file *f;

	if (!grow_array(&w->files, &w->room, w->file_count, sizeof(*w->files))) {
		tools_error("no memory");
		return -1;
	}
	f = &w->files[w->file_count];
	/* Each try has a name of its own: an earlier one, whose answer was lost, may have made a file. */
	do {
		*f = (struct file){.number = w->next++};
		format_mix_name(name, f);
	} while (attempt_again(&t, make_once(w, &t, &w->dir, name, &f->fid)));
	if (t.value < 0)
		return -1;
	w->file_count++;
	return write_mix_file(w, f, MIX_CREATE);
}

static int remove_mix_file(struct worker *w, struct file *f)
{
	struct attempt t = attempt_begin(w->mix->run, CHANGE_REMOVE, w->label);
	char name[32];

	format_mix_name(name, f);
	while (attempt_again(&t, remove_once(w, &t, name)))
		;
	if (t.value < 0)
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
	struct attempt t = attempt_begin(w->mix->run, CHANGE_MKDIR, w->label);
	unsigned tries = 0;
	char name[48];

	snprintf(w->label, sizeof(w->label), "%.360s/client%zu", w->mix->base.label, w->index);
	do
		snprintf(name, sizeof(name), tries ? "client%zu.%u" : "client%zu", w->index, tries);
	while (tries++, attempt_again(&t, make_once(w, &t, &w->mix->base_fid, name, &w->dir)));
	if (t.value < 0)
		return -1;
	for (uint64_t i = 0; i < t.run->set.files && !atomic_load(&w->mix->stop); i++)
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
	atomic_store(&m->stop, true);
	if (!atomic_exchange(&m->signal, number))
		return true;
	atomic_store(&m->aborting, true);
	for (size_t i = 0; i < m->count; i++) {
		pthread_mutex_lock(&m->workers[i].lock);
		if (m->workers[i].running)
			rxw_call_abort(m->workers[i].running, RXW_USER_ABORT);
		pthread_mutex_unlock(&m->workers[i].lock);
	}
	return false;
}

/* Returns the number of clients that have a thread; if some have none, the run has failed, after a message. */
static size_t start_workers(struct mix *m)
{
	for (size_t i = 0; i < m->count; i++) {
		struct worker *w = &m->workers[i];
		int rc;

		w->random = i + 1;
		for (int op = 0; op < MIX_OPS; op++)
			tools_histogram_init(&w->latency[op]);
		rc = pthread_create(&w->thread, NULL, run_worker, w);
		if (rc) {
			tools_error("cannot start a thread: %s; use fewer clients", strerror(rc));
			fail_mix(m);
			return i;
		}
	}
	return m->count;
}

/* Let all clients run, from one moment on, and wait for them; *usage is what that took. */
static void run_workers(struct mix *m, size_t started, struct tools_usage *usage,
			struct counters *before)
{
	struct tools_usage from, to;

	pthread_mutex_lock(&m->lock);
	while (m->ready < started)
		pthread_cond_wait(&m->wake, &m->lock);
	load_counters(&m->load, before);
	tools_usage_now(&from);
	m->deadline_ns = monotonic_ns() + m->run->set.seconds_ms * 1000000;
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
	load_describe(&m->load, stats, o);
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

	load_counters(&m->load, &now);
	now = tools_stats_between(before, &now);
	o = make_mix_report(m, usage, &now);
	if (m->run->set.json)
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

/* Make the directory of the run in that of the command line. 0, or -1 after a message. */
static int make_base(struct mix *m)
{
	uint32_t number = 0;
	char name[64], *label;

	if (m->load.attributes.kind != RXAFS_DIRECTORY) {
		tools_error("%s is no directory, as --mix needs", m->load.label);
		return -1;
	}
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = (uint32_t)getpid();
	snprintf(name, sizeof(name), "afscp-bench.%08x", number);
	label = m->label = place_join(m->load.label, name);
	if (!label || spot_look(m->run, m->load.object, name, label, &m->base) != COPY_GOOD ||
	    make_directory(m->run, &m->base, 0755) != COPY_GOOD)
		return -1;
	spot_free(&m->base);
	if (spot_look(m->run, m->load.object, name, label, &m->base) != COPY_GOOD)
		return -1;
	m->base_fid = (AFSFid){m->load.fid.Volume, m->base.attributes.fid.vnode,
			       m->base.attributes.fid.unique};
	return 0;
}

static int parse_mix_options(struct mix *m)
{
	const struct copy_settings *set = &m->run->set;

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

/* Everything between the making and the removal of the directory. */
static int run_in_base(struct mix *m)
{
	int status = TOOLS_EXIT_FAILURE;
	struct tools_usage usage;
	struct counters before;

	run_workers(m, start_workers(m), &usage, &before);
	if (!atomic_load(&m->failed))
		status = report_mix(m, &usage, &before);
	/* The server would have to tell the clients of the removal. */
	load_end(&m->load);
	m->run->set.recursive = m->run->set.force = true;
	if (remove_spot(m->run, &m->base) != COPY_GOOD)
		status = TOOLS_EXIT_FAILURE;
	return status;
}

static int run_mix_load(struct mix *m)
{
	int status = TOOLS_EXIT_FAILURE;

	m->workers = calloc(m->count, sizeof(*m->workers));
	m->data = malloc(m->spec.most + 1);
	if (!m->workers || !m->data) {
		tools_error("memory is exhausted by %zu clients", m->count);
		return status;
	}
	for (uint64_t i = 0; i < m->spec.most; i++)
		m->data[i] = (uint8_t)(i * 7 + (i >> 8));
	for (size_t i = 0; i < m->count; i++) {
		m->workers[i].mix = m;
		m->workers[i].index = i;
		pthread_mutex_init(&m->workers[i].lock, NULL);
	}
	if (load_find(&m->load, m->run) == 0 && load_open(&m->load, m->count) == 0) {
		run_set_interrupt(m->run, stop_mix, m);
		if (make_base(m) == 0)
			status = run_in_base(m);
		run_set_interrupt(m->run, NULL, NULL);
	}
	load_close(&m->load);
	for (size_t i = 0; i < m->count; i++) {
		pthread_mutex_destroy(&m->workers[i].lock);
		free(m->workers[i].files);
	}
	return status;
}

int load_mix(struct run *run)
{
	struct mix m = {.run = run, .count = (size_t)run->set.clients};
	int status = TOOLS_EXIT_USAGE;

	if (parse_mix_options(&m) < 0)
		return status;
	pthread_mutex_init(&m.lock, NULL);
	pthread_cond_init(&m.wake, NULL);
	status = run_mix_load(&m);
	/* It ends by the signal that stopped the run. */
	if (atomic_load(&m.signal))
		atomic_store(&run->signal, atomic_load(&m.signal));
	pthread_cond_destroy(&m.wake);
	pthread_mutex_destroy(&m.lock);
	spot_free(&m.base);
	free(m.label);
	free(m.data);
	free(m.workers);
	return status;
}
