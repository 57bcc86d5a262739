/* SPDX-License-Identifier: BSD-2-Clause */
/* The services share one structure, which is made and destroyed here. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <rxwire/call.h>

#include "common/cpus.h"
#include "common/failure.h"
#include "fileserver/base/base.h"
#include "fileserver/cell/cell.h"
#include "fileserver/service/services.h"

#define LOCKS_MAX 65536

/* A call that moves the data of a file may have it open: at most so many, and one of `part` descriptors for them. */
static unsigned limit_places(unsigned most, unsigned part)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY ||
	    limit.rlim_cur / part >= most)
		return most;
	return limit.rlim_cur < 2 * part ? 2 : (unsigned)(limit.rlim_cur / part);
}

static void tell_volume_changed(void *arg, uint32_t volume)
{
	fsd_service_volume_changed(arg, volume);
}

static bool permits_cell_acl(void *arg, const struct store_acl *acl)
{
	const struct fsd_service *service = arg;

	return !service->no_anonymous_writes || !fsd_acl_lets_anyone_write(acl);
}

static bool open_service_cell(struct fsd_service *service, char *message)
{
	const struct fsd_cell_options options = {.store = service->store,
						 .changed = tell_volume_changed,
						 .permits = permits_cell_acl,
						 .arg = service};

	service->cell = fsd_cell_open(&options, message);
	return service->cell != NULL;
}

bool fsd_is_superuser(const struct fsd_service *service, enum fsd_service_kind kind,
		      const rxw_call *call)
{
	struct fsd_who who = {0};

	if (fsd_guard_asks(service->guard))
		fsd_guard_enter(service->guard, kind, call, &who);
	return who.administrator && !who.below;
}

bool fsd_may_list(struct fsd_service *service, rxw_call *rx)
{
	struct store *store = service->store;
	struct sockaddr_storage peer = {0};
	struct store_totals totals = {0};
	socklen_t length = sizeof(peer);

	if (store->ops->totals)
		store->ops->totals(store, &totals);
	if (totals.count <= FSD_LIST_FEW)
		return true;
	rxw_call_peer(rx, &peer, &length);
	return fsd_permit_take(&service->lists, rx, &peer);
}

struct fsd_service *fsd_service_create(const struct fsd_service_options *options, char *message)
{
	struct fsd_service *service = calloc(1, sizeof(*service));

	if (!service)
		return fail_with(NULL, message, FSD_MESSAGE_MAX, "no memory");
	service->store = options->store;
	service->exported = options->exported;
	service->clients = options->clients;
	service->readers = options->readers;
	service->guard = options->guard;
	service->uuid = options->uuid;
	service->people = options->people;
	if (options->prot && !options->people) {
		fsd_people_of_database(&service->database_people, options->prot);
		service->people = &service->database_people.people;
	}
	service->audit = options->audit;
	service->audit_reads = options->audit_reads;
	service->no_anonymous_writes = options->no_anonymous_writes;
	assert(options->advertise_count <= FSD_ADDRS_MAX);
	service->advertise_count = options->advertise_count;
	if (options->advertise_count)
		memcpy(service->advertise, options->advertise,
		       options->advertise_count * sizeof(*options->advertise));
	service->start_time = (uint32_t)time(NULL);
	pthread_mutex_init(&service->running.lock, NULL);
	fsd_waiting_init(&service->waiting);
	fsd_permits_init(&service->lists, FSD_LISTS_MAX);
	fsd_permits_init(&service->fragmented, FSD_FRAGMENTED_MAX);
	fsd_xstats_init(&service->xstats);
	service->xstats.calls = options->calls;
	service->locks = fsd_locks_create(LOCKS_MAX);
	service->storers =
		fsd_pool_create(FSD_STORERS_MAX, cpus_allowed(), sizeof(struct fsd_pool_caller));
	service->later = fsd_later_create();
	if (!service->exported)
		service->volume_counts = fsd_volume_counts_create();
	if ((!service->volume_counts && !service->exported) || !service->later || !service->locks ||
	    !service->storers || !fsd_sessions_init(&service->sessions) ||
	    !fsd_places_init(&service->storing, limit_places(FSD_STORES_MAX, 4)) ||
	    !fsd_places_init(&service->sending, limit_places(FSD_FLOWS_MAX, 2))) {
		snprintf(message, FSD_MESSAGE_MAX, "no memory");
		fsd_service_destroy(service);
		return NULL;
	}
	if (service->exported)
		service->store->ops->volume_next(service->store, 0, &service->volume);
	else if (!open_service_cell(service, message)) {
		fsd_service_destroy(service);
		return NULL;
	}
	if (!options->cell)
		return service;
	service->rootafs =
		fsd_rootafs_create(options->cell, !options->exported, service->start_time);
	if (service->rootafs)
		return service;
	snprintf(message, FSD_MESSAGE_MAX, "--cell %.100s: no name of a cell", options->cell);
	fsd_service_destroy(service);
	return NULL;
}

void fsd_service_destroy(struct fsd_service *service)
{
	if (!service)
		return;
	fsd_cell_close(service->cell);
	fsd_waiting_fini(&service->waiting);
	fsd_sessions_fini(&service->sessions);
	fsd_later_destroy(service->later);
	fsd_volume_counts_destroy(service->volume_counts);
	fsd_pool_destroy(service->storers);
	fsd_rootafs_destroy(service->rootafs);
	fsd_locks_destroy(service->locks);
	fsd_xstats_end(&service->xstats);
	pthread_mutex_destroy(&service->running.lock);
	fsd_places_fini(&service->sending);
	fsd_places_fini(&service->storing);
	fsd_permits_fini(&service->fragmented);
	fsd_permits_fini(&service->lists);
	free(service);
}

void fsd_service_settle(struct fsd_service *service)
{
	fsd_cell_settle(service->cell);
	fsd_later_settle(service->later);
}

void fsd_service_set_endpoint(struct fsd_service *service, rxw_endpoint *fs)
{
	service->fs = fs;
}

static rxw_security *act_as_service(void *arg, uint8_t level)
{
	const struct fsd_service *service = arg;

	return fsd_guard_as_service(service->guard, level);
}

void fsd_service_set_vol_endpoint(struct fsd_service *service, rxw_endpoint *vol)
{
	if (service->cell)
		fsd_cell_set_network(service->cell, vol, act_as_service, service);
}

void fsd_service_set_engine(struct fsd_service *service, const rxw_engine *engine, size_t memory)
{
	service->engine = engine;
	service->memory = memory;
}

void fsd_service_observe(void *arg, const struct rxw_rpc_report *report)
{
	struct fsd_service *service = arg;

	fsd_xstats_report(&service->xstats, report);
}

void fsd_service_volume_changed(struct fsd_service *service, uint32_t volume)
{
	const struct fsd_break all = {.fid.Volume = volume};
	struct store_volume found;

	if (service->store->ops->volume(service->store, volume, &found) == STORE_VNOVOL)
		fsd_lock_forget_volume(service->locks, volume);
	fsd_promise_break_all(service->clients, &all, 1, NULL, FSD_BREAK_MS);
}
