/* SPDX-License-Identifier: BSD-2-Clause */
/* Engines, endpoints and connections: creating, refusing, stopping, destroying in order. */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/wire.h"
#include "harness.h"
#include "streams.h"

static struct h_bed bed;

static void set_up(void)
{
	h_open(&bed, NULL);
}

static void tear_down(void)
{
	h_close(&bed);
}

START_TEST(bad_arguments)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT,
				    .sin6_port = htons(7) };
	struct rxw_endpoint_options none = { .size = 0 };
	struct sockaddr_storage address;
	rxw_connection *connection;
	rxw_endpoint *endpoint;
	struct rxw_config config;
	rxw_engine *engine;
	char version[40];

	ck_assert_int_eq(rxw_engine_create(NULL, NULL), -RXW_EINVAL);
	rxw_config_init(&config, sizeof(config));
	config.window = 65536;
	ck_assert_int_eq(rxw_engine_create(&config, &engine), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_create(NULL, NULL, &endpoint), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, &none, &endpoint), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, NULL, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_endpoint_address(bed.server, &address, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&six, sizeof(six), 1,
					       NULL, &connection), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&bed.address, 4, 1,
					       NULL, &connection), -RXW_EINVAL);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&bed.address,
					       bed.address_len, 0, NULL, &connection), -RXW_EINVAL);
	rxw_connection_release(NULL);
	ck_assert_str_eq(rxw_version(), PACKAGE_VERSION);
	snprintf(version, sizeof(version), "%d.%d.%d", RXW_VERSION_MAJOR, RXW_VERSION_MINOR,
		 RXW_VERSION_PATCH);
	ck_assert_str_eq(version, PACKAGE_VERSION);
	ck_assert_int_eq(RXW_VERSION_NUMBER, RXW_VERSION_MAJOR * 10000 + RXW_VERSION_MINOR * 100 +
						     RXW_VERSION_PATCH);
}
END_TEST

START_TEST(address_is_what_was_bound)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&bed.address;

	ck_assert_int_eq(in->sin_family, AF_INET);
	ck_assert_uint_eq(in->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
	ck_assert_uint_ne(in->sin_port, 0);
}
END_TEST

/* The sockets of one port share it, but no other process can join them. */
START_TEST(port_in_use)
{
	struct rxw_endpoint_options options = { .size = sizeof(options), .server = 1,
						.address = (struct sockaddr *)&bed.address,
						.address_len = bed.address_len };
	rxw_endpoint *second;

	ck_assert_int_eq(rxw_endpoint_create(bed.server_engine, &options, &second),
			 -RXW_EADDRINUSE);
}
END_TEST

START_TEST(engine_outlives_its_endpoints)
{
	ck_assert_int_eq(rxw_engine_destroy(bed.server_engine), -RXW_ESTATE);
	ck_assert_int_eq(rxw_engine_destroy(bed.client_engine), -RXW_ESTATE);
}
END_TEST

START_TEST(endpoint_outlives_its_connections)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	ck_assert_int_eq(rxw_endpoint_destroy(bed.client), -RXW_ESTATE);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	rxw_connection_release(connection);
}
END_TEST

/* A released connection lives until its call ends. */
START_TEST(call_outlives_the_released_connection)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct h_ask ask = { .op = H_SOURCE, .bytes = 100000 };
	rxw_call *call = h_begin(connection, &ask);

	rxw_connection_release(connection);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.client), -RXW_ESTATE);
	ck_assert_int_eq(h_get(call, &ask), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
}
END_TEST

START_TEST(calls_on_a_stopped_client)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE), *other;
	rxw_call *call;

	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_endpoint_stop(bed.client, 1000), 0);
	ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), -RXW_ESTOPPED);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&bed.address,
					       bed.address_len, H_SERVICE, NULL, &other),
			 -RXW_ESTOPPED);
	rxw_connection_release(connection);
}
END_TEST

struct stopping {
	pthread_t thread;
	unsigned limit_ms;
	int result;
};

