/* SPDX-License-Identifier: BSD-2-Clause */
/* Connections of both sides. */
#include <time.h>

#include <rx/rxkad.h>

#include "core.h"

#define MS 1000

static struct rx_connection *clients; /* classic_lock */

static struct rx_connection *create_connection(void)
{
	struct rx_connection *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	atomic_init(&c->refs, 1);
	classic_values_init(&c->values);
	return c;
}

void classic_connection_ref(struct rx_connection *c)
{
	atomic_fetch_add(&c->refs, 1);
}

/* The program's destructors run here: no lock is held. */
static void free_connection(struct rx_connection *c)
{
	pthread_mutex_lock(&classic_lock);
	if (c->link) {
		*c->link = c->next;
		if (c->next)
			c->next->link = c->link;
	}
	pthread_mutex_unlock(&classic_lock);
	classic_values_free(&c->values);
	rxw_connection_release(c->connection);
	rxw_connection_release(c->used_up);
	if (!c->server && c->klass)
		rxs_Release(c->klass);
	free(c);
}

void classic_connection_unref(struct rx_connection *c)
{
	if (atomic_fetch_sub(&c->refs, 1) == 1)
		free_connection(c);
}

void rx_GetConnection(struct rx_connection *c)
{
	classic_connection_ref(c);
}

void rx_DestroyConnection(struct rx_connection *c)
{
	classic_connection_unref(c);
}

/* -- Clients -------------------------------------------------------------------------------------- */

static unsigned timeout_ms(int seconds)
{
	return seconds > 0 ? (unsigned)seconds * MS : RXW_TIMEOUT_OFF;
}

static void apply_timeouts(struct rx_connection *c)
{
	int dead = c->dead_s, hard = c->hard_s;

	if (hard && hard < dead)
		hard = dead;
	if (c->connection)
		(void)rxw_connection_set_timeouts(c->connection, (unsigned)dead * MS,
						  timeout_ms(c->idle_s), timeout_ms(hard));
}

/* Create the library's connection. */
static void connect_to_peer(struct rx_connection *c)
{
	struct classic_port *port = classic_main_port();
	struct sockaddr_in peer = {
		.sin_family = AF_INET,
		.sin_port = c->peer.port,
		.sin_addr.s_addr = c->peer.host,
	};
	int rc = -RXW_ESTATE;

	assert(mutex_is_held(&classic_lock));
	if (port)
		rc = rxw_connection_create(port->endpoint, (struct sockaddr *)&peer, sizeof(peer),
					   c->service_id, classic_security(c->klass),
					   &c->connection);
	if (rc) {
		c->connection = NULL;
		c->error = RX_CALL_DEAD;
		classic_log("cannot connect: %s",
			    port ? rxw_strerror(rc) : "rx_Init() comes first");
	}
}

void classic_reconnect(struct rx_connection *c, rxw_connection *old)
{
	pthread_mutex_lock(&classic_lock);
	if (c->connection == old) {
		/* Other threads may still use it: it is released 2^33 calls later. */
		rxw_connection_release(c->used_up);
		c->used_up = old;
		connect_to_peer(c);
	}
	pthread_mutex_unlock(&classic_lock);
	apply_timeouts(c);
}

struct rx_connection *rx_NewConnection(afs_uint32 host, u_short port, u_short service,
				       struct rx_securityClass *klass, int index)
{
	struct rx_connection *c = create_connection();

	if (!c)
		osi_Panic("rx_NewConnection: no memory\n");
	c->peer.host = host;
	c->peer.port = port;
	c->service_id = service;
	c->index = index;
	c->klass = klass ? rxs_Ref(klass) : NULL;
	c->dead_s = rx_connDeadTime < RX_MINDEADTIME ? RX_MINDEADTIME : rx_connDeadTime;
	pthread_mutex_lock(&classic_lock);
	connect_to_peer(c);
	c->next = clients;
	c->link = &clients;
	if (clients)
		clients->link = &c->next;
	clients = c;
	pthread_mutex_unlock(&classic_lock);
	apply_timeouts(c);
	return c;
}

void classic_connections_detach(void)
{
	assert(mutex_is_held(&classic_lock));
	for (struct rx_connection *c = clients; c; c = c->next) {
		rxw_connection *old = c->connection;

		c->error = RX_CALL_DEAD;
		c->connection = NULL;
		rxw_connection_release(old);
	}
}

