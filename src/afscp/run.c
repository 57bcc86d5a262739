/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a run: their clients, retries, and what they report together. */
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rxafs/daemon.h>

#include "common/clock.h"
#include "common/held.h"
#include "program/message.h"
#include "program/report.h"
#include "afscp/copy.h"
#include "afscp/pathuse.h"

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
	json_t *report = json_object(), *paths;

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
	paths = path_uses_list(run);
	json_object_set(report, "paths", paths);
	json_object_set_new(report, "effective", tools_effective_json(main_endpoint(run)));
	json_object_set_new(report, "transport", tools_stats_json(&stats));
	json_object_set_new(report, "machine", tools_facts_json());
	if (run->set.json) {
		tools_json_print(report);
	} else {
		tools_report_print("copied", report);
		path_uses_print(paths);
		json_decref(report);
	}
	json_decref(paths);
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

int copy_locate(struct copy *copy, const char *volume, const char *path)
{
	struct afs_error error;
	struct outage o = {0};

	copy->path = path;
	/* The previous source was in the same volume. */
	if (strcmp(copy->volume.name, volume) == 0)
		return 0;
	while (afs_client_volume(copy->client, volume, &copy->volume, &error) < 0) {
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

int copy_walk(struct copy *copy, bool follow, struct afs_object *object)
{
	struct outage o = {0};
	struct afs_error error;

	copy_fresh(copy);
	while (afs_client_walk(copy->client, &copy->volume, copy->path, follow, object, &error) < 0)
		if (!copy_retry_or_complain(copy, &o, &error))
			return -1;
	return 0;
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
