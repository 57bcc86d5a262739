/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The queries of rxdebug, over a socket of the program. Answers of older servers are shorter, or have another layout. Members
 * that they lack become 0.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/random.h>

#include <rx/rx.h>
#include <rx/rx_packet.h>

#include "common/clock.h"

/* -- One question, by a DEBUG or VERSION packet (rx-protocol 8) ------------------------------------- */

struct watch_server {
	osi_socket socket; /* UDP, of the program */
	afs_uint32 host;   /* network order */
	afs_uint16 port;   /* network order */
};

#define EPOCH	 999u /* of packets outside connections */
#define TRIES	 5
#define PAUSE_MS 1000
#define ROOM	 2048

/* Offsets in the header, and its flags. */
enum {
	AT_EPOCH = 0,
	AT_CALL = 8,
	AT_TYPE = 20,
	AT_FLAGS = 21
};
#define CLIENT_INITIATED 1
#define LAST_PACKET	 4

static void store_word(unsigned char *at, uint32_t word)
{
	word = htonl(word);
	memcpy(at, &word, sizeof(word));
}

static bool equals_word(const unsigned char *at, uint32_t word)
{
	word = htonl(word);
	return memcmp(at, &word, sizeof(word)) == 0;
}

static bool is_from_server(const struct sockaddr_in *from, const struct watch_server *server)
{
	return from->sin_family == AF_INET && from->sin_addr.s_addr == server->host &&
	       from->sin_port == server->port;
}

static bool is_answer(const unsigned char *packet, unsigned char type, uint32_t number)
{
	return packet[AT_TYPE] == type && !(packet[AT_FLAGS] & CLIENT_INITIATED) &&
	       equals_word(packet + AT_EPOCH, EPOCH) && equals_word(packet + AT_CALL, number);
}

static bool is_unusable(int error)
{
	return error == EBADF || error == ENOTSOCK;
}

/* The size of the answer; 0: it did not come in time; -1: the socket cannot be used. */
static ssize_t await_watch_answer(const struct watch_server *server, unsigned char type,
				  uint32_t number, unsigned char packet[ROOM], int pause_ms)
{
	uint64_t end = monotonic_ns() + (uint64_t)pause_ms * NS_PER_MS, now;

	while ((now = monotonic_ns()) < end) {
		struct pollfd poller = {.fd = server->socket, .events = POLLIN};
		struct sockaddr_in from = {0};
		socklen_t from_size = sizeof(from);
		ssize_t n;

		if (poll(&poller, 1, (int)((end - now) / NS_PER_MS) + 1) < 0 && errno != EINTR)
			return -1;
		n = recvfrom(server->socket, packet, ROOM, MSG_DONTWAIT, (struct sockaddr *)&from,
			     &from_size);
		if (n >= RX_HEADER_SIZE && is_from_server(&from, server) &&
		    is_answer(packet, type, number))
			return n;
		if (n < 0 && is_unusable(errno))
			return -1;
	}
	return 0;
}

/*
 * Send `size` bytes, at most 8, in a packet of this type, up to five times with pauses of 1, 2, 4,
 * 8 and 16 seconds. The answer has the same type and call number, and comes from the address and
 * port that were asked; other packets are ignored. Copies at most `room` bytes of what follows its
 * header. Returns their number, or -1 with errno set: ETIMEDOUT, or the error of the socket.
 */
static int ask_server(const struct watch_server *server, unsigned char type, const void *question,
		      size_t size, void *answer, size_t room)
{
	struct sockaddr_in to = {
		.sin_family = AF_INET, .sin_port = server->port, .sin_addr.s_addr = server->host};
	unsigned char out[RX_HEADER_SIZE + 8] = {0}, packet[ROOM];
	uint32_t number;

	/* A host that does not see the question cannot guess the number. */
	if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
		return -1;
	store_word(out + AT_EPOCH, EPOCH);
	store_word(out + AT_CALL, number);
	out[AT_TYPE] = type;
	out[AT_FLAGS] = CLIENT_INITIATED | LAST_PACKET;
	memcpy(out + RX_HEADER_SIZE, question, size);
	for (int try = 0; try < TRIES; try++) {
		ssize_t n;

		/* Other failures may be temporary, for example a lost route. */
		if (sendto(server->socket, out, RX_HEADER_SIZE + size, 0,
			   (const struct sockaddr *)&to, sizeof(to)) < 0 &&
		    is_unusable(errno))
			return -1;
		n = await_watch_answer(server, type, number, packet, PAUSE_MS << try);
		if (n < 0)
			return -1;
		if (n > 0) {
			size_t got = (size_t)n - RX_HEADER_SIZE;

			if (got > room)
				got = room;
			memcpy(answer, packet + RX_HEADER_SIZE, got);
			return (int)got;
		}
	}
	errno = ETIMEDOUT;
	return -1;
}

/* -- DEBUG questions -------------------------------------------------------------------------------- */