void rx_SetConnDeadTime(struct rx_connection *c, int seconds)
{
	c->dead_s = seconds < RX_MINDEADTIME ? RX_MINDEADTIME : seconds;
	apply_timeouts(c);
}

void rx_SetConnHardDeadTime(struct rx_connection *c, int seconds)
{
	c->hard_s = seconds;
	apply_timeouts(c);
}

void rx_SetConnIdleDeadTime(struct rx_connection *c, int seconds)
{
	c->idle_s = seconds;
	apply_timeouts(c);
}

int rx_GetConnDeadTime(struct rx_connection *c)
{
	return c->dead_s;
}

int rx_GetConnHardDeadTime(struct rx_connection *c)
{
	return c->hard_s;
}

int rx_GetConnIdleDeadTime(struct rx_connection *c)
{
	return c->idle_s;
}

void rx_SetConnSecondsUntilNatPing(struct rx_connection *c, afs_int32 seconds)
{
	unsigned every = seconds > 0 ? (unsigned)seconds : 0;

	/* Connections of servers have none. */
	if (c->connection && !c->server)
		(void)rxw_connection_set_nat_ping(c->connection, every < 3600 ? every : 3600);
}

/* -- The cache of connections ---------------------------------------------------------------------- */

#define CACHE_MAX 64

static struct {
	pthread_mutex_t lock; /* of the rest */
	struct rx_connection *connection[CACHE_MAX];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static bool is_reusable(const struct rx_connection *c, afs_uint32 host, u_short port,
			u_short service, const struct rx_securityClass *klass, int index)
{
	return c && c->peer.host == host && c->peer.port == port && c->service_id == service &&
	       c->klass == klass && c->index == index && c->in_use < RX_MAXCALLS &&
	       !rx_ConnError((struct rx_connection *)c);
}

struct rx_connection *rx_GetCachedConnection(unsigned int host, unsigned short port,
					     unsigned short service, struct rx_securityClass *klass,
					     int index)
{
	struct rx_connection *found = NULL, *old = NULL;
	int empty = -1, idle = -1, place;

	pthread_mutex_lock(&cache.lock);
	for (int i = 0; i < CACHE_MAX && !found; i++) {
		struct rx_connection *c = cache.connection[i];

		if (is_reusable(c, host, port, service, klass, index))
			found = c;
		else if (!c && empty < 0)
			empty = i;
		else if (c && !c->in_use && idle < 0)
			idle = i;
	}
	place = empty >= 0 ? empty : idle;
	if (!found)
		found = rx_NewConnection(host, port, service, klass, index);
	found->in_use++;
	if (!found->cached && place >= 0) {
		old = cache.connection[place];
		cache.connection[place] = found;
		found->cached = true;
	}
	pthread_mutex_unlock(&cache.lock);
	if (old)
		rx_DestroyConnection(old);
	return found;
}

void rx_ReleaseCachedConnection(struct rx_connection *c)
{
	bool drop;

	pthread_mutex_lock(&cache.lock);
	if (c->in_use)
		c->in_use--;
	drop = !c->in_use && (!c->cached || rx_ConnError(c));
	for (int i = 0; i < CACHE_MAX && drop && c->cached; i++)
		if (cache.connection[i] == c)
			cache.connection[i] = NULL;
	pthread_mutex_unlock(&cache.lock);
	if (drop)
		rx_DestroyConnection(c);
}

/* -- Servers -------------------------------------------------------------------------------------- */

/* Forget a connection that the library has forgotten, after all of its calls. */
static void forget_connection(void *data)
{
	struct rx_connection *c = data;
	void (*procedure)(struct rx_connection *) = c->service->destroy_connection;

	if (procedure)
		procedure(c);
	classic_values_clear(&c->values);
	classic_connection_unref(c);
}

static struct rx_connection *accept_connection(rxw_connection *connection,
					       struct classic_service *service)
{
	struct rx_connection *c = create_connection();
	struct sockaddr_storage peer;
	socklen_t length = sizeof(peer);