static void *stop_server(void *arg)
{
	struct stopping *s = arg;

	s->result = rxw_endpoint_stop(bed.server, s->limit_ms);
	return NULL;
}

static bool new_calls_are_refused(void *arg)
{
	rxw_connection *connection = arg;

	return h_call(&bed, connection, &(struct h_ask){ .op = H_PING }) == RXW_RESTARTING;
}

/* Running calls finish, new ones are refused with -100, on existing and new connections. */
START_TEST(graceful_stop)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE), *fresh;
	struct stopping s = { .limit_ms = 50000 };
	struct h_ask wait = { .op = H_WAIT };
	rxw_call *call = h_begin(connection, &wait);
	uint8_t byte;

	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_gate_arrived(&bed, 1);
	pthread_create(&s.thread, NULL, stop_server, &s);
	h_wait_for(new_calls_are_refused, connection, "a stopping server refuses calls");
	fresh = h_connect(&bed, H_SERVICE);
	ck_assert_int_eq(h_call(&bed, fresh, &(struct h_ask){ .op = H_PING }), RXW_RESTARTING);
	h_gate_open(&bed);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), 0);
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	pthread_join(s.thread, NULL);
	ck_assert_int_eq(s.result, 0);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 0), -RXW_ESTATE);
	rxw_connection_release(connection);
	rxw_connection_release(fresh);
}
END_TEST

/* After the last worker has ended, a call on an idle connection is still answered. */
START_TEST(call_after_stop)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);

	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 50000), 0);
	for (unsigned i = 0; i < 3; i++)
		ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){ .op = H_PING }),
				 RXW_RESTARTING);
	rxw_connection_release(connection);
}
END_TEST

/* The middle of a request, whose beginning went to a server that is gone: no handler will ever have the call. */
START_TEST(stop_without_beginning)
{
	uint8_t head[H_ASK_SIZE], packet[2048];
	struct h_raw raw = h_raw_request(head, H_SINK, 0x4000);
	int fd = h_raw_socket(&bed);
	ssize_t n;

	raw.seq = 7;
	raw.flags = RXW_CLIENT_INITIATED | RXW_REQUEST_ACK;
	h_raw_send(fd, &raw);
	/* The server has the call now. */
	ck_assert_int_ge(h_raw_receive(fd, RXW_ACK, packet), 0);
	ck_assert_int_eq(rxw_endpoint_stop(bed.server, 50000), 0);
	n = h_raw_receive(fd, RXW_ABORT, packet);
	ck_assert_int_eq(n, 32);
	ck_assert_int_eq((int32_t)rxw_xdr_load32(packet + 28), RXW_RESTARTING);
	close(fd);
}
END_TEST

/* Past the time limit, running calls are aborted. */
START_TEST(stop_with_a_limit)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct stopping s = { .limit_ms = 100 };
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_WAIT });
	enum rxw_origin origin;
	uint8_t byte;

	ck_assert_int_eq(rxw_call_send_end(call), 0);
	h_gate_arrived(&bed, 1);
	pthread_create(&s.thread, NULL, stop_server, &s);
	ck_assert_int_eq(rxw_call_read(call, &byte, 1), -RXW_ECALL);
	ck_assert_int_eq(rxw_call_end(call, 0, &origin), RXW_RESTARTING);
	ck_assert_int_eq(origin, RXW_ORIGIN_PEER);
	h_gate_open(&bed);
	pthread_join(s.thread, NULL);
	ck_assert_int_eq(s.result, -RXW_ETIMEDOUT);
	rxw_connection_release(connection);
}
END_TEST

static void ends_are_refused(uint16_t service)
{
	rxw_connection *connection = h_connect(&bed, service);
	rxw_call *call = h_begin(connection, &(struct h_ask){ .op = H_DESTROY });
	uint8_t reply[16];
	struct rxw_xdr x;
	int32_t result;

	ck_assert_int_eq(rxw_call_read(call, reply, sizeof(reply)), 12);
	rxw_xdr_reader(&x, reply, 12);
	for (int i = 0; i < 3; i++) {
		ck_assert(rxw_xdr_get_i32(&x, &result));
		ck_assert_int_eq(result, -RXW_EDEADLK);
	}
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	rxw_connection_release(connection);
}

