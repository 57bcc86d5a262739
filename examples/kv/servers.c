/* SPDX-License-Identifier: BSD-2-Clause */
/* One endpoint with a connection to each server. */
#include <netdb.h>
#include <stdio.h>

#include "servers.h"

static void check(const struct servers *servers, int result, const char *what, const char *thing)
{
	if (result >= 0)
		return;
	fprintf(stderr, "%s: cannot %s %s: %s\n", servers->program, what, thing,
		rxw_strerror(result));
	exit(1);
}

/* The addresses of a server, to be freed by freeaddrinfo(). */
static struct addrinfo *find(const struct servers *servers, unsigned i)
{
	struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_DGRAM}, *to;
	char host[NI_MAXHOST], port[NI_MAXSERV];
	const char *name = servers->name[i], *colon = strrchr(name, ':');
	int bad;

	snprintf(host, sizeof(host), "%.*s", (int)(colon ? colon - name : (long)strlen(name)),
		 name);
	snprintf(port, sizeof(port), "%d", KV_PORT);
	bad = getaddrinfo(host, colon ? colon + 1 : port, &hints, &to);
	if (bad) {
		fprintf(stderr, "%s: server %s: %s\n", servers->program, name, gai_strerror(bad));
		exit(1);
	}
	return to;
}

static void open_one(struct servers *servers, unsigned i)
{
	struct addrinfo *to = find(servers, i);

	check(servers,
	      rxw_connection_create(servers->endpoint, to->ai_addr, to->ai_addrlen, KV_SERVICE,
				    NULL, &servers->connection[i]),
	      "make a connection to", servers->name[i]);
	freeaddrinfo(to);
}

rxw_connpool *servers_pool(struct servers *servers, unsigned most)
{
	struct addrinfo *to = find(servers, 0);
	rxw_connpool *pool;

	check(servers,
	      rxw_connpool_create(servers->endpoint, to->ai_addr, to->ai_addrlen, KV_SERVICE, NULL,
				  most, &pool),
	      "make connections to", servers->name[0]);
	freeaddrinfo(to);
	return pool;
}

rxw_queue *servers_queue(struct servers *servers)
{
	rxw_queue *queue;

	check(servers, rxw_queue_create(servers->engine, NULL, &queue), "create", "a queue");
	return queue;
}

void servers_open(struct servers *servers)
{
	if (!servers->count)
		servers->name[servers->count++] = "127.0.0.1";
	check(servers, rxw_engine_create(NULL, &servers->engine), "create", "the engine");
	check(servers, rxw_endpoint_create(servers->engine, NULL, &servers->endpoint), "open",
	      "a port");
	for (unsigned i = 0; i < servers->count; i++)
		open_one(servers, i);
}

void servers_close(struct servers *servers)
{
	for (unsigned i = 0; i < servers->count; i++)
		rxw_connection_release(servers->connection[i]);
	check(servers, rxw_endpoint_destroy(servers->endpoint), "close", "the port");
	check(servers, rxw_engine_destroy(servers->engine), "destroy", "the engine");
}

/* The codes of kv.xg. All others belong to the library or its RPC layer. */
static const char *text_of(int32_t code)
{
	switch (code) {
	case KV_NOTFOUND:
		return "there is no such value";
	case KV_EXISTS:
		return "there is such a value already";
	case KV_TOOBIG:
		return "the value is longer than this server takes";
	case KV_FULL:
		return "the server's memory is used up";
	case KV_DENIED:
		return "this host may read, not write";
	case KV_BADNAME:
		return "a key has 1 to 255 bytes, and no control characters";
	case KV_BADHOW:
		return "the server does not know this way to put a value";
	default:
		return rxw_code_text(code);
	}
}

int servers_complain(const struct servers *servers, const char *what, unsigned index,
		     const char *key, int32_t code)
{
	fflush(stdout); /* keep the order of lines */
	fprintf(stderr, "%s: %s: %s: %s: %s (%d)\n", servers->program, what, servers->name[index],
		key, text_of(code), (int)code);
	return 1;
}