	if (!c)
		return NULL;
	c->server = true;
	c->service = service;
	c->service_id = service->id;
	c->index = rxw_connection_security_index(connection);
	if (c->index >= 0 && c->index < service->count)
		c->klass = service->classes[c->index];
	if (!rxw_connection_peer(connection, &peer, &length) && peer.ss_family == AF_INET) {
		c->peer.host = ((struct sockaddr_in *)&peer)->sin_addr.s_addr;
		c->peer.port = ((struct sockaddr_in *)&peer)->sin_port;
	}
	/* The object is complete before another call of the connection can find it. */
	c->connection = rxw_connection_ref(connection);
	if (rxw_connection_set_data(connection, c, forget_connection)) {
		rxw_connection_release(c->connection);
		classic_values_free(&c->values);
		free(c);
		return NULL;
	}
	return c;
}

/* Calls of one connection may begin on several threads: one of them makes the object. */
struct rx_connection *classic_server_connection(rxw_call *call, struct classic_service *service)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	rxw_connection *connection = rxw_call_connection(call);
	struct rx_connection *c = rxw_connection_data(connection);
	void (*procedure)(struct rx_connection *) = service->new_connection;
	bool made = false;

	if (c)
		return c;
	pthread_mutex_lock(&lock);
	c = rxw_connection_data(connection);
	if (!c) {
		c = accept_connection(connection, service);
		made = c;
	}
	pthread_mutex_unlock(&lock);
	if (made && procedure)
		procedure(c);
	return c;
}

/* -- Both ----------------------------------------------------------------------------------------- */

int rx_ConnError(struct rx_connection *c)
{
	return c->connection ? rxw_connection_error(c->connection, NULL) : c->error;
}

struct rx_peer *rx_PeerOf(struct rx_connection *c)
{
	return &c->peer;
}

afs_uint32 rx_HostOf(struct rx_peer *peer)
{
	return peer->host;
}

u_short rx_PortOf(struct rx_peer *peer)
{
	return peer->port;
}

u_short rx_ServiceIdOf(struct rx_connection *c)
{
	return c->service_id;
}

struct rx_service *rx_ServiceOf(struct rx_connection *c)
{
	return c->service ? &c->service->handle : NULL;
}

int rx_SecurityClassOf(struct rx_connection *c)
{
	return c->index;
}

struct rx_securityClass *rx_SecurityObjectOf(const struct rx_connection *c)
{
	return c->klass;
}

afs_uint32 rx_GetConnectionId(struct rx_connection *c)
{
	uint32_t cid = 0;

	if (c->connection)
		(void)rxw_connection_id(c->connection, NULL, &cid);
	return cid;
}

afs_uint32 rx_GetConnectionEpoch(struct rx_connection *c)
{
	uint32_t epoch = 0;

	if (c->connection)
		(void)rxw_connection_id(c->connection, &epoch, NULL);
	return epoch;
}

int rx_IsServerConn(struct rx_connection *c)
{
	return c->server;
}

int rx_IsClientConn(struct rx_connection *c)
{
	return !c->server;
}

/* -- The authenticated client of a server's connection ------------------------------------------------ */

/* The authenticated client of a server's connection, now. */
static bool get_client(struct rx_connection *connection, struct rxw_identity *identity)
{
	return connection->server && !rxw_connection_identity(connection->connection, identity) &&
	       identity->index == RX_SECIDX_KAD && identity->rxkad_primary &&
	       identity->expires > time(NULL);
}

/* The library's parts have at most 63 bytes. */
static void copy_part(char *to, const char *part)
{
	if (to)
		memcpy(to, part, strlen(part) + 1);
}

afs_int32 rxkad_GetServerInfo(struct rx_connection *connection, rxkad_level *level,
			      afs_uint32 *expires, char *name, char *instance, char *cell,
			      afs_int32 *kvno)
{
	struct rxw_identity identity = {.size = sizeof(identity)};

	if (!get_client(connection, &identity))
		return RXKADNOAUTH;
	if (level)
		*level = (rxkad_level)identity.level;
	if (expires)
		*expires = identity.expires < NEVERDATE ? (afs_uint32)identity.expires : NEVERDATE;
	copy_part(name, identity.rxkad_primary);
	copy_part(instance, identity.rxkad_instance);
	copy_part(cell, identity.rxkad_cell);
	if (kvno)
		*kvno = identity.rxkad_kvno;
	return 0;
}
