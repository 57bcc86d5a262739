/* SPDX-License-Identifier: BSD-2-Clause */
/* The public functions of services: adding, starting, removing. */
#include <stdlib.h>
#include <string.h>

#include "common/sized.h"
#include "engine/receive/lifecycle.h"
#include "engine/lock.h"
#include "engine/objects.h"

#define SECURITY_MAX 8
#define DEFERRED_MAX 65536u
#define DEAD_MIN     1000 /* ms, as the tunable dead-ms */
#define DEAD_MAX     3600000
#define SOME	     64 /* connections that are visited with one acquisition of a lock */

struct rxw_service *rxw_service_find(struct rxw_endpoint *ep, uint16_t id)
{
	unsigned n = atomic_load_explicit(&ep->services.count, memory_order_acquire);

	for (unsigned i = 0; i < n; i++) {
		struct rxw_service *s = &ep->services.place[i];

		if (atomic_load_explicit(&ep->services.id[i], memory_order_acquire) != id ||
		    !rxw_ref_take(&s->refs))
			continue;
		/* The place may have got another service since its id was read. */
		if (s->id == id && !atomic_load(&s->removed))
			return s;
		rxw_service_unref(s);
	}
	return NULL;
}

void rxw_service_ref(struct rxw_service *s)
{
	rxw_ref_add(&s->refs);
}

void rxw_service_unref(struct rxw_service *s)
{
	if (!s || !rxw_ref_drop(&s->refs))
		return;
	for (size_t i = 0; i < s->security_count; i++)
		rxw_security_unref(s->security[i]);
	free(s->security);
	s->security = NULL;
	if (s->queue)
		rxw_queue_unuse(s->queue);
	s->queue = NULL;
	atomic_store_explicit(&s->used, false, memory_order_release);
}

static bool dead_in_range(int64_t ms)
{
	return ms >= DEAD_MIN && ms <= DEAD_MAX;
}

static bool service_options_valid(const struct rxw_service_options *o)
{
	return o->id && !o->handler == !!o->queue && (!o->security_count || o->security) &&
	       o->security_count <= SECURITY_MAX && o->level_min <= RXW_LEVEL_CRYPT &&
	       (!o->dead_ms || dead_in_range(o->dead_ms)) &&
	       !((o->flags & RXW_SERVICE_HELD) && ((o->flags & RXW_SERVICE_INLINE) || o->queue));
}

/* Endpoint's lock held: a place for a service of this id. 0, -RXW_ESTATE or -RXW_ELIMIT. */
static int find_place(struct rxw_endpoint *ep, uint16_t id, unsigned *place)
{
	unsigned n = atomic_load(&ep->services.count);

	*place = RXW_MAX_SERVICES;
	for (unsigned i = RXW_MAX_SERVICES; i--;) {
		if (i < n && atomic_load(&ep->services.id[i]) == id)
			return -RXW_ESTATE;
		if (!atomic_load_explicit(&ep->services.place[i].used, memory_order_acquire))
			*place = i;
	}
	return *place < RXW_MAX_SERVICES ? 0 : -RXW_ELIMIT;
}

