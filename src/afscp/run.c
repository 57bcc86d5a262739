/* SPDX-License-Identifier: BSD-2-Clause */
/* The threads of a run: their clients, and what they report together. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "program/message.h"
#include "afscp/copy.h"

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

void copy_explain(struct copy *copy, struct afs_error *error)
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

enum copy_result copy_report_tree(const struct copy *copy, const char *label, uint64_t files,
				  uint64_t failed, enum copy_result rc)
{
	files = atomic_load(&copy->run->files) - files;
	failed = atomic_load(&copy->run->failed) - failed;
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

void copy_done(struct copy *copy, const char *label, uint64_t bytes)
{
	struct run *run = copy->run;
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

void copy_skip(struct copy *copy, const char *label, uint64_t bytes)
{
	atomic_fetch_add(&copy->run->left_out, bytes);
	atomic_fetch_add(&copy->run->skipped, 1);
	note_result(copy->run, label, "skipped", bytes);
}

/* `all` less a part of it, at least 1 so that it stays known; 0: unknown. */
static uint64_t subtract_known(uint64_t all, uint64_t part)
{
	return all == 0 || all > part ? all - (all ? part : 0) : 1;
}

void copy_progress(struct copy *copy, const char *label)
{
	struct run *run = copy->run;

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
	for (size_t i = 0; i < run->client_count; i++)
		if (counters_read(&one, afs_client_endpoint(run->clients[i])) == 0)
			tools_stats_add(sum, &one);
	pthread_mutex_unlock(&run->lock);
}

void copy_report(struct copy *copy, const struct tools_usage *from, const struct counters *before)
{
	rxw_endpoint *endpoint = afs_client_endpoint(copy->client);
	struct counters stats;
	struct tools_usage usage;
	json_t *report = json_object();

	tools_usage_now(&usage);
	usage = tools_usage_between(from, &usage);
	run_counters(copy->run, &stats);
	stats = tools_stats_between(before, &stats);
	tools_report_fill(report, copy->run->bytes, counters_get(&stats, "calls_started"), &usage,
			  &stats, NULL);
	json_object_set_new(report, "files", json_integer((json_int_t)copy->run->files));
	json_object_set_new(report, "skipped", json_integer((json_int_t)copy->run->skipped));
	json_object_set_new(report, "failed", json_integer((json_int_t)copy->run->failed));
	json_object_set(report, "objects", copy->run->list);
	json_object_set(report, "errors", copy->run->errors);
	json_object_set_new(report, "effective", tools_effective_json(endpoint));
	json_object_set_new(report, "transport", tools_stats_json(&stats));
	json_object_set_new(report, "machine", tools_facts_json());
	if (copy->set->json) {
		tools_json_print(report);
		return;
	}
	tools_report_print("copied", report);
	json_decref(report);
}
