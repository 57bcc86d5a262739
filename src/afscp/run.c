/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a run: their clients, retries, and what they report together. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxafs/daemon.h>
#include <rxwire/queue.h>

#include "common/clock.h"
#include "common/held.h"
#include "program/message.h"
#include "program/report.h"
#include "afscp/copy.h"

/* ---- clients ---- */

#define HASTE_MS 500 /* limit for returning promises after an interrupt */

/* Signals cancel the client from now on. 0, or -1 without memory. */
static int register_client(struct run *run, struct afs_client *client)
{
	struct afs_client **more;

	pthread_mutex_lock(&run->lock);
	more = realloc(run->clients, (run->client_count + 1) * sizeof(struct afs_client *));
	if (more) {
		run->clients = more;
		more[run->client_count++] = client;
		if (atomic_load(&run->interrupted))
			afs_client_cancel(client);
	}
	pthread_mutex_unlock(&run->lock);
	return more ? 0 : -1;
}

/* Signals do not reach the client any more; its counters stay. */
static void unregister_client(struct run *run, struct afs_client *client)
{
	struct counters one;

	pthread_mutex_lock(&run->lock);
	if (counters_read(&one, afs_client_endpoint(client)) == 0)
		tools_stats_add(&run->transport, &one);
	for (size_t i = 0; i < run->client_count; i++)
		if (run->clients[i] == client) {
			run->clients[i] = run->clients[--run->client_count];
			break;
		}
	pthread_mutex_unlock(&run->lock);
}

struct afs_client_options run_client_options(const struct run *run)
{
	return (struct afs_client_options){.vl = &run->vl.sa,
					   .vl_len = run->vl.len,
					   .vl_others = run->vl_others,
					   .vl_other_count = run->vl_other_count,
					   .fs_port = run->fs_port,
					   .limit_ms = (unsigned)run->set.timeout_ms};
}

int copy_open(struct run *run, struct copy *copy)
{
	struct afs_client_options o = run_client_options(run);
	struct afs_error error;
	int rc;

	memset(copy, 0, sizeof(*copy));
	copy->run = run;
	copy->set = &run->set;
	pthread_mutex_lock(&run->token_lock);
	o.security = tools_renewal_security(&run->renewal);
	copy->tokens = atomic_load(&run->renewal.count);
	rc = afs_client_open(run->engine, &o, &copy->client, &error);
	pthread_mutex_unlock(&run->token_lock);
	if (rc < 0) {
		copy_complain(copy, &error);
		copy->client = NULL;
		return -1;
	}
	if (register_client(run, copy->client) == 0)
		return 0;
	tools_error("no memory");
	afs_client_close(copy->client);
	copy->client = NULL;
	return -1;
}

void copy_close(struct copy *copy)
{
	if (!copy->client)
		return;
	afs_client_give_up(&copy->client, 1, copy_interrupted(copy) ? HASTE_MS : GIVE_UP_MS);
	unregister_client(copy->run, copy->client);
	afs_client_close(copy->client);
	copy->client = NULL;
}

const char *copy_authentication(const struct copy *copy)
{
	bool anonymous;

	pthread_mutex_lock(&copy->run->token_lock);
	anonymous = !copy->run->renewal.token;
	pthread_mutex_unlock(&copy->run->token_lock);
	return anonymous ? ", and --cell for authentication" : "";
}

/* Add the administrator's message of an off-line volume to the text of the error. */
static void copy_explain(struct copy *copy, struct afs_error *error)
{
	size_t used = strlen(error->text);
	struct afs_space space;
	struct afs_error ignored;

	if (error->code != AFS_VOFFLINE || error->origin != RXW_ORIGIN_PEER || error->explained ||
	    !copy->client || !copy->volume.id)
		return;
	error->explained = true;
	if (afs_client_space(copy->client, copy->volume.id, "", &space, &ignored) == 0 &&
	    *space.message)
		snprintf(error->text + used, sizeof(error->text) - used, ": \"%s\"", space.message);
}