/* The formats on the wire. */
_Static_assert(sizeof(struct rx_debugStats) == 56, "layout");
_Static_assert(sizeof(struct rx_statistics) == 284, "layout");
_Static_assert(sizeof(struct rx_debugConn_vL) == 172, "layout");
_Static_assert(sizeof(struct rx_debugConn) == 176, "layout");
_Static_assert(sizeof(struct rx_debugPeer) == 132, "layout");
_Static_assert(RX_DEBUG_CHANNELS == RX_MAXCALLS, "channels of a connection");

#define LEAST_CONN	      53 /* up to the last callOther of the oldest format */

#define AS_HOST(member)	      ((member) = (__typeof__(member))ntohl((uint32_t)(member)))
#define AS_HOST_SHORT(member) ((member) = (__typeof__(member))ntohs((uint16_t)(member)))

static bool is_debug_refusal(const void *answer, int size)
{
	struct rx_debugIn refused;

	if (size != (int)sizeof(refused))
		return false;
	memcpy(&refused, answer, sizeof(refused));
	return ntohl((uint32_t)refused.type) == (uint32_t)RX_DEBUGI_BADTYPE;
}

/*
 * Ask a DEBUG question. *answer is filled up with zeros. Returns its size, at least `least` unless
 * it is a refusal; or -1 with errno set, by ask_server() or to EBADMSG.
 */
static int ask_debug(const struct watch_server *server, afs_int32 type, afs_int32 index,
		     void *answer, size_t least, size_t room)
{
	struct rx_debugIn question = {.type = (afs_int32)htonl((uint32_t)type),
				      .index = (afs_int32)htonl((uint32_t)index)};
	int n;

	memset(answer, 0, room);
	n = ask_server(server, RX_PACKET_TYPE_DEBUG, &question, sizeof(question), answer, room);
	if (n >= 0 && (size_t)n < least && !is_debug_refusal(answer, n)) {
		errno = EBADMSG;
		return -1;
	}
	return n;
}

/* -- Basic statistics ----------------------------------------------------------------------------- */

/* Every feature that a version has. */
static afs_uint32 features_of(char version)
{
	static const struct {
		char since;
		afs_uint32 feature;
	} table[] = {
		{RX_DEBUGI_VERSION_W_SECSTATS, RX_SERVER_DEBUG_SEC_STATS},
		{RX_DEBUGI_VERSION_W_GETALLCONN, RX_SERVER_DEBUG_ALL_CONN},
		{RX_DEBUGI_VERSION_W_RXSTATS, RX_SERVER_DEBUG_RX_STATS},
		{RX_DEBUGI_VERSION_W_WAITERS, RX_SERVER_DEBUG_WAITER_CNT},
		{RX_DEBUGI_VERSION_W_IDLETHREADS, RX_SERVER_DEBUG_IDLE_THREADS},
		{RX_DEBUGI_VERSION_W_NEWPACKETTYPES, RX_SERVER_DEBUG_NEW_PACKETS},
		{RX_DEBUGI_VERSION_W_GETPEER, RX_SERVER_DEBUG_ALL_PEER},
		{RX_DEBUGI_VERSION_W_WAITED, RX_SERVER_DEBUG_WAITED_CNT},
		{RX_DEBUGI_VERSION_W_PACKETS, RX_SERVER_DEBUG_PACKETS_CNT},
	};
	afs_uint32 features = 0;

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (version >= table[i].since)
			features |= table[i].feature;
	if (version <= RX_DEBUGI_VERSION_W_UNALIGNED_CONN)
		features |= RX_SERVER_DEBUG_OLD_CONN;
	return features;
}

afs_int32 rx_GetServerDebug(osi_socket socket, afs_uint32 host, afs_uint16 port,
			    struct rx_debugStats *statistics, afs_uint32 *supported)
{
	const struct watch_server server = {socket, host, port};
	int n;

	*supported = 0;
	n = ask_debug(&server, RX_DEBUGI_GETSTATS, 0, statistics,
		      offsetof(struct rx_debugStats, nWaiting), sizeof(*statistics));
	if (n < 0)
		return n;
	if (is_debug_refusal(statistics, n))
		return RX_DEBUGI_BADTYPE;
	AS_HOST(statistics->nFreePackets);
	AS_HOST(statistics->packetReclaims);
	AS_HOST(statistics->callsExecuted);
	AS_HOST(statistics->nWaiting);
	AS_HOST(statistics->idleThreads);
	AS_HOST(statistics->nWaited);
	AS_HOST(statistics->nPackets);
	*supported = features_of(statistics->version);
	return n;
}

afs_int32 rx_GetServerVersion(osi_socket socket, afs_uint32 host, afs_uint16 port, size_t size,
			      char *version)
{
	const struct watch_server server = {socket, host, port};
	int n = ask_server(&server, RX_PACKET_TYPE_VERSION, "", 1, version, size);

	if (n >= 0 && size > 0)
		version[(size_t)n < size ? (size_t)n : size - 1] = '\0';
	return n;
}

/* -- Statistics of packets ------------------------------------------------------------------------ */

afs_int32 rx_GetServerStats(osi_socket socket, afs_uint32 host, afs_uint16 port,
			    struct rx_statistics *statistics, afs_uint32 *supported)
{
	const struct watch_server server = {socket, host, port};
	uint32_t words[sizeof(*statistics) / sizeof(uint32_t)];
	int n;

