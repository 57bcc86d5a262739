/* SPDX-License-Identifier: BSD-2-Clause */
/* The server as a member of a cell: its folder, its calls, and the thread that registers it. */
#include "fileserver/member/member.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "afs/numbers.h"
#include "common/failure.h"
#include "fileserver/member/membership.h"
#include "program/address.h"

#define PROBE_S 5 /* at most, until the servers that are dead are looked at */

struct fsd_member {
	struct fsd_people people; /* first */
	struct fsd_member_options options;
	pthread_mutex_t lock; /* covers `folder` */
	struct member_folder *folder;
	char *cell, *keys;
	struct member_answers *answers;
	/* From the start on: */
	struct fsd_member_network network;
	rxw_endpoint *endpoint;
	struct member_database *locations, *protection;
	struct member_registration registration;
	struct background thread;
	bool started;
	bool look_now; /* the lock of the thread */
	bool compared; /* the ids of the store; of the thread */
};

static struct fsd_member *member_of(struct fsd_people *people)
{
	return (struct fsd_member *)people;
}

static struct member_folder *get_folder(struct fsd_member *member)
{
	struct member_folder *folder;

	pthread_mutex_lock(&member->lock);
	folder = member_folder_ref(member->folder);
	pthread_mutex_unlock(&member->lock);
	return folder;
}

/* -- people -- */

static bool name_cell_user(struct fsd_member *member, const struct rxw_identity *identity,
			   char user[PROT_NAME_MAX + 1])
{
	bool has;

	pthread_mutex_lock(&member->lock);
	has = member_name_of(&member->options, member->folder, identity, user);
	pthread_mutex_unlock(&member->lock);
	return has;
}

static int user_in_cell(struct fsd_people *people, const struct rxw_identity *identity,
			struct fsd_asker *asker, struct fsd_ids *ids)
{
	struct fsd_member *member = member_of(people);
	char user[PROT_NAME_MAX + 1];

	if (!name_cell_user(member, identity, user))
		return -ENOENT;
	return member_find_user(member->answers, user, identity->expires, asker, ids);
}

static int machine_in_cell(struct fsd_people *people, uint32_t address, struct fsd_asker *asker,
			   struct fsd_ids *ids)
{
	return member_find_machine(member_of(people)->answers, address, asker, ids);
}

static int id_in_cell(struct fsd_people *people, const char *name, struct fsd_asker *asker,
		      int32_t *id)
{
	return member_find_id(member_of(people)->answers, name, asker, id);
}

static int name_in_cell(struct fsd_people *people, int32_t id, struct fsd_asker *asker,
			char name[FSD_PERSON_MAX + 1])
{
	return member_find_name(member_of(people)->answers, id, asker, name);
}

static void forget_people(struct fsd_people *people)
{
	member_answers_forget(member_of(people)->answers);
}

struct fsd_people *fsd_member_people(struct fsd_member *member)
{
	return &member->people;
}

bool fsd_member_superuser(void *arg, const struct rxw_identity *identity)
{
	struct fsd_member *member = arg;
	char user[PROT_NAME_MAX + 1];
	bool is = false;

	pthread_mutex_lock(&member->lock);
	if (member_may_be_superuser(member->folder, identity) &&
	    member_name_of(&member->options, member->folder, identity, user))
		for (size_t i = 0; i < member->folder->superusers && !is; i++)
			is = strcmp(member->folder->superuser[i], user) == 0;
	pthread_mutex_unlock(&member->lock);
	return is;
}

/* -- the folder -- */

int fsd_member_open(const struct fsd_member_options *options, struct fsd_member **out,
		    char *message)
{
	static const struct fsd_people_ops ops = {
		.user = user_in_cell,
		.machine = machine_in_cell,
		.id_of = id_in_cell,
		.name_of = name_in_cell,
		.forget = forget_people,
	};
	struct fsd_member *member = calloc(1, sizeof(*member));

	if (!member)
		return fail_with(-1, message, FSD_MESSAGE_MAX, "no memory");
	member->people.ops = &ops;
	member->options = *options;
	pthread_mutex_init(&member->lock, NULL);
	if (member_folder_read(options, &member->folder, message)) {
		fsd_member_close(member);
		return -1;
	}
	member->cell = strdup(member->folder->cell);
	member->keys = strdup(member->folder->keys);
	member->answers = member_answers_create(options->fresh_s);
	if (!member->cell || !member->keys || !member->answers) {
		fsd_member_close(member);
		return fail_with(-1, message, FSD_MESSAGE_MAX, "no memory");
	}
	*out = member;
	return 0;
}

void fsd_member_close(struct fsd_member *member)
{
	if (!member)
		return;
	fsd_member_stop(member);
	member_answers_destroy(member->answers);
	member_folder_unref(member->folder);
	pthread_mutex_destroy(&member->lock);
	free(member->cell);
	free(member->keys);
	free(member);
}

const char *fsd_member_cell(const struct fsd_member *member)
{
	return member->cell;
}

const char *fsd_member_keys(const struct fsd_member *member)
{
	return member->keys;
}

static bool set_servers(struct fsd_member *member, const struct member_folder *folder)
{
	return member_database_set(member->locations, folder->server, folder->servers) &&
	       member_database_set(member->protection, folder->server, folder->servers);
}