void copy_complain(struct copy *copy, const struct afs_error *error)
{
	struct afs_error told = *error;

	if (copy->silent)
		return;
	copy_explain(copy, &told);
	/* Missing rights of changes are told by change_complain(). */
	if (error->number == EACCES)
		tools_error("%s: you need the right l (lookup) on the directory, and r (read) for "
			    "files; see afscp acl%s",
			    error->text, copy_authentication(copy));
	else if (!error->interrupted || !atomic_exchange(&copy->run->told, true))
		tools_error("%s", told.text);
}

void run_give_up(struct run *run, unsigned ms)
{
	afs_client_give_up(run->clients, run->client_count, ms);
}

void run_set_interrupt(struct run *run, bool (*fn)(void *arg, int number), void *arg)
{
	pthread_mutex_lock(&run->lock);
	run->on_interrupt = fn;
	run->on_interrupt_arg = arg;
	pthread_mutex_unlock(&run->lock);
}

enum copy_result copy_report_tree(struct run *run, const char *label, uint64_t files,
				  uint64_t failed, enum copy_result rc)
{
	files = atomic_load(&run->files) - files;
	failed = atomic_load(&run->failed) - failed;
	if (rc == COPY_GOOD && !failed)
		return rc;
	tools_error("%s: %llu files copied, %llu objects failed%s", label,
		    (unsigned long long)files, (unsigned long long)failed,
		    rc == COPY_STOP ? ", the rest was not attempted" : "");
	return rc == COPY_GOOD ? COPY_FAILED : rc;
}

static void note_result(struct run *run, const char *label, const char *result, uint64_t bytes)
{
	if (!run->list)
		return;
	pthread_mutex_lock(&run->list_lock);
	json_array_append_new(run->list,
			      json_pack("{s:o, s:s, s:I}", "name", tools_json_text(label), "result",
					result, "bytes", (json_int_t)bytes));
	pthread_mutex_unlock(&run->list_lock);
}

void copy_done(struct run *run, const char *label, uint64_t bytes)
{
	char *text;

	atomic_fetch_add(&run->files, 1);
	note_result(run, label, "copied", bytes);
	/* The names must not be mixed with a file that is copied to standard output. */
	if (!run->set.verbose || run->list ||
	    (run->destination && strcmp(run->destination, "-") == 0))
		return;
	text = strdup(label);
	if (text)
		printf("%s\n", isatty(STDOUT_FILENO) ? tools_harmless(text) : text);
	free(text);
}

void copy_skip(struct run *run, const char *label, uint64_t bytes)
{
	atomic_fetch_add(&run->left_out, bytes);
	atomic_fetch_add(&run->skipped, 1);
	note_result(run, label, "skipped", bytes);
}

/* `all` less a part of it, at least 1 so that it stays known; 0: unknown. */
static uint64_t subtract_known(uint64_t all, uint64_t part)
{
	return all == 0 || all > part ? all - (all ? part : 0) : 1;
}

void copy_progress(struct run *run, const char *label)
{
	/* Another thread shows it. */
	if (pthread_mutex_trylock(&run->progress_lock) != 0)
		return;
	progress_update(&run->progress, label, atomic_load(&run->bytes),
			subtract_known(atomic_load(&run->total), atomic_load(&run->left_out)),
			atomic_load(&run->files),
			subtract_known(atomic_load(&run->total_files), atomic_load(&run->skipped)));
	pthread_mutex_unlock(&run->progress_lock);
}

void run_counters(struct run *run, struct counters *sum)
{
	struct counters one;

	pthread_mutex_lock(&run->lock);
	*sum = run->transport;
	if (run->afs && counters_read(&one, rxafs_endpoint(run->afs)) == 0)
		tools_stats_add(sum, &one);
	for (size_t i = 0; i < run->client_count; i++)
		if (counters_read(&one, afs_client_endpoint(run->clients[i])) == 0)
			tools_stats_add(sum, &one);
	pthread_mutex_unlock(&run->lock);
}

/* That of the library, or of the main thread's client. */
static rxw_endpoint *main_endpoint(const struct run *run)
{
	return run->afs ? rxafs_endpoint(run->afs) : afs_client_endpoint(run->clients[0]);
}

