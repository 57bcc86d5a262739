/* SPDX-License-Identifier: BSD-2-Clause */
/* Services: how the library's calls become calls of classic Rx, start and end, and settings. */
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "core.h"

static struct classic_service *services; /* classic_lock */

/* Each service gets all the threads that it may use, so a port has as many as all together. */
static void set_threads(struct classic_port *port)
{
	char text[16];
	int sum = 0;

	assert(mutex_is_held(&classic_lock));
	for (struct classic_service *s = services; s; s = s->next)
		if (s->port == port)
			sum += s->max_procs;
	snprintf(text, sizeof(text), "%d", sum > 4096 ? 4096 : sum > 0 ? sum : 1);
	(void)rxw_endpoint_set(port->endpoint, "workers-max", text);
}

/* Serve one call on a thread of the library. The call object exists as long as the procedure. */
static rxw_code serve_classic_call(rxw_call *library_call, void *context)
{
	struct classic_service *s = context;
	struct rx_call call;
	void (*before)(struct rx_call *) = s->before;
	void (*after)(struct rx_call *, afs_int32) = s->after;
	void (*post)(afs_int32) = s->post;
	int now = (int)time(NULL);
	afs_int32 code;

	memset(&call, 0, offsetof(struct rx_call, writes));
	call.call = library_call;
	call.begun_ns = monotonic_ns();
	call.sent_s = call.received_s = now;
	call.connection = classic_server_connection(library_call, s);
	if (!call.connection)
		return RX_CALL_DEAD;
	if (before)
		before(&call);
	code = s->procedure(&call);
	if (after)
		after(&call, code);
	if (call.reserved)
		(void)rxw_call_commit(library_call, 0);
	/* A call whose reply cannot be written to its end has failed, and has its code. */
	if (!code && !classic_write_out(&call))
		code = rxw_call_error(library_call, NULL);
	if (post)
		post(code);
	return code;
}

/* Let held services serve. */
static void serve_held_services(void)
{
	assert(mutex_is_held(&classic_lock));
	for (struct classic_service *s = services; s; s = s->next) {
		if (!s->held)
			continue;
		s->held = false;
		(void)rxw_service_start(s->service);
	}
}

/* Change a setting of a service, with a line in the log if the library refuses it. */
static void set_service(struct classic_service *s, const char *name,
			enum rxw_service_setting setting, int64_t value)
{
	int rc = rxw_service_set(s->service, setting, value);

	assert(mutex_is_held(&classic_lock));
	if (rc)
		classic_log("cannot set the %s of service %u: %s", name, s->id, rxw_strerror(rc));
}

static void lock_and_set_service(struct rx_service *handle, const char *name,
				 enum rxw_service_setting setting, int64_t value)
{
	pthread_mutex_lock(&classic_lock);
	set_service(handle->internal, name, setting, value);
	pthread_mutex_unlock(&classic_lock);
}

/* A call is refused if more than the threshold wait already: the library counts the call itself. */
static unsigned waiting_max(void)
{
	return rx_BusyThreshold < 0 ? 0 : (unsigned)rx_BusyThreshold + 1;
}

/* Apply the threshold and code of rx_SetBusyThreshold() to all services. */
static void apply_busy_threshold(void)
{
	bool on = rx_BusyThreshold >= 0;

	assert(mutex_is_held(&classic_lock));
	for (struct classic_service *s = services; s; s = s->next) {
		set_service(s, "busy code", RXW_SET_BUSY_CODE, on ? rx_BusyError : 0);
		set_service(s, "busy threshold", RXW_SET_WAITING_MAX, waiting_max());
	}
}

/* Forget all services, whose endpoints are destroyed. Programs may still look at their handles. */
static void forget_services(void)
{
	static struct classic_service *forgotten; /* so that leak checkers find them */

	assert(mutex_is_held(&classic_lock));
	while (services) {
		struct classic_service *s = services;

		services = s->next;
		s->next = forgotten;
		forgotten = s;
	}
}