/* A handler that destroys its own endpoint or engine gets an error; it does not hang. */
START_TEST(destroy_refused_in_handler)
{
	ends_are_refused(H_SERVICE);
	ends_are_refused(H_INLINE);
}
END_TEST

/* The child of a program with an engine may exec; it inherits none of the sockets. */
START_TEST(fork_and_exec)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	int status;
	pid_t child;

	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 100000 });
	child = fork();
	if (!child) {
		execl("/bin/sh", "sh", "-c", "for f in /proc/self/fd/*; do readlink \"$f\"; done"
		      " | grep -q '^socket:' && exit 3; exit 0", (char *)NULL);
		_exit(127);
	}
	ck_assert_int_gt(child, 0);
	ck_assert_int_eq(waitpid(child, &status, 0), child);
	ck_assert(WIFEXITED(status));
	ck_assert_int_eq(WEXITSTATUS(status), 0);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 100000 });
	rxw_connection_release(connection);
}
END_TEST

START_TEST(four_calls_on_a_connection)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct rxw_call_options options = { .size = sizeof(options), .flags = RXW_CALL_NONBLOCK };
	rxw_call *call[4], *fifth;

	for (int i = 0; i < 4; i++)
		call[i] = h_begin(connection, &(struct h_ask){ .op = H_PING });
	ck_assert_int_eq(rxw_call_begin(connection, &options, &fifth), -RXW_EAGAIN);
	for (int i = 0; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	rxw_connection_release(connection);
}
END_TEST

static void *end_call(void *arg)
{
	struct { rxw_call *call; int32_t code; } *a = arg;

	a->code = rxw_call_end(a->call, 0, NULL);
	return NULL;
}

/* A fifth blocking call waits for a channel and gets the first free one. */
START_TEST(fifth_call_waits)
{
	rxw_connection *connection = h_connect(&bed, H_SERVICE);
	struct { rxw_call *call; int32_t code; } first;
	rxw_call *call[4];
	pthread_t thread;

	for (int i = 0; i < 4; i++)
		call[i] = h_begin(connection, &(struct h_ask){ .op = H_PING });
	first.call = call[0];
	pthread_create(&thread, NULL, end_call, &first);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_PING });
	pthread_join(thread, NULL);
	ck_assert_int_eq(first.code, 0);
	for (int i = 1; i < 4; i++)
		ck_assert_int_eq(rxw_call_end(call[i], 0, NULL), 0);
	rxw_connection_release(connection);
}
END_TEST

/* One process may hold several engines, and one engine several endpoints. */
START_TEST(several_endpoints)
{
	rxw_endpoint *second = h_client(&bed, "window=8");
	rxw_connection *connection;

	ck_assert_int_eq(rxw_connection_create(second, (struct sockaddr *)&bed.address,
					       bed.address_len, H_SERVICE, bed.security,
					       &connection), 0);
	h_good_call(&bed, connection, &(struct h_ask){ .op = H_BOTH, .bytes = 200000 });
	rxw_connection_release(connection);
	ck_assert_int_eq(rxw_endpoint_destroy(second), 0);
}
END_TEST

static unsigned count_threads(void)
{
	DIR *tasks = opendir("/proc/self/task");
	struct dirent *e;
	unsigned n = 0;

	ck_assert_ptr_nonnull(tasks);
	while ((e = readdir(tasks)))
		n += e->d_name[0] != '.';
	closedir(tasks);
	return n;
}