void copy_report(struct run *run, const struct tools_usage *from, const struct counters *before)
{
	struct counters stats;
	struct tools_usage usage;
	json_t *report = json_object();

	tools_usage_now(&usage);
	usage = tools_usage_between(from, &usage);
	run_counters(run, &stats);
	stats = tools_stats_between(before, &stats);
	tools_report_fill(report, run->bytes, counters_get(&stats, "calls_started"), &usage, &stats,
			  NULL);
	json_object_set_new(report, "files", json_integer((json_int_t)run->files));
	json_object_set_new(report, "skipped", json_integer((json_int_t)run->skipped));
	json_object_set_new(report, "failed", json_integer((json_int_t)run->failed));
	json_object_set(report, "objects", run->list);
	json_object_set(report, "errors", run->errors);
	json_object_set_new(report, "effective", tools_effective_json(main_endpoint(run)));
	json_object_set_new(report, "transport", tools_stats_json(&stats));
	json_object_set_new(report, "machine", tools_facts_json());
	if (run->set.json) {
		tools_json_print(report);
		return;
	}
	tools_report_print("copied", report);
	json_decref(report);
}

/*
 * ---- retries ----
 *
 * Servers may restart or not answer, volumes may be busy or move, and tokens expire.
 */

#define PAUSE_MS     200 /* before the second round; doubled each time */
#define PAUSE_MAX_MS 5000
#define START_MS     15000 /* for a location server that has never answered: it may restart */

/* Give the client of this thread the newest token. False: it has it. */
static bool adopt_newest_token(struct copy *copy)
{
	struct tools_renewal *renewal = &copy->run->renewal;
	uint64_t count = atomic_load(&renewal->count);
	struct afs_error error;

	assert(mutex_is_held(&copy->run->token_lock));
	if (count == copy->tokens ||
	    afs_client_renew(copy->client, tools_renewal_security(renewal), &error) < 0)
		return false;
	copy->tokens = count;
	return true;
}

void copy_fresh(struct copy *copy)
{
	pthread_mutex_lock(&copy->run->token_lock);
	tools_renewal_fresh(&copy->run->renewal);
	adopt_newest_token(copy);
	pthread_mutex_unlock(&copy->run->token_lock);
}

/*
 * After a failed call: true if its token had expired and there is a new one, so the call may be
 * repeated.
 */
static bool copy_again(struct copy *copy, const struct afs_error *error)
{
	struct tools_renewal *renewal = &copy->run->renewal;
	bool again = false;

	pthread_mutex_lock(&copy->run->token_lock);
	if (tools_renewal_expired(error->code, error->origin) ||
	    tools_renewal_refused(renewal, error->result))
		again = adopt_newest_token(copy) ||
			(tools_renewal_again(renewal) && adopt_newest_token(copy));
	pthread_mutex_unlock(&copy->run->token_lock);
	return again;
}

/* Wait. False: interrupted by a signal. */
static bool pause_run(struct run *run, unsigned ms)
{
	uint64_t until = monotonic_ns() + (uint64_t)ms * 1000000;

	pthread_mutex_lock(&run->lock);
	while (!atomic_load(&run->interrupted) && monotonic_ns() < until)
		monotonic_wait(&run->wake, &run->lock, until);
	pthread_mutex_unlock(&run->lock);
	return !atomic_load(&run->interrupted);
}

/* Whether no other thread has said within that time that it retries for as long. */
static bool first_to_tell(struct run *run, uint64_t now, uint64_t ms)
{
	uint64_t last = atomic_load(&run->told_ns);

	return (last == 0 || now - last > ms * 1000000) &&
	       atomic_compare_exchange_strong(&run->told_ns, &last, now);
}

/* Waits before each round except the first. */
bool run_wait_round(struct run *run, struct outage *o, const char *text, uint64_t ms)
{
	uint64_t now = monotonic_ns();

	if (!o->since_ns) {
		o->since_ns = now;
		o->pause_ms = PAUSE_MS;
		if (ms == 0)
			return false;
		if (!run->set.quiet && first_to_tell(run, now, ms))
			tools_error("%s; retrying for %llu s", text,
				    (unsigned long long)(ms + 999) / 1000);
	}
	if (now - o->since_ns >= ms * 1000000)
		return false;
	if (o->tries++ == 0)
		return true;
	if (!pause_run(run, o->pause_ms))
		return false;
	o->pause_ms = 2 * o->pause_ms < PAUSE_MAX_MS ? 2 * o->pause_ms : PAUSE_MAX_MS;
	return true;
}

