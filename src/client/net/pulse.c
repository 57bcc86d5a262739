/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Whether a server is there while it holds an answer. Calls send a packet only every few seconds meanwhile, so servers are asked for
 * their version, which each of them answers at once and whatever its threads do. The library has no function for it, since nothing else
 * asks: a packet of one header, from a socket of its own.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "afs/address.h"
#include "base/wire.h"
#include "client/net/record.h"

#define ASK_NS	     ((uint64_t)50 * NS_PER_MS) /* between two questions */
#define FORGET_NS    ((uint64_t)NS_PER_S)	/* without interest */
#define ASKED_LEAST  6u	 /* without an answer: this process may have had no time to ask */
#define ANSWERS_MOST 64u /* that are read at a time */

/* In the header of a packet. */
#define TYPE_AT	 20u
#define FLAGS_AT 21u

/* A server, or the location servers of a cell. */
struct pulse {
	struct pulse *next;
	uint32_t cell, server;
	uint64_t wanted_at; /* the last time that somebody wanted to know */
	uint64_t asked_at;  /* the last question */
	uint64_t silent_since; /* the first question without an answer; 0 = none */
	unsigned asked;	       /* since then */
};

struct cl_pulses {
	pthread_mutex_t lock;
	int sockets[2]; /* of IPv4 and IPv6; -1 = not open */
	uint8_t question[RXW_HEADER_SIZE];
	struct pulse *list;
};

int cl_pulses_start(struct cl_net *net)
{
	struct cl_pulses *pulses = calloc(1, sizeof(*pulses));

	if (!pulses)
		return -ENOMEM;
	pthread_mutex_init(&pulses->lock, NULL);
	pulses->sockets[0] = pulses->sockets[1] = -1;
	/* An answer has the same number. */
	if (getrandom(pulses->question, 8, GRND_NONBLOCK) != 8)
		memcpy(pulses->question, &net->self, 8);
	pulses->question[TYPE_AT] = RXW_VERSION;
	pulses->question[FLAGS_AT] = RXW_CLIENT_INITIATED;
	net->pulses = pulses;
	return 0;
}

void cl_pulses_stop(struct cl_net *net)
{
	struct cl_pulses *pulses = net->pulses;
	struct pulse *p;

	if (!pulses)
		return;
	while ((p = pulses->list)) {
		pulses->list = p->next;
		free(p);
	}
	for (unsigned i = 0; i < 2; i++)
		if (pulses->sockets[i] >= 0)
			close(pulses->sockets[i]);
	pthread_mutex_destroy(&pulses->lock);
	free(pulses);
	net->pulses = NULL;
}

static struct pulse *get_pulse(struct cl_pulses *pulses, uint32_t cell, uint32_t server)
{
	struct pulse *p = pulses->list;

	assert(mutex_is_held(&pulses->lock));
	while (p && (p->server != server || p->cell != cell))
		p = p->next;
	if (!p && (p = calloc(1, sizeof(*p)))) {
		p->cell = cell;
		p->server = server;
		p->next = pulses->list;
		pulses->list = p;
	}
	return p;
}

/* The addresses at which somebody may answer. */
static unsigned list_addresses(struct cl_net *net, const struct pulse *p,
			       struct cl_address list[CL_ADDRESSES])
{
	struct cl_server *server = p->server ? cl_server_at(net, p->server) : NULL;
	unsigned count;

	if (!server)
		return cl_location_guides(net, p->cell, list, CL_ADDRESSES);
	pthread_mutex_lock(&server->lock);
	count = server->address_count;
	memcpy(list, server->addresses, count * sizeof(list[0]));
	pthread_mutex_unlock(&server->lock);
	return count;
}

static bool is_pulse_of(struct cl_net *net, const struct pulse *p,
			const struct sockaddr_storage *from)
{
	struct cl_address list[CL_ADDRESSES];
	unsigned count = list_addresses(net, p, list);

	for (unsigned i = 0; i < count; i++)
		if (afs_same_address(&list[i].sa, from))
			return true;
	return false;
}

static void note_pulse_answer(struct cl_net *net, const struct sockaddr_storage *from)
{
	for (struct pulse *p = net->pulses->list; p; p = p->next)
		if (p->silent_since && is_pulse_of(net, p, from)) {
			p->silent_since = 0;
			p->asked = 0;
		}
}

static void take_answers(struct cl_net *net)
{
	struct cl_pulses *pulses = net->pulses;

	assert(mutex_is_held(&pulses->lock));
	for (unsigned i = 0; i < 2; i++) {
		for (unsigned n = 0; pulses->sockets[i] >= 0 && n < ANSWERS_MOST; n++) {
			struct sockaddr_storage from = {0};
			socklen_t length = sizeof(from);
			uint8_t answer[RXW_HEADER_SIZE];
			ssize_t size = recvfrom(pulses->sockets[i], answer, sizeof(answer), 0,
						(struct sockaddr *)&from, &length);

			/* Also the error of a server whose machine says that it does not run. */
			if (size < 0 && errno != ECONNREFUSED && errno != EINTR)
				break;
			if (size == RXW_HEADER_SIZE && !memcmp(answer, pulses->question, 8) &&
			    answer[TYPE_AT] == RXW_VERSION &&
			    !(answer[FLAGS_AT] & RXW_CLIENT_INITIATED))
				note_pulse_answer(net, &from);
		}
	}
}

static int pulse_socket(struct cl_pulses *pulses, int family)
{
	int *at = &pulses->sockets[family == AF_INET6];

	if (*at < 0)
		*at = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	return *at;
}

/* False: there is nobody to ask. */
static bool ask_for_pulse(struct cl_net *net, struct pulse *p, uint64_t now)
{
	struct cl_address list[CL_ADDRESSES];
	unsigned count = list_addresses(net, p, list);

	for (unsigned i = 0; i < count; i++) {
		int fd = pulse_socket(net->pulses, list[i].sa.ss_family);

		/* If it is lost, or cannot be sent, the next one counts. */
		if (fd >= 0)
			(void)sendto(fd, net->pulses->question, RXW_HEADER_SIZE, MSG_NOSIGNAL,
				     (struct sockaddr *)&list[i].sa, list[i].len);
	}
	if (!p->silent_since)
		p->silent_since = now;
	p->asked_at = now;
	p->asked++;
	return count > 0;
}

uint64_t cl_net_silence(struct cl_net *net, uint32_t cell, uint32_t server)
{
	uint64_t now, silence = 0;
	struct pulse *p;

	pthread_mutex_lock(&net->pulses->lock);
	p = get_pulse(net->pulses, cell, server);
	take_answers(net);
	now = cl_net_now();
	if (p && now > p->wanted_at + FORGET_NS) {
		p->silent_since = 0;
		p->asked = 0;
	}
	/* An answer that was not read yet does not count as silence. */
	if (p && p->asked > ASKED_LEAST)
		silence = now - p->silent_since;
	if (p && now >= p->asked_at + ASK_NS && !ask_for_pulse(net, p, now))
		silence = CL_NOBODY_THERE;
	if (p)
		p->wanted_at = now;
	pthread_mutex_unlock(&net->pulses->lock);
	return silence;
}