/* A server has no listeners for CPUs that its process may not use. */
START_TEST(listeners_for_allowed_cpus)
{
	struct rxw_endpoint_options o = {.size = sizeof(o), .server = 1};
	unsigned before = count_threads();
	cpu_set_t all, one;
	rxw_endpoint *server;
	rxw_engine *engine;
	int cpu = 0;

	ck_assert_int_eq(sched_getaffinity(0, sizeof(all), &all), 0);
	while (!CPU_ISSET(cpu, &all))
		cpu++;
	CPU_ZERO(&one);
	CPU_SET(cpu, &one);
	ck_assert_int_eq(sched_setaffinity(0, sizeof(one), &one), 0);
	ck_assert_int_eq(rxw_engine_create(NULL, &engine), 0);
	ck_assert_int_eq(rxw_endpoint_create(engine, &o, &server), 0);
	/* An idle server has no other threads. */
	ck_assert_uint_eq(count_threads() - before, 1);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	rxw_engine_destroy(engine);
}
END_TEST

/* A UDP socket bound to loopback and `port` (0: a free one) that others may join. */
static int bound_socket(in_port_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = *port };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1;
	socklen_t length = sizeof(in);

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&in, sizeof(in)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&in, &length), 0);
	*port = in.sin_port;
	return fd;
}

static int32_t answer(rxw_call *call, void *context)
{
	(void)context;
	return rxw_call_write(call, "yes!", 4) == 4 ? 0 : 1;
}

/* As from systemd: the endpoint serves on sockets that were bound before. */
START_TEST(given_sockets)
{
	struct rxw_service_options service = { .size = sizeof(service), .id = 900, .handler = answer };
	struct rxw_endpoint_options o = { .size = sizeof(o), .server = 1, .socket_count = 2 };
	struct rxw_effective e = { .size = sizeof(e) };
	struct sockaddr_storage address;
	socklen_t length = sizeof(address);
	rxw_connection *connection;
	rxw_endpoint *endpoint;
	in_port_t port = 0;
	char buffer[8];
	int fd[2];

	fd[0] = bound_socket(&port);
	fd[1] = bound_socket(&port);
	o.sockets = fd;
	ck_assert_int_eq(rxw_endpoint_create(bed.server_engine, &o, &endpoint), 0);
	close(fd[0]);
	close(fd[1]);
	ck_assert_int_eq(rxw_service_add(endpoint, &service, NULL), 0);
	ck_assert_int_eq(rxw_endpoint_address(endpoint, &address, &length), 0);
	ck_assert_uint_eq(((struct sockaddr_in *)&address)->sin_port, port);
	ck_assert_int_eq(rxw_endpoint_effective(endpoint, &e), 0);
	ck_assert_uint_eq(e.listeners, 2);
	for (unsigned i = 0; i < 8; i++) {
		rxw_call *call;

		ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&address,
						       length, 900, NULL, &connection), 0);
		ck_assert_int_eq(rxw_call_begin(connection, NULL, &call), 0);
		ck_assert_int_eq(rxw_call_read(call, buffer, sizeof(buffer)), 4);
		ck_assert_int_eq(rxw_call_end(call, 0, NULL), 0);
		rxw_connection_release(connection);
	}
	ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
}
END_TEST

static int create_on(const int *fd, size_t count)
{
	struct rxw_endpoint_options o = { .size = sizeof(o), .sockets = fd, .socket_count = count };
	rxw_endpoint *endpoint;
	int r = rxw_endpoint_create(bed.client_engine, &o, &endpoint);

	if (!r)
		ck_assert_int_eq(rxw_endpoint_destroy(endpoint), 0);
	return r;
}

START_TEST(unusable_sockets)
{
	in_port_t port = 0, other = 0;
	int pair[2], tcp[2], file[2], unbound[2];

	pair[0] = bound_socket(&port);
	pair[1] = bound_socket(&other);
	tcp[0] = socket(AF_INET, SOCK_STREAM, 0);
	unbound[0] = socket(AF_INET, SOCK_DGRAM, 0);
	file[0] = dup(STDIN_FILENO);
	ck_assert_int_eq(create_on(pair, 1), 0);
	ck_assert_int_eq(create_on(pair, 2), -RXW_EINVAL); /* two ports */
	ck_assert_int_eq(create_on(tcp, 1), -RXW_EINVAL);
	ck_assert_int_eq(create_on(unbound, 1), -RXW_EINVAL);
	ck_assert_int_eq(create_on(file, 1), -RXW_EINVAL);
	ck_assert_int_eq(create_on(NULL, 1), -RXW_EINVAL);
	ck_assert_int_eq(create_on(pair, 65), -RXW_EINVAL);
	close(file[0]);
	file[0] = -1;
	ck_assert_int_eq(create_on(file, 1), -RXW_ESYS);
	close(pair[0]);
	close(pair[1]);
	close(tcp[0]);
	close(unbound[0]);
}
END_TEST