static bool next_round(struct copy *copy, struct outage *o, struct afs_error *error, uint64_t ms)
{
	if (copy->silent)
		return false;
	if (!o->since_ns && ms)
		copy_explain(copy, error);
	return run_wait_round(copy->run, o, error->text, ms);
}

bool copy_retry(struct copy *copy, struct outage *o, struct afs_error *error, bool *moved)
{
	if (error->interrupted)
		return false;
	if (copy_again(copy, error))
		return true;
	if (error->remedy == AFS_REMEDY_OTHER && afs_client_sites(copy->client) < 2)
		error->remedy = AFS_REMEDY_NONE;
	while (error->remedy != AFS_REMEDY_NONE &&
	       next_round(copy, o, error, copy->set->retry_ms)) {
		struct afs_error now = *error;

		if (afs_client_recover(copy->client, &copy->volume, error->remedy, &now) == 0) {
			if (moved)
				*moved = true;
			return true;
		}
		*error = now;
		if (copy_again(copy, error))
			return true;
	}
	if (copy_interrupted(copy) && !error->interrupted) {
		afs_error_text(error, "interrupted");
		error->interrupted = true;
	}
	return false;
}

bool copy_retry_or_complain(struct copy *copy, struct outage *outage, struct afs_error *error)
{
	if (copy_retry(copy, outage, error, NULL))
		return true;
	copy_complain(copy, error);
	return false;
}

void copy_format_label(const struct copy *copy, char label[COPY_LABEL])
{
	snprintf(label, COPY_LABEL, "%s:%.250s", copy->volume.name, copy->path);
}

char *copy_join_label(const char *label, const char *name)
{
	size_t length = strlen(label);
	char *path;

	if (asprintf(&path, "%s%s%s", label, length && label[length - 1] == '/' ? "" : "/", name) >=
	    0)
		return path;
	tools_error("no memory");
	return NULL;
}

int copy_locate(struct copy *copy, const struct copy_source *source)
{
	struct afs_error error;
	struct outage o = {0};

	copy->path = source->path;
	/* The previous source was in the same volume. */
	if (strcmp(copy->volume.name, source->volume) == 0)
		return 0;
	while (afs_client_volume(copy->client, source->volume, &copy->volume, &error) < 0) {
		/*
		 * Do not wait long for a server that has never answered: its address may be wrong.
		 */
		bool known = error.origin == RXW_ORIGIN_PEER || atomic_load(&copy->run->located);
		uint64_t ms = copy->set->retry_ms;

		/* This client may have its first call long after the program got its token. */
		if (copy_again(copy, &error))
			continue;
		if (!known && ms > START_MS)
			ms = START_MS;
		if (!error.interrupted && error.remedy == AFS_REMEDY_WAIT &&
		    next_round(copy, &o, &error, ms))
			continue;
		copy_complain(copy, &error);
		return -1;
	}
	atomic_store(&copy->run->located, true);
	return 0;
}

int copy_walk_try(struct copy *copy, bool follow, struct afs_object *object,
		  struct afs_error *error)
{
	struct outage o = {0};

	copy_fresh(copy);
	while (afs_client_walk(copy->client, &copy->volume, copy->path, follow, object, error) < 0)
		if (!copy_retry(copy, &o, error, NULL))
			return -1;
	return 0;
}

int copy_walk(struct copy *copy, bool follow, struct afs_object *object)
{
	struct afs_error error;
	int rc = copy_walk_try(copy, follow, object, &error);

	if (rc < 0)
		copy_complain(copy, &error);
	return rc;
}

enum copy_result copy_judge(const struct copy *copy, const struct afs_error *error)
{
	if (copy_interrupted(copy))
		return COPY_STOP;
	if (copy->set->keep_going)
		return COPY_FAILED;
	if (error->result != 0 || error->remedy != AFS_REMEDY_NONE ||
	    tools_renewal_expired(error->code, error->origin))
		return COPY_STOP;
	/* A volume that is full or read-only is so for the others. */
	if (error->number == ENOSPC || error->number == EDQUOT || error->number == EROFS)
		return COPY_STOP;
	/* An answer, even an invalid one, concerns this object; no answer concerns them all. */
	if (error->origin == RXW_ORIGIN_PEER)
		return COPY_FAILED;
	return error->code == 0 || error->code == RXW_RPC_CC_UNMARSHAL ? COPY_FAILED : COPY_STOP;
}