/* Endpoint's lock held. No other thread reads a place without references. 0 or -RXW_ENOMEM. */
static int fill_service(struct rxw_service *s, const struct rxw_service_options *o)
{
	struct rxw_security *null_class = rxw_security_null();
	struct rxw_security *const *classes = o->security ? o->security : &null_class;
	size_t count = o->security ? o->security_count : 1;

	s->security = calloc(count ? count : 1, sizeof(*s->security));
	if (!s->security)
		return -RXW_ENOMEM;
	for (size_t i = 0; i < count; i++)
		s->security[i] = rxw_security_ref(classes[i]);
	s->security_count = count;
	s->id = o->id;
	memset(s->name, 0, sizeof(s->name));
	if (o->name)
		strncpy(s->name, o->name, sizeof(s->name) - 1);
	s->handler = o->handler;
	s->context = o->context;
	s->queue = o->queue;
	if (s->queue)
		rxw_queue_use(s->queue);
	s->deferred_max = o->deferred_max ? o->deferred_max : DEFERRED_MAX;
	atomic_store(&s->deferred, 0);
	s->flags = o->flags & ~RXW_SERVICE_REACH;
	s->workers_max = o->workers_max;
	atomic_store(&s->idle_ms, o->idle_ms);
	atomic_store(&s->dead_ms, o->dead_ms);
	atomic_store(&s->reach, o->flags & RXW_SERVICE_REACH);
	atomic_store(&s->waiting_max, o->waiting_max);
	atomic_store(&s->busy_code, o->busy_code);
	atomic_store(&s->places, 0);
	s->level_min = o->level_min;
	s->workers = 0;
	s->held = o->flags & RXW_SERVICE_HELD;
	atomic_store(&s->slow_until, 0);
	atomic_store(&s->watched, 0);
	atomic_store(&s->run_time, UINT64_MAX); /* unknown */
	atomic_store(&s->removed, false);
	return 0;
}

__attribute__((cold)) int rxw_service_add(rxw_endpoint *endpoint,
					  const struct rxw_service_options *given,
					  rxw_service **service)
{
	struct rxw_service_options options = {0};
	struct rxw_service *s;
	unsigned place;
	int r;

	if (!endpoint || !given || !sized_read(&options, sizeof(options), given) ||
	    !service_options_valid(&options) ||
	    (options.queue && !rxw_queue_of_engine(options.queue, endpoint->engine)))
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(endpoint))
		return -RXW_ESTATE;
	pthread_mutex_lock(&endpoint->lock);
	r = find_place(endpoint, options.id, &place);
	if (r)
		goto out;
	s = &endpoint->services.place[place];
	r = fill_service(s, &options);
	if (r)
		goto out;
	s->ep = endpoint;
	atomic_store(&s->used, true);
	/* Receivers read the table without the lock: the entry is complete before that. */
	atomic_store_explicit(&s->refs, 1, memory_order_release);
	atomic_store_explicit(&endpoint->services.id[place], s->id, memory_order_release);
	if (atomic_load(&endpoint->services.count) <= place)
		atomic_store_explicit(&endpoint->services.count, place + 1, memory_order_release);
	if (service)
		*service = s;
out:
	pthread_mutex_unlock(&endpoint->lock);
	return r;
}

int rxw_service_start(rxw_service *service)
{
	if (!service)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(service->ep))
		return -RXW_ESTATE;
	return rxw_workers_release_service(service) ? 0 : -RXW_ESTATE;
}

int rxw_service_set(rxw_service *service, enum rxw_service_setting setting, int64_t value)
{
	bool negative = value < 0 || value > UINT32_MAX;

	if (!service)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(service->ep))
		return -RXW_ESTATE;
	if (setting == RXW_SET_BUSY_CODE ? value != (int32_t)value : negative)
		return -RXW_EVALUE;
	switch (setting) {
	case RXW_SET_WORKERS_MAX:
		rxw_workers_limit_service(service, (unsigned)value);
		return 0;
	case RXW_SET_IDLE_MS:
		atomic_store(&service->idle_ms, (unsigned)value);
		return 0;
	case RXW_SET_DEAD_MS:
		if (value && !dead_in_range(value))
			return -RXW_EVALUE;
		atomic_store(&service->dead_ms, (unsigned)value);
		return 0;
	case RXW_SET_REACH:
		atomic_store(&service->reach, value != 0);
		return 0;
	case RXW_SET_WAITING_MAX:
		atomic_store(&service->waiting_max, (unsigned)value);
		return 0;
	case RXW_SET_BUSY_CODE:
		atomic_store(&service->busy_code, (int32_t)value);
		return 0;
	}
	return -RXW_EINVAL;
}

enum what {
	LOOK, /* count those with calls */
	END,  /* and close those that are open, settle those that are closed */
};