/* ---- IPv6 sockets that take IPv4 as well ---- */

#define DUAL 901

static struct {
	pthread_mutex_t lock;
	sa_family_t peer, local;
} met = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* Notes the families of the addresses, then does what the request says. */
static int32_t meet(rxw_call *call, void *context)
{
	struct sockaddr_storage peer, local;
	socklen_t length;

	ck_assert_int_eq(rxw_call_peer(call, &peer, &length), 0);
	ck_assert_int_eq(rxw_call_local(call, &local, &length), 0);
	pthread_mutex_lock(&met.lock);
	met.peer = peer.ss_family;
	met.local = local.ss_family;
	pthread_mutex_unlock(&met.lock);
	return h_serve(call, context);
}

static rxw_endpoint *dual_server(const int *fd, unsigned sockets)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct rxw_service_options service = { .size = sizeof(service), .id = DUAL, .handler = meet,
					       .context = &bed };
	struct rxw_endpoint_options o = { .size = sizeof(o), .server = 1,
					  .address = (struct sockaddr *)&any,
					  .address_len = sizeof(any), .dual_stack = 1 };
	rxw_endpoint *endpoint;

	if (fd) {
		o.sockets = fd;
		o.socket_count = sockets;
		o.dual_stack = 0;
	}
	ck_assert_int_eq(rxw_endpoint_create(bed.server_engine, &o, &endpoint), 0);
	ck_assert_int_eq(rxw_service_add(endpoint, &service, NULL), 0);
	return endpoint;
}

/* Calls of every size from `client` to an address of the server, which sees plain addresses. */
static void talk(rxw_endpoint *client, rxw_endpoint *server, const char *host, sa_family_t family)
{
	struct sockaddr_storage to;
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&to;
	struct sockaddr_in *four = (struct sockaddr_in *)&to;
	rxw_connection *c;
	socklen_t length;
	in_port_t port;

	ck_assert_int_eq(rxw_endpoint_address(server, &to, &length), 0);
	port = six->sin6_port;
	memset(&to, 0, sizeof(to));
	to.ss_family = strchr(host, ':') ? AF_INET6 : AF_INET;
	if (to.ss_family == AF_INET6)
		six->sin6_port = port;
	else
		four->sin_port = port;
	ck_assert_int_eq(inet_pton(to.ss_family, host,
				   to.ss_family == AF_INET6 ? (void *)&six->sin6_addr
							    : (void *)&four->sin_addr), 1);
	ck_assert_int_eq(rxw_connection_create(client, (struct sockaddr *)&to, sizeof(to), DUAL,
					       NULL, &c), 0);
	for (uint64_t bytes = 1; bytes < 3000000; bytes *= 40)
		h_good_call(&bed, c, &(struct h_ask){ .op = H_BOTH, .bytes = bytes });
	ck_assert_int_eq(rxw_connection_peer(c, &to, &length), 0);
	ck_assert_int_eq(to.ss_family, family);
	rxw_connection_release(c);
	pthread_mutex_lock(&met.lock);
	ck_assert_int_eq(met.peer, family);
	ck_assert_int_eq(met.local, family);
	pthread_mutex_unlock(&met.lock);
}

static rxw_endpoint *dual_client(void)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	struct rxw_endpoint_options o = { .size = sizeof(o), .address = (struct sockaddr *)&any,
					  .address_len = sizeof(any), .dual_stack = 1 };
	rxw_endpoint *endpoint;

	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, &o, &endpoint), 0);
	return endpoint;
}