/* ---- jobs ---- */

#define WAITING	      2 /* large jobs that may wait for each thread */
#define WAITING_SMALL (AFS_AHEAD / 2)

struct job {
	const struct pool_kind *kind;
	void *arg;
	char volume[VL_MAXNAMELEN];
};

struct pool {
	struct copy *copy; /* of the thread that adds jobs */
	size_t threads, running;
	pthread_t *thread; /* `running` of them */
	struct copy *copies;

	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t more;  /* a job, or the end */
	pthread_cond_t less;  /* the queue is half empty, or nothing is left to do */
	struct job *queue;    /* a ring */
	size_t room, first, count, busy;
	bool ending, stopped;
};

/* The jobs of a thread, in order: a large one, or small ones, of which the first `begun` have begun. */
struct taken {
	struct job job[AFS_AHEAD];
	size_t count, begun;
};

/* Whether the thread may have the next job of the queue as well. */
static bool may_take(struct pool *p, const struct taken *t)
{
	assert(mutex_is_held(&p->lock));
	return p->count && (!t->count || (t->count < AFS_AHEAD && t->job[0].kind->begin &&
					  p->queue[p->first].kind->begin));
}

/* Take jobs; waits for one if there is none. False: the end. */
static bool take_jobs(struct pool *p, struct taken *t)
{
	assert(mutex_is_held(&p->lock));
	while (!t->count && !p->count && !p->ending)
		pthread_cond_wait(&p->more, &p->lock);
	/* By halves, so that requests leave together. */
	if (t->count > AFS_AHEAD / 2)
		return true;
	while (may_take(p, t)) {
		t->job[t->count++] = p->queue[p->first];
		p->first = (p->first + 1) % p->room;
		p->count--;
		p->busy++;
	}
	if (p->count <= p->room / 2)
		pthread_cond_signal(&p->less);
	return t->count;
}

static void forget_first(struct taken *t)
{
	assert(t->count > 0 && t->begun <= t->count);
	t->begun -= t->begun > 0;
	memmove(t->job, t->job + 1, --t->count * sizeof(t->job[0]));
}

/* Send the requests of small jobs, in one batch. */
static void begin_jobs(struct copy *copy, struct taken *t)
{
	assert(t->count <= AFS_AHEAD);
	rxw_batch_begin();
	for (; t->begun < t->count; t->begun++) {
		struct job *job = &t->job[t->begun];

		/* A client has connections to the server of one volume. */
		if (job->kind->begin && strcmp(job->volume, copy->volume.name) == 0)
			job->kind->begin(copy, job->arg);
	}
	rxw_batch_end();
}

/* Do the first job with the client of this thread. */
static enum copy_result do_job(struct pool *p, struct copy *copy, struct taken *t)
{
	struct job job = t->job[0];
	const struct copy_source source = {.volume = job.volume, .path = ""};
	bool located = copy_locate(copy, &source) == 0;
	enum copy_result rc = COPY_STOP;

	if (located)
		begin_jobs(copy, t);
	forget_first(t);
	if (located)
		rc = job.kind->work(copy, job.arg);
	else
		job.kind->drop(job.arg);
	if (rc != COPY_GOOD)
		atomic_fetch_add(&p->copy->run->failed, 1);
	return rc;
}

static void drop_job(struct taken *t)
{
	struct job job = t->job[0];

	forget_first(t);
	job.kind->drop(job.arg);
}

struct start {
	struct pool *pool;
	struct copy *copy;
};

static void *do_jobs(void *arg)
{
	struct start start = *(struct start *)arg;
	struct pool *p = start.pool;
	struct taken taken = {0};

	free(arg);
	pthread_mutex_lock(&p->lock);
	while (take_jobs(p, &taken)) {
		bool stopped = p->stopped;
		enum copy_result rc = COPY_STOP;

		pthread_mutex_unlock(&p->lock);
		if (stopped)
			drop_job(&taken);
		else
			rc = do_job(p, start.copy, &taken);
		pthread_mutex_lock(&p->lock);
		p->stopped |= rc == COPY_STOP;
		assert(p->busy > 0);
		p->busy--;
		if (p->stopped || (!p->count && !p->busy))
			pthread_cond_signal(&p->less);
	}
	pthread_mutex_unlock(&p->lock);
	return NULL;
}

