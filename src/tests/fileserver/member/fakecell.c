/* SPDX-License-Identifier: BSD-2-Clause */
/* For tests: location and protection servers of a cell. */
#include "tests/fileserver/member/fakecell.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <rxwire/rxkad.h>

#include "afs/numbers.h"

#define WORKERS 64

/* Lock held. */
static int32_t hold(struct fake_server *fake)
{
	while (fake->held)
		pthread_cond_wait(&fake->changed, &fake->lock);
	return fake->code;
}

static int32_t name_to_id(void *context, rxw_call *call, const namelist *names, idlist *ids)
{
	struct fake_server *fake = context;
	int32_t code;

	(void)call;
	pthread_mutex_lock(&fake->lock);
	fake->names++;
	pthread_cond_broadcast(&fake->changed);
	code = hold(fake);
	ids->len = fake->id_count;
	ids->val = calloc(ids->len + 1, sizeof(*ids->val));
	for (uint32_t i = 0; i < ids->len; i++) {
		int32_t id = names->val[0][0] == 'u' ? atoi(names->val[0] + 1) : 0;

		ids->val[i] = fake->id ? fake->id : id ? id : PROT_ANONYMOUS;
	}
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static int32_t list_groups(struct fake_server *fake, prlist *list, int32_t *over)
{
	int32_t code;

	pthread_mutex_lock(&fake->lock);
	fake->lists++;
	code = hold(fake);
	list->len = fake->many ? fake->many : fake->group_count;
	list->val = calloc(list->len + 1, sizeof(*list->val));
	for (uint32_t i = 0; i < list->len; i++)
		list->val[i] = fake->many ? -1000 - (int32_t)i : fake->groups[i];
	*over = fake->over;
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static int32_t get_cps(void *context, rxw_call *call, int32_t id, prlist *cps, int32_t *over)
{
	(void)call, (void)id;
	return list_groups(context, cps, over);
}

static int32_t id_to_name(void *context, rxw_call *call, const idlist *ids, namelist *names)
{
	struct fake_server *fake = context;
	int32_t code;

	(void)call, (void)ids;
	pthread_mutex_lock(&fake->lock);
	fake->names++;
	code = hold(fake);
	names->len = 1;
	names->val = calloc(1, sizeof(*names->val));
	snprintf(names->val[0], sizeof(names->val[0]), "%s", fake->name ? fake->name : "7");
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static int32_t register_addrs(void *context, rxw_call *call, const struct rxw_uuid *uuid,
			      int32_t spare, const bulkaddrs *addrs)
{
	struct fake_server *fake = context;
	int32_t code;

	(void)call, (void)uuid, (void)spare;
	pthread_mutex_lock(&fake->lock);
	code = hold(fake);
	fake->registrations++;
	fake->registered_count = addrs->len;
	for (uint32_t i = 0; i < addrs->len && i < 16; i++)
		fake->registered[i] = addrs->val[i];
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static int32_t get_entry(void *context, rxw_call *call, uint32_t id, int32_t type,
			 nvldbentry *entry)
{
	struct fake_server *fake = context;
	int32_t code;

	(void)call, (void)type;
	pthread_mutex_lock(&fake->lock);
	fake->compared++;
	code = id == fake->elsewhere ? 0 : AFS_VL_NOENT;
	*entry = (nvldbentry){.name = "theirs", .nServers = 1, .serverNumber = {0x0a0a0a0a}};
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static int32_t give_ids(void *context, rxw_call *call, uint32_t bump, uint32_t *first)
{
	struct fake_server *fake = context;

	(void)call;
	pthread_mutex_lock(&fake->lock);
	*first = fake->next;
	fake->next += bump;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	return bump > 1000 ? AFS_VL_BADVOLIDBUMP : 0;
}

static int32_t probe_server(void *context, rxw_call *call)
{
	struct fake_server *fake = context;
	int32_t code;

	(void)call;
	pthread_mutex_lock(&fake->lock);
	code = hold(fake);
	pthread_mutex_unlock(&fake->lock);
	return code;
}

static int32_t serve_pr(rxw_call *call, void *service)
{
	return PR_ExecuteRequest(call, service);
}

static int32_t serve_vl(rxw_call *call, void *service)
{
	return VL_ExecuteRequest(call, service);
}

static void add_service(struct fake_server *fake, uint16_t id, rxw_handler_fn handler,
			void *context)
{
	const struct rxw_service_options options = {.size = sizeof(options),
						    .id = id,
						    .handler = handler,
						    .context = context,
						    .security = fake->classes,
						    .security_count = fake->class_count};
	rxw_service *service;

	ck_assert_int_eq(rxw_service_add(fake->endpoint, &options, &service), 0);
}

void fake_open(struct fake_server *fake, rxw_engine *engine, rxw_keys *keys)
{
	const struct rxw_rxkad_server_options kad = {.size = sizeof(kad), .keys = keys};
	static const struct PR_handlers pr = {.NameToID = name_to_id,
					      .IDToName = id_to_name,
					      .GetCPS = get_cps,
					      .GetHostCPS = get_cps};
	static const struct VL_handlers vl = {.RegisterAddrs = register_addrs,
					      .GetEntryByIDN = get_entry,
					      .GetNewVolumeId = give_ids,
					      .ProbeServer = probe_server};
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct rxw_config config;
	const struct rxw_endpoint_options here = {.size = sizeof(here),
						  .config = &config,
						  .address = (const struct sockaddr *)&sa,
						  .address_len = sizeof(sa),
						  .server = 1};
	socklen_t length = sizeof(fake->address);

	rxw_config_init(&config, sizeof(config));
	config.listeners = 1;
	config.workers_max = WORKERS;
	*fake = (struct fake_server){
		.id_count = 1, .classes = {rxw_security_null()}, .class_count = keys ? 2 : 1};
	if (keys)
		ck_assert_int_eq(rxw_rxkad_server(&kad, &fake->classes[1]), 0);
	fake->pr = (struct PR_service){.base.context = fake, .handlers = &pr};
	fake->vl = (struct VL_service){.base.context = fake, .handlers = &vl};
	pthread_mutex_init(&fake->lock, NULL);
	pthread_cond_init(&fake->changed, NULL);
	ck_assert_int_eq(rxw_endpoint_create(engine, &here, &fake->endpoint), 0);
	add_service(fake, AFS_SERVICE_PT, serve_pr, &fake->pr);
	add_service(fake, AFS_SERVICE_VL, serve_vl, &fake->vl);
	ck_assert_int_eq(rxw_endpoint_address(fake->endpoint, &fake->address, &length), 0);
}

void fake_close(struct fake_server *fake)
{
	FAKE_SET(fake, held, false);
	rxw_endpoint_stop(fake->endpoint, 0);
	ck_assert_int_eq(rxw_endpoint_destroy(fake->endpoint), 0);
	if (fake->class_count == 2)
		rxw_security_unref(fake->classes[1]);
	pthread_cond_destroy(&fake->changed);
	pthread_mutex_destroy(&fake->lock);
}

void fake_await_names(struct fake_server *fake, unsigned names)
{
	pthread_mutex_lock(&fake->lock);
	while (fake->names < names)
		pthread_cond_wait(&fake->changed, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
}

unsigned fake_names(struct fake_server *fake)
{
	unsigned names;

	pthread_mutex_lock(&fake->lock);
	names = fake->names;
	pthread_mutex_unlock(&fake->lock);
	return names;
}
