/* SPDX-License-Identifier: BSD-2-Clause */
/* The clients that hold promises, and the files by which the next server knows them. */
#include "fileserver/parts.h"

#include <errno.h>
#include <stdio.h>

#define HOSTS_MAX      16384
#define STOP_BREAKS_MS 3000u /* of a stop, for breaking promises */
#define STOP_BREAK_MS  500u  /* for clients to answer some of these breaks */

/* A store's clients may write: their addresses are on the disk before they hold promises. */
static int keep_client(void *arg, const struct sockaddr_storage *peer,
		       const struct sockaddr_storage *local)
{
	struct fsd_server *server = arg;

	return fsd_remember_add(server->remember, peer, local, server->settings.store != NULL);
}

static void drop_client(void *arg, int record)
{
	fsd_remember_drop(((struct fsd_server *)arg)->remember, record);
}

static void recall_client(void *arg, const struct sockaddr_storage *peer,
			  const struct sockaddr_storage *local, int record)
{
	fsd_clients_recall(((struct fsd_server *)arg)->clients, peer, local, record, fsd_now());
}

/* The promises of a store, as the last server left them. `damaged`: not all clients are known. */
static int open_ledger(struct fsd_server *server, bool damaged, char *message)
{
	char path[sizeof(server->state.path) + 16];
	bool complete = false;
	size_t restored = 0;

	snprintf(path, sizeof(path), "%s/promises", server->state.path);
	if (fsd_ledger_open(server->clients, path, server->settings.promises, fsd_now(), &complete,
			    &restored, message))
		return -1;
	if (!complete)
		fsd_clients_doubt(server->clients, damaged, fsd_now());
	if (restored)
		fsd_log(RXW_LOG_INFO,
			"clients will be told that %zu promises from before the start are void",
			restored);
	return 0;
}

/*
 * Open the files about the clients of earlier servers. An exported directory can do without: its clients
 * detect a restart by their own probes, within minutes.
 */
static int open_memory(struct fsd_server *server, char *message)
{
	char path[sizeof(server->state.path) + 16];
	bool damaged = false;

	snprintf(path, sizeof(path), "%s/clients", server->state.path);
	server->remember =
		fsd_remember_open(path, HOSTS_MAX, recall_client, server, &damaged, message);
	if (damaged)
		fsd_log(RXW_LOG_WARNING,
			"%s is damaged: not all clients of the last server are known", path);
	if (!server->remember && server->settings.store && errno != ENOSPC && errno != EDQUOT)
		return -1;
	/* On a full disk files can be read and removed nevertheless; clients get no promises. */
	if (!server->remember)
		fsd_log(RXW_LOG_WARNING, "%s", message);
	return server->settings.store ? open_ledger(server, damaged, message) : 0;
}

static void wake_callbacks(void *arg)
{
	struct fsd_server *server = arg;

	pthread_mutex_lock(&server->lock);
	if (server->callbacks)
		fsd_callbacks_wake(server->callbacks);
	pthread_mutex_unlock(&server->lock);
}

static size_t list_client_volumes(void *arg, uint32_t after, uint32_t *ids, size_t max)
{
	return fsd_storage_volumes(((struct fsd_server *)arg)->served, after, ids, max);
}

int fsd_server_create_clients(struct fsd_server *server, char *message)
{
	const struct fsd_clients_options options = {
		.volume = server->settings.store ? 0 : fsd_server_volume_id(server),
		.volumes = server->settings.store ? list_client_volumes : NULL,
		.strict = server->settings.store != NULL,
		.hosts_max = HOSTS_MAX,
		.promises_max = server->settings.promises,
		.wake = wake_callbacks,
		.keep = keep_client,
		.drop = drop_client,
		.arg = server,
	};

	server->clients = fsd_clients_create(&options);
	return server->clients ? open_memory(server, message) : 0;
}

/*
 * Tell clients that the promises of this server end. Linux 6.8 and later forgets a promise in a read-write volume only
 * if that is broken by itself. Promises that are left stay in the ledger for the next start.
 */
void fsd_server_break_promises(struct fsd_server *server)
{
	uint64_t until = monotonic_ns() + STOP_BREAKS_MS * NS_PER_MS;
	struct fsd_break breaks[AFSCBMAX];
	struct fsd_clients_stats stats;
	AFSFid fids[AFSCBMAX];
	size_t cursor = 0, count;

	rxw_endpoint_refuse(server->fs, -100);
	for (;;) {
		fsd_clients_stats(server->clients, &stats);
		if (!stats.promises || monotonic_ns() >= until)
			return;
		count = fsd_promise_sweep(server->clients, &cursor, fids, AFSCBMAX, fsd_now());
		for (size_t i = 0; i < count; i++)
			breaks[i] = (struct fsd_break){.fid = fids[i], .for_all = true};
		fsd_promise_break_all(server->clients, breaks, count, NULL, STOP_BREAK_MS);
	}
}