/* Offer the service at the library. */
static int offer_service(struct classic_service *s)
{
	rxw_security *classes[8];
	struct rxw_service_options options = {
		.size = sizeof(options),
		.id = s->id,
		.name = s->name,
		.handler = serve_classic_call,
		.context = s,
		.flags = classic_serving() ? 0 : RXW_SERVICE_HELD,
		.workers_max = (unsigned)s->max_procs,
		.idle_ms = RX_IDLE_DEAD_TIME * 1000,
		.dead_ms = (unsigned)(rx_connDeadTime < RX_MINDEADTIME ? RX_MINDEADTIME
								       : rx_connDeadTime) *
			   1000,
		.waiting_max = waiting_max(),
		.busy_code = rx_BusyThreshold >= 0 ? rx_BusyError : 0,
		.security = classes,
	};

	for (int i = 0; i < s->count && options.security_count < 8; i++)
		if (s->classes[i])
			classes[options.security_count++] = classic_security(s->classes[i]);
	s->held = options.flags & RXW_SERVICE_HELD;
	return rxw_service_add(s->port->endpoint, &options, &s->service);
}

/* Make a service. */
static struct classic_service *create_service(struct classic_port *port, u_short id,
					      const char *name, struct rx_securityClass **classes,
					      int count, afs_int32 (*procedure)(struct rx_call *))
{
	struct classic_service *s = calloc(1, sizeof(*s));
	int rc = -RXW_ENOMEM;

	assert(mutex_is_held(&classic_lock));
	if (!s)
		return NULL;
	classic_values_init(&s->values);
	s->handle.socket = OSI_NULLSOCKET;
	s->handle.internal = s;
	s->port = port;
	s->id = id;
	s->name = strdup(name && *name ? name : "service");
	s->classes = classes;
	s->count = count;
	s->procedure = procedure;
	s->max_procs = 1;
	s->next = services;
	services = s;
	if (s->name) {
		set_threads(port);
		rc = offer_service(s);
	}
	if (rc) {
		classic_log("cannot offer service %u (%s): %s", id, name ? name : "",
			    rxw_strerror(rc));
		services = s->next;
		classic_values_free(&s->values);
		free(s->name);
		free(s);
		return NULL;
	}
	return s;
}

struct rx_service *rx_NewServiceHost(afs_uint32 host, u_short number, u_short id, char *name,
				     struct rx_securityClass **classes, int count,
				     afs_int32 (*procedure)(struct rx_call *))
{
	struct classic_port *port;
	struct classic_service *s = NULL;

	if (!id || !classes || count < 1 || !procedure) {
		classic_log(
			"rx_NewService: service %u needs an id, a security class and a procedure",
			id);
		return NULL;
	}
	pthread_mutex_lock(&classic_lock);
	port = classic_open(host, number);
	if (!classic_main_port())
		classic_log("rx_NewService: rx_Init() comes first");
	if (port) {
		for (s = services; s && (s->port != port || s->id != id); s = s->next)
			;
		if (!s)
			s = create_service(port, id, name, classes, count, procedure);
	}
	pthread_mutex_unlock(&classic_lock);
	return s ? &s->handle : NULL;
}

struct rx_service *rx_NewService(u_short port, u_short id, char *name,
				 struct rx_securityClass **classes, int count,
				 afs_int32 (*procedure)(struct rx_call *))
{
	return rx_NewServiceHost(htonl(INADDR_ANY), port, id, name, classes, count, procedure);
}

afs_int32 rx_SetSecurityConfiguration(struct rx_service *handle,
				      rx_securityConfigVariables variable, void *value)
{
	struct classic_service *s = handle->internal;

	if (variable != RXS_CONFIG_FLAGS)
		return RX_INVALID_OPERATION;
	for (int i = 0; i < s->count; i++)
		if (s->classes[i])
			classic_security_dots(s->classes[i],
					      (uintptr_t)value & RXS_CONFIG_FLAGS_DISABLE_DOTCHECK);
	return 0;
}

/* -- Start and end -------------------------------------------------------------------------------- */