static int start_pool_thread(struct pool *p)
{
	struct start *start = malloc(sizeof(*start));
	struct copy *copy = &p->copies[p->running];
	int rc = ENOMEM;

	assert(p->running < p->threads);
	if (copy_open(p->copy->run, copy) < 0) {
		free(start);
		return -1;
	}
	if (start) {
		*start = (struct start){.pool = p, .copy = copy};
		rc = pthread_create(&p->thread[p->running], NULL, do_jobs, start);
	}
	if (rc) {
		tools_error("cannot start a thread: %s; use a lower --jobs", strerror(rc));
		free(start);
		copy_close(copy);
		return -1;
	}
	p->running++;
	return 0;
}

int pool_open(struct copy *copy, size_t sources, struct pool **pool)
{
	bool many = copy->set->jobs > 1 && (sources > 1 || copy->set->recursive);
	struct pool *p = calloc(1, sizeof(*p));

	if (p) {
		p->copy = copy;
		p->threads = many ? (size_t)copy->set->jobs : 0;
		p->room = WAITING_SMALL * p->threads;
		pthread_mutex_init(&p->lock, NULL);
		pthread_cond_init(&p->more, NULL);
		pthread_cond_init(&p->less, NULL);
		p->thread = calloc(p->threads + 1, sizeof(*p->thread));
		p->copies = calloc(p->threads + 1, sizeof(*p->copies));
		p->queue = calloc(p->room + 1, sizeof(*p->queue));
	}
	if (!p || !p->thread || !p->copies || !p->queue) {
		tools_error("no memory");
		pool_close(p);
		return -1;
	}
	while (p->running < p->threads)
		if (start_pool_thread(p) < 0) {
			pool_close(p);
			return -1;
		}
	*pool = p;
	return 0;
}

enum copy_result pool_add(struct pool *p, const struct pool_kind *kind, void *arg)
{
	struct job job = {.kind = kind, .arg = arg};
	enum copy_result rc = COPY_GOOD;

	memcpy(job.volume, p->copy->volume.name, sizeof(job.volume));
	if (p->threads == 0) {
		rc = kind->work(p->copy, arg);
		if (rc != COPY_GOOD)
			atomic_fetch_add(&p->copy->run->failed, 1);
		return rc == COPY_STOP ? COPY_STOP : COPY_GOOD;
	}
	pthread_mutex_lock(&p->lock);
	while (p->count >= (kind->begin ? WAITING_SMALL : WAITING) * p->threads && !p->stopped)
		pthread_cond_wait(&p->less, &p->lock);
	if (p->stopped) {
		rc = COPY_STOP;
	} else {
		assert(p->count < p->room);
		p->queue[(p->first + p->count++) % p->room] = job;
		pthread_cond_signal(&p->more);
	}
	pthread_mutex_unlock(&p->lock);
	if (rc == COPY_STOP)
		kind->drop(arg);
	return rc;
}

enum copy_result pool_wait(struct pool *p)
{
	enum copy_result rc;

	pthread_mutex_lock(&p->lock);
	while (p->count || p->busy)
		pthread_cond_wait(&p->less, &p->lock);
	rc = p->stopped ? COPY_STOP : COPY_GOOD;
	pthread_mutex_unlock(&p->lock);
	return rc;
}

void pool_close(struct pool *p)
{
	if (!p)
		return;
	pthread_mutex_lock(&p->lock);
	p->ending = true;
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->lock);
	for (size_t i = 0; i < p->running; i++)
		pthread_join(p->thread[i], NULL);
	assert(!p->count && !p->busy);
	/* All at once, since a server may not answer. */
	if (p->running && !copy_interrupted(p->copy))
		run_give_up(p->copy->run, GIVE_UP_MS);
	for (size_t i = 0; i < p->running; i++)
		copy_close(&p->copies[i]);
	pthread_cond_destroy(&p->less);
	pthread_cond_destroy(&p->more);
	pthread_mutex_destroy(&p->lock);
	free(p->queue);
	free(p->copies);
	free(p->thread);
	free(p);
}