/* Connection's lock held. Returns whether it has calls; *due: `what` applies to it. */
static bool service_connection_busy(const struct rxw_connection *c, enum what what, bool *due)
{
	bool works = !rxw_pconn_idle(&c->p) || atomic_load(&c->calls);

	*due = what == END && (!c->p.error || !works);
	return works;
}

/*
 * Table's lock held: finds connections of the service with something to do, with a reference each,
 * from chain *at on. A full chain is visited again. Returns how many; *count: those that are busy.
 */
static unsigned find_service_connections(struct rxw_service *service, struct rxw_shard *s,
					 enum what what, unsigned *at,
					 struct rxw_connection *found[SOME], unsigned *count)
{
	unsigned n = 0;

	for (; *at < rxw_conntable_chains(&s->table); ++*at)
		for (struct rxw_pconn *p = rxw_conntable_chain(&s->table, *at); p;
		     p = p->links.hash_next) {
			struct rxw_connection *c = rxw_conn_of(p);
			bool mine, due = false;

			rxw_conn_lock(c);
			mine = c->service == service;
			*count += mine && service_connection_busy(c, what, &due);
			rxw_conn_unlock(c);
			if (!mine || !due)
				continue;
			rxw_conn_ref(c);
			found[n++] = c;
			if (n == SOME)
				return n;
		}
	return n;
}

/* Visits the connections of a service in one table. Returns how many are busy, about. */
__attribute__((cold)) static unsigned visit_table(struct rxw_service *service, struct rxw_shard *s,
						  enum what what)
{
	struct rxw_connection *found[SOME];
	unsigned n, at = 0, count = 0;

	do {
		rxw_table_lock(s);
		n = find_service_connections(service, s, what, &at, found, &count);
		rxw_table_unlock(s);
		for (unsigned k = 0; k < n; k++) {
			rxw_conn_fail(found[k], RXW_INVALID_OPERATION);
			rxw_conn_settle(found[k]);
			rxw_conn_unref(found[k]);
		}
	} while (n == SOME);
	return count;
}

static unsigned visit_service_connections(struct rxw_service *service, enum what what)
{
	unsigned count = 0;

	for (unsigned i = 0; i < service->ep->shard_count; i++)
		count += visit_table(service, &service->ep->shard[i], what);
	return count;
}

static bool no_connection_left(struct rxw_service *s)
{
	return atomic_load(&s->refs) == 1;
}

__attribute__((cold)) int rxw_service_remove(rxw_service *service, unsigned limit_ms)
{
	struct rxw_endpoint *ep;
	uint64_t end;
	int r = 0;

	if (!service)
		return -RXW_EINVAL;
	if (rxw_endpoint_inherited(service->ep))
		return -RXW_ESTATE;
	if (rxw_on_library_thread(NULL) || rxw_must_not_wait())
		return -RXW_EDEADLK;
	rxw_tx_collect_end();
	if (atomic_exchange(&service->removed, true))
		return -RXW_ESTATE;
	ep = service->ep;
	rxw_service_start(service); /* calls that waited are refused now */
	end = rxw_now() + limit_ms * RXW_MS;
	for (;;) {
		if (service->queue)
			rxw_queue_refuse(service->queue, service);
		if (!visit_service_connections(service, LOOK))
			break;
		if (rxw_now() >= end) {
			r = -RXW_ETIMEDOUT;
			break;
		}
		rxw_sleep_us(2000);
	}
	/* A receiver may add a connection that it began before: it has a reference meanwhile. */
	for (end += RXW_STOP_GRACE;
	     visit_service_connections(service, END), !no_connection_left(service);
	     rxw_sleep_us(1000)) {
		if (rxw_now() < end)
			continue;
		rxw_log(ep->engine, RXW_LOG_WARNING,
			"service %u was removed, but handlers of it have not returned yet",
			service->id);
		r = -RXW_ETIMEDOUT;
		break;
	}
	pthread_mutex_lock(&ep->lock);
	atomic_store(&ep->services.id[service - ep->services.place], 0);
	pthread_mutex_unlock(&ep->lock);
	rxw_service_unref(service);
	return r;
}