START_TEST(dual_stack)
{
	struct sockaddr_in four = { .sin_family = AF_INET };
	struct rxw_endpoint_options o = { .size = sizeof(o), .address = (struct sockaddr *)&four,
					  .address_len = sizeof(four), .dual_stack = 1 };
	rxw_endpoint *server, *client;

	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, &o, &client), -RXW_EINVAL);
	o.address = NULL;
	ck_assert_int_eq(rxw_endpoint_create(bed.client_engine, &o, &client), -RXW_EINVAL);
	if (!h_have_ipv6()) {
		printf("left out: no IPv6 here\n");
		return;
	}
	server = dual_server(NULL, 0);
	client = dual_client();
	talk(bed.client, server, "127.0.0.1", AF_INET);
	talk(client, server, "127.0.0.1", AF_INET);
	talk(client, server, "::ffff:127.0.0.1", AF_INET);
	talk(client, server, "::1", AF_INET6);
	ck_assert_int_eq(rxw_endpoint_destroy(client), 0);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
}
END_TEST

/* Sockets that were bound with both families work as bound; all must be alike. */
START_TEST(dual_sockets_given)
{
	struct sockaddr_in6 any = { .sin6_family = AF_INET6 };
	socklen_t length = sizeof(any);
	rxw_endpoint *server;
	int fd[2], one = 1;

	if (!h_have_ipv6()) {
		printf("left out: no IPv6 here\n");
		return;
	}
	for (int i = 0; i < 2; i++) {
		int only = 0;

		fd[i] = socket(AF_INET6, SOCK_DGRAM, 0);
		ck_assert_int_ge(fd[i], 0);
		ck_assert_int_eq(setsockopt(fd[i], IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof(only)),
				 0);
		ck_assert_int_eq(setsockopt(fd[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
		ck_assert_int_eq(bind(fd[i], (struct sockaddr *)&any, sizeof(any)), 0);
		ck_assert_int_eq(getsockname(fd[i], (struct sockaddr *)&any, &length), 0);
	}
	server = dual_server(fd, 2);
	talk(bed.client, server, "127.0.0.1", AF_INET);
	ck_assert_int_eq(rxw_endpoint_destroy(server), 0);
	close(fd[1]);
	/* The second takes IPv6 only. */
	fd[1] = socket(AF_INET6, SOCK_DGRAM, 0);
	ck_assert_int_ge(fd[1], 0);
	ck_assert_int_eq(setsockopt(fd[1], IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)), 0);
	ck_assert_int_eq(setsockopt(fd[1], SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)), 0);
	ck_assert_int_eq(bind(fd[1], (struct sockaddr *)&any, sizeof(any)), 0);
	ck_assert_int_eq(create_on(fd, 2), -RXW_EINVAL);
	close(fd[0]);
	close(fd[1]);
}
END_TEST

int main(void)
{
	Suite *s = suite_create("endpoint");
	TCase *tc = tcase_create("loopback");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_test(tc, bad_arguments);
	tcase_add_test(tc, address_is_what_was_bound);
	tcase_add_test(tc, port_in_use);
	tcase_add_test(tc, engine_outlives_its_endpoints);
	tcase_add_test(tc, endpoint_outlives_its_connections);
	tcase_add_test(tc, call_outlives_the_released_connection);
	tcase_add_test(tc, calls_on_a_stopped_client);
	tcase_add_test(tc, graceful_stop);
	tcase_add_test(tc, call_after_stop);
	tcase_add_test(tc, stop_without_beginning);
	tcase_add_test(tc, stop_with_a_limit);
	tcase_add_test(tc, destroy_refused_in_handler);
	tcase_add_test(tc, fork_and_exec);
	tcase_add_test(tc, four_calls_on_a_connection);
	tcase_add_test(tc, fifth_call_waits);
	tcase_add_test(tc, several_endpoints);
	tcase_add_test(tc, listeners_for_allowed_cpus);
	tcase_add_test(tc, given_sockets);
	tcase_add_test(tc, dual_stack);
	tcase_add_test(tc, dual_sockets_given);
	tcase_add_test(tc, unusable_sockets);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