	*supported = 0;
	n = ask_debug(&server, RX_DEBUGI_RXSTATS, 0, words, sizeof(struct rx_debugIn),
		      sizeof(words));
	if (n < 0)
		return n;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		words[i] = ntohl(words[i]);
	memcpy(statistics, words, sizeof(words));
	return n;
}

/* -- Connections ---------------------------------------------------------------------------------- */

/* Move the members that lie elsewhere in the format without padding. */
static void align_connection(struct rx_debugConn *connection)
{
	struct rx_debugConn_vL old;

	memcpy(&old, connection, sizeof(old));
	memset(connection->sparec, 0, sizeof(connection->sparec));
	memcpy(connection->callState, old.callState, sizeof(old.callState));
	memcpy(connection->callMode, old.callMode, sizeof(old.callMode));
	memcpy(connection->callFlags, old.callFlags, sizeof(old.callFlags));
	memcpy(connection->callOther, old.callOther, sizeof(old.callOther));
	connection->secStats = old.secStats;
	connection->epoch = connection->natMTU = 0;
}

static void connection_as_host(struct rx_debugConn *connection)
{
	struct rx_securityObjectStats *security = &connection->secStats;

	AS_HOST(connection->cid);
	AS_HOST(connection->serial);
	for (int i = 0; i < RX_DEBUG_CHANNELS; i++)
		AS_HOST(connection->callNumber[i]);
	AS_HOST(connection->error);
	AS_HOST(security->flags);
	AS_HOST(security->expires);
	AS_HOST(security->packetsReceived);
	AS_HOST(security->packetsSent);
	AS_HOST(security->bytesReceived);
	AS_HOST(security->bytesSent);
	AS_HOST(connection->epoch);
	AS_HOST(connection->natMTU);
}

afs_int32 rx_GetServerConnections(osi_socket socket, afs_uint32 host, afs_uint16 port,
				  afs_int32 *next, int all, afs_uint32 known,
				  struct rx_debugConn *connection, afs_uint32 *supported)
{
	const struct watch_server server = {socket, host, port};
	int n = 0;

	*supported = 0;
	if (all)
		n = ask_debug(&server, RX_DEBUGI_GETALLCONN, *next, connection, LEAST_CONN,
			      sizeof(*connection));
	/* A server that cannot list all of them lists those with calls in progress. */
	if (!all || is_debug_refusal(connection, n))
		n = ask_debug(&server, RX_DEBUGI_GETCONN, *next, connection, LEAST_CONN,
			      sizeof(*connection));
	if (n < 0)
		return n;
	if (is_debug_refusal(connection, n))
		return RX_DEBUGI_BADTYPE;
	++*next;
	if (known & RX_SERVER_DEBUG_OLD_CONN)
		align_connection(connection);
	connection_as_host(connection);
	return n;
}

/* -- Peers ---------------------------------------------------------------------------------------- */

static void clock_as_host(struct clock *time)
{
	AS_HOST(time->sec);
	AS_HOST(time->usec);
}

static void hyper_as_host(afs_hyper_t *number)
{
	AS_HOST(number->high);
	AS_HOST(number->low);
}

static void peer_as_host(struct rx_debugPeer *peer)
{
	AS_HOST_SHORT(peer->ifMTU);
	AS_HOST(peer->idleWhen);
	AS_HOST_SHORT(peer->refCount);
	clock_as_host(&peer->burstWait);
	AS_HOST(peer->rtt);
	AS_HOST(peer->rtt_dev);
	clock_as_host(&peer->timeout);
	AS_HOST(peer->nSent);
	AS_HOST(peer->reSends);
	AS_HOST(peer->inPacketSkew);
	AS_HOST(peer->outPacketSkew);
	AS_HOST(peer->rateFlag);
	AS_HOST_SHORT(peer->natMTU);
	AS_HOST_SHORT(peer->maxMTU);
	AS_HOST_SHORT(peer->maxDgramPackets);
	AS_HOST_SHORT(peer->ifDgramPackets);
	AS_HOST_SHORT(peer->MTU);
	AS_HOST_SHORT(peer->cwind);
	AS_HOST_SHORT(peer->nDgramPackets);
	AS_HOST_SHORT(peer->congestSeq);
	hyper_as_host(&peer->bytesSent);
	hyper_as_host(&peer->bytesReceived);
}

afs_int32 rx_GetServerPeers(osi_socket socket, afs_uint32 host, afs_uint16 port, afs_int32 *next,
			    afs_uint32 known, struct rx_debugPeer *peer, afs_uint32 *supported)
{
	const struct watch_server server = {socket, host, port};
	int n;

	(void)known;
	*supported = 0;
	n = ask_debug(&server, RX_DEBUGI_GETPEER, *next, peer,
		      offsetof(struct rx_debugPeer, sparel), sizeof(*peer));
	if (n < 0)
		return n;
	if (is_debug_refusal(peer, n))
		return RX_DEBUGI_BADTYPE;
	++*next;
	peer_as_host(peer);
	return n;
}