int fsd_member_reload(struct fsd_member *member)
{
	struct member_folder *folder, *old;
	char message[FSD_MESSAGE_MAX];

	if (member_folder_read(&member->options, &folder, message)) {
		fsd_log(RXW_LOG_WARNING, "%s; what was read before stays in use", message);
		return -1;
	}
	if (strcmp(folder->cell, member->cell) != 0) {
		fsd_log(RXW_LOG_WARNING,
			"--cell-config %.200s: another cell needs a restart; what was read before stays in use",
			member->options.folder);
		member_folder_unref(folder);
		return -1;
	}
	pthread_mutex_lock(&member->lock);
	old = member->folder;
	member->folder = folder;
	pthread_mutex_unlock(&member->lock);
	member_folder_unref(old);
	if (!member->started)
		return 0;
	if (!set_servers(member, folder))
		fsd_log(RXW_LOG_WARNING, "no memory for the servers of the cell");
	pthread_mutex_lock(&member->thread.lock);
	member->look_now = true;
	wake_background(&member->thread);
	pthread_mutex_unlock(&member->thread.lock);
	return 0;
}

/* -- the network -- */

static void *keep_member(void *arg)
{
	struct fsd_member *member = arg;

	pthread_mutex_lock(&member->thread.lock);
	while (!member->thread.stop) {
		struct member_folder *folder = get_folder(member);
		uint64_t next, locations, protection;

		if (member->look_now)
			member->registration.next = 0;
		member->look_now = false;
		pthread_mutex_unlock(&member->thread.lock);
		next = member_register(&member->registration, member->locations, folder,
				       &member->network);
		if (!member->compared && member->registration.registered)
			member->compared = member_compare_ids(&member->registration,
							      member->locations, &member->network);
		locations = member_database_probe(member->locations, member_ask_locations, NULL);
		protection = member_database_probe(member->protection, member_ask_anonymous, NULL);
		member_folder_unref(folder);
		next = next < locations ? next : locations;
		next = next < protection ? next : protection;
		locations = monotonic_ns() + PROBE_S * (uint64_t)NS_PER_S;
		next = next < locations ? next : locations;
		pthread_mutex_lock(&member->thread.lock);
		if (!member->thread.stop && !member->look_now)
			sleep_in_background(&member->thread, next);
	}
	pthread_mutex_unlock(&member->thread.lock);
	return NULL;
}

static rxw_security *act_as_member(void *arg)
{
	const struct fsd_member *member = arg;

	return fsd_guard_as_service(member->network.guard, RXW_LEVEL_CRYPT);
}

static int open_member_endpoint(struct fsd_member *member)
{
	struct rxw_config config = *member->network.config;
	struct tools_address any;
	struct rxw_endpoint_options options = {.size = sizeof(options), .config = &config};

	config.listeners = 1;
	tools_address_any(&member->folder->server[0].address, &any);
	options.address = (const struct sockaddr *)&any.sa;
	options.address_len = any.len;
	return rxw_endpoint_create(member->network.engine, &options, &member->endpoint);
}

static bool open_databases(struct fsd_member *member)
{
	struct member_database_options options = {.endpoint = member->endpoint,
						  .service = AFS_SERVICE_VL,
						  .port = member->options.vl_port,
						  .name = "location",
						  .security = act_as_member,
						  .arg = member};

	if (!options.port)
		options.port = AFS_PORT_VL;
	member->locations = member_database_open(&options);
	options.service = AFS_SERVICE_PT;
	options.port = member->options.pt_port ? member->options.pt_port : AFS_PORT_PT;
	options.name = "protection";
	member->protection = member_database_open(&options);
	return member->locations && member->protection && set_servers(member, member->folder);
}

int fsd_member_start(struct fsd_member *member, const struct fsd_member_network *network,
		     char *message)
{
	int rc;

	assert(!member->started);
	member->network = *network;
	rc = open_member_endpoint(member);
	if (rc)
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "cannot call the servers of the cell: %s", rxw_strerror(rc));
	if (!open_databases(member) || start_background(&member->thread, keep_member, member))
		return fail_with(-1, message, FSD_MESSAGE_MAX,
				 "no memory or thread for the servers of the cell");
	member->started = true;
	member_answers_start(member->answers, member->protection);
	return 0;
}

void fsd_member_stop(struct fsd_member *member)
{
	if (!member || !member->endpoint)
		return;
	if (member->started) {
		member_database_stop(member->locations);
		member_database_stop(member->protection);
		rxw_endpoint_stop(member->endpoint, 0);
		stop_background(&member->thread);
		member_answers_stop(member->answers);
		member->started = false;
	}
	member_database_close(member->locations);
	member_database_close(member->protection);
	rxw_endpoint_destroy(member->endpoint);
	member->endpoint = NULL;
}

void fsd_member_count(struct fsd_member *member, struct fsd_member_counts *counts)
{
	*counts = (struct fsd_member_counts){0};
	member_answers_count(member->answers, counts);
	if (!member->started)
		return;
	member_database_count(member->protection, &counts->servers, &counts->dead);
	counts->registered = member->registration.registered;
}