static void start_serving(void)
{
	pthread_mutex_lock(&classic_lock);
	classic_serve();
	serve_held_services();
	pthread_mutex_unlock(&classic_lock);
}

static void sleep_for_ever(void)
{
	for (;;)
		pause();
}

void rx_StartServer(int donate)
{
	start_serving();
	if (donate)
		sleep_for_ever();
}

void *rx_ServerProc(void *unused)
{
	(void)unused;
	start_serving();
	sleep_for_ever();
	return NULL;
}

/*
 * Calls of other threads that run meanwhile fail. A thread that does not end its call keeps the
 * memory of its endpoint: the process is about to end.
 */
void rx_Finalize(void)
{
	struct classic_port *ports;
	rxw_engine *engine;

	pthread_mutex_lock(&classic_lock);
	ports = classic_leave(&engine);
	pthread_mutex_unlock(&classic_lock);

	for (struct classic_port *p = ports; p; p = p->next)
		(void)rxw_endpoint_stop(p->endpoint, 0);
	pthread_mutex_lock(&classic_lock);
	classic_connections_detach();
	pthread_mutex_unlock(&classic_lock);
	while (ports) {
		struct classic_port *next = ports->next;

		(void)rxw_endpoint_destroy(ports->endpoint);
		free(ports);
		ports = next;
	}
	(void)rxw_engine_destroy(engine);
	pthread_mutex_lock(&classic_lock);
	forget_services();
	pthread_mutex_unlock(&classic_lock);
}

/* -- Settings ------------------------------------------------------------------------------------- */

/* Threads are reserved for each service anyway. */
void rxc_service_min_procs(struct rx_service *handle, int n)
{
	(void)handle;
	(void)n;
}

void rxc_service_max_procs(struct rx_service *handle, int n)
{
	struct classic_service *s = handle->internal;

	pthread_mutex_lock(&classic_lock);
	s->max_procs = n < 1 ? 1 : n;
	set_threads(s->port);
	set_service(s, "number of threads", RXW_SET_WORKERS_MAX, s->max_procs);
	pthread_mutex_unlock(&classic_lock);
}

void rxc_service_reach(struct rx_service *handle, int on)
{
	lock_and_set_service(handle, "reachability check", RXW_SET_REACH, !!on);
}

void rxc_service_idle(struct rx_service *handle, int seconds)
{
	lock_and_set_service(handle, "idle time", RXW_SET_IDLE_MS,
			     seconds > 0 ? (int64_t)seconds * 1000 : RXW_TIMEOUT_OFF);
}

void rxc_service_dead(struct rx_service *handle, int seconds)
{
	lock_and_set_service(handle, "dead time", RXW_SET_DEAD_MS,
			     (int64_t)(seconds < RX_MINDEADTIME ? RX_MINDEADTIME : seconds) * 1000);
}

void rxc_service_before(struct rx_service *handle, void (*procedure)(struct rx_call *))
{
	struct classic_service *s = handle->internal;

	s->before = procedure;
}

void rxc_service_after(struct rx_service *handle, void (*procedure)(struct rx_call *, afs_int32))
{
	struct classic_service *s = handle->internal;

	s->after = procedure;
}

void rxc_service_post(struct rx_service *handle, void (*procedure)(afs_int32))
{
	struct classic_service *s = handle->internal;

	s->post = procedure;
}

void rxc_service_new_connection(struct rx_service *handle,
				void (*procedure)(struct rx_connection *))
{
	struct classic_service *s = handle->internal;

	s->new_connection = procedure;
}

void rxc_service_destroy_connection(struct rx_service *handle,
				    void (*procedure)(struct rx_connection *))
{
	struct classic_service *s = handle->internal;

	s->destroy_connection = procedure;
}

void rxc_busy(int threshold, int code)
{
	pthread_mutex_lock(&classic_lock);
	rx_BusyThreshold = threshold;
	rx_BusyError = code;
	apply_busy_threshold();
	pthread_mutex_unlock(&classic_lock);
}
