/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The client side of rxdebug against a server that answers as old, refusing and hostile ones do.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <rx/rx.h>
#include <rx/rx_packet.h>

#include "tests/main.h"

#define ANSWERS 6
#define ROOM	600

/* One datagram of the server. */
struct answer {
	uint8_t body[ROOM];
	size_t size;	 /* of the body */
	uint32_t number; /* added to the call number */
	uint8_t type;	 /* 0: that of the question */
	bool echoed;	 /* flags of a question */
	bool cut;	 /* only 20 bytes of it */
	bool elsewhere;	 /* from another port */
	bool last;	 /* wait for the next question afterwards */
};

static struct {
	int fd, other; /* its sockets */
	afs_uint16 port;
	pthread_t thread;
	struct answer answer[ANSWERS];
	int count;
	int questions;		  /* received */
	afs_int32 type[ANSWERS];  /* of DEBUG questions */
	afs_int32 index[ANSWERS]; /* likewise */
} server;
static int fd; /* of the program */

static int open_socket(afs_uint16 *port)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof(a);
	int s = socket(AF_INET, SOCK_DGRAM, 0);

	ck_assert_int_ge(s, 0);
	ck_assert_int_eq(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	ck_assert_int_eq(getsockname(s, (struct sockaddr *)&a, &size), 0);
	*port = a.sin_port;
	return s;
}

static void send_answer(const struct answer *a, const uint8_t question[RX_HEADER_SIZE],
			const struct sockaddr_in *to)
{
	uint8_t packet[RX_HEADER_SIZE + ROOM];
	uint32_t number;

	memcpy(packet, question, RX_HEADER_SIZE);
	memcpy(&number, packet + 8, 4);
	number = htonl(ntohl(number) + a->number);
	memcpy(packet + 8, &number, 4);
	if (a->type)
		packet[20] = a->type;
	if (!a->echoed)
		packet[21] = 4;
	memcpy(packet + RX_HEADER_SIZE, a->body, a->size);
	sendto(a->elsewhere ? server.other : server.fd, packet,
	       a->cut ? 20 : RX_HEADER_SIZE + a->size, 0, (const struct sockaddr *)to, sizeof(*to));
}

static void *serve(void *arg)
{
	int at = 0;

	(void)arg;
	while (at < server.count) {
		uint8_t question[256];
		struct sockaddr_in from;
		socklen_t size = sizeof(from);
		ssize_t n = recvfrom(server.fd, question, sizeof(question), 0,
				     (struct sockaddr *)&from, &size);

		if (n < RX_HEADER_SIZE)
			return NULL;
		if (n == RX_HEADER_SIZE + 8) {
			memcpy(&server.type[server.questions], question + RX_HEADER_SIZE, 4);
			memcpy(&server.index[server.questions], question + RX_HEADER_SIZE + 4, 4);
		}
		server.questions++;
		do
			send_answer(&server.answer[at], question, &from);
		while (!server.answer[at++].last && at < server.count);
	}
	return NULL;
}

static void set_up(void)
{
	afs_uint16 unused;

	memset(&server, 0, sizeof(server));
	server.fd = open_socket(&server.port);
	server.other = open_socket(&unused);
	fd = open_socket(&unused);
}

static void tear_down(void)
{
	pthread_join(server.thread, NULL);
	close(server.fd);
	close(server.other);
	close(fd);
}

static struct answer *add_answer(const void *body, size_t size)
{
	struct answer *a = &server.answer[server.count++];

	if (size)
		memcpy(a->body, body, size);
	a->size = size;
	a->last = true;
	return a;
}

static void start(void)
{
	ck_assert_int_eq(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

#define HOST htonl(INADDR_LOOPBACK)

/* -- Basic statistics and versions ---------------------------------------------------------------- */

static afs_int32 debug_of(char version, struct rx_debugStats *out, afs_uint32 *supported)
{
	struct rx_debugStats stats = {.nFreePackets = (afs_int32)htonl(1),
				      .packetReclaims = (afs_int32)htonl(2),
				      .callsExecuted = (afs_int32)htonl(0x01020304),
				      .waitingForPackets = 1,
				      .usedFDs = 5,
				      .version = version,
				      .nWaiting = (afs_int32)htonl(6),
				      .idleThreads = (afs_int32)htonl(7),
				      .nWaited = (afs_int32)htonl(8),
				      .nPackets = (afs_int32)htonl(9)};
	afs_int32 n;

	set_up();
	add_answer(&stats, sizeof(stats));
	start();
	n = rx_GetServerDebug(fd, HOST, server.port, out, supported);
	tear_down();
	ck_assert_int_eq(ntohl((uint32_t)server.type[0]), RX_DEBUGI_GETSTATS);
	return n;
}

START_TEST(basic_statistics)
{
	struct rx_debugStats s;
	afs_uint32 supported = 77;

	ck_assert_int_eq(debug_of('S', &s, &supported), 56);
	ck_assert_int_eq(s.nFreePackets, 1);
	ck_assert_int_eq(s.packetReclaims, 2);
	ck_assert_int_eq(s.callsExecuted, 0x01020304);
	ck_assert_int_eq(s.waitingForPackets, 1);
	ck_assert_int_eq(s.usedFDs, 5);
	ck_assert_int_eq(s.version, 'S');
	ck_assert_int_eq(s.nWaiting, 6);
	ck_assert_int_eq(s.idleThreads, 7);
	ck_assert_int_eq(s.nWaited, 8);
	ck_assert_int_eq(s.nPackets, 9);
	ck_assert_uint_eq(supported, 0x3df);
}
END_TEST

START_TEST(versions)
{
	static const struct {
		char version;
		afs_uint32 supported;
	} cases[] = {
		{'K', RX_SERVER_DEBUG_OLD_CONN},
		{'L', 0x21},
		{'M', 0x07},
		{'N', 0x0f},
		{'O', 0x1f},
		{'P', 0x5f},
		{'Q', 0xdf},
		{'R', 0x1df},
		{'S', 0x3df},
		{'T', 0x3df},
		{0, RX_SERVER_DEBUG_OLD_CONN},
	};
	struct rx_debugStats s;
	afs_uint32 supported;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		ck_assert_int_ge(debug_of(cases[i].version, &s, &supported), 0);
		ck_assert_uint_eq(supported, cases[i].supported);
	}
}
END_TEST

START_TEST(version_text)
{
	char body[65] = "some version", text[64], small[5];

	set_up();
	add_answer(body, sizeof(body));
	add_answer(body, 12);
	add_answer(body, 0);
	add_answer("longer", 6);
	start();
	ck_assert_int_eq(rx_GetServerVersion(fd, HOST, server.port, sizeof(text), text), 64);
	ck_assert_str_eq(text, "some version");
	memset(text, 'x', sizeof(text));
	ck_assert_int_eq(rx_GetServerVersion(fd, HOST, server.port, sizeof(text), text), 12);
	ck_assert_str_eq(text, "some version");
	ck_assert_int_eq(rx_GetServerVersion(fd, HOST, server.port, sizeof(text), text), 0);
	ck_assert_str_eq(text, "");
	ck_assert_int_eq(rx_GetServerVersion(fd, HOST, server.port, sizeof(small), small), 5);
	ck_assert_str_eq(small, "long");
	tear_down();
}
END_TEST

/* -- Statistics of packets ------------------------------------------------------------------------ */

START_TEST(packet_statistics)
{
	uint32_t words[71];
	struct rx_statistics s;
	afs_uint32 supported = 77;

	for (unsigned i = 0; i < 71; i++)
		words[i] = htonl(1000 + i);
	set_up();
	add_answer(words, sizeof(words));
	add_answer(words, 50); /* an older server, and a part of a word */
	start();
	ck_assert_int_eq(rx_GetServerStats(fd, HOST, server.port, &s, &supported), sizeof(s));
	ck_assert_uint_eq(supported, 0);
	ck_assert_int_eq(s.packetRequests, 1000);
	ck_assert_int_eq(s.packetsRead[0], 1011);
	ck_assert_int_eq(s.dataPacketsRead, 1024);
	ck_assert_int_eq(s.packetsSent[12], 1040);
	ck_assert_int_eq(s.maxRtt.usec, 1054);
	ck_assert_int_eq(s.nBusies, 1066);
	ck_assert_int_eq(s.spares[3], 1070);
	ck_assert_int_eq(rx_GetServerStats(fd, HOST, server.port, &s, &supported), 50);
	ck_assert_int_eq(s.packetsRead[0], 1011);
	ck_assert_int_eq(s.packetsRead[2], 0);
	tear_down();
	ck_assert_int_eq(ntohl((uint32_t)server.type[0]), RX_DEBUGI_RXSTATS);
}
END_TEST

/* -- Connections ---------------------------------------------------------------------------------- */

static void put(uint8_t *at, uint32_t word)
{
	word = htonl(word);
	memcpy(at, &word, 4);
}

/* A connection. `gap` bytes lie between the security index and the states of calls. */
static void put_connection(uint8_t body[176], size_t gap)
{
	memset(body, 0, 176);
	memcpy(body, "\x0a\x01\x02\x03", 4);
	put(body + 4, 0x50);
	put(body + 8, 99);
	for (uint8_t i = 0; i < 4; i++) {
		put(body + 12 + 4 * i, 11u + i);
		body[37 + gap + i] = (uint8_t)(1 + i);
		body[41 + gap + i] = (uint8_t)(11 + i);
		body[45 + gap + i] = (uint8_t)(21 + i);
		body[49 + gap + i] = (uint8_t)(31 + i);
	}
	put(body + 28, (uint32_t)-3);
	memcpy(body + 32, "\x1b\x59", 2);
	body[34] = 2;
	body[35] = 1;
	body[36] = 2;
	body[56] = RX_SECTYPE_KAD;
	body[57] = 2;
	for (uint8_t i = 0; i < 6; i++)
		put(body + 68 + 4 * i, 500u + i);
}

static void check_connection(const struct rx_debugConn *c)
{
	ck_assert_uint_eq(ntohl(c->host), 0x0a010203);
	ck_assert_uint_eq(ntohs((uint16_t)c->port), 7001);
	ck_assert_int_eq(c->cid, 0x50);
	ck_assert_int_eq(c->serial, 99);
	ck_assert_int_eq(c->error, RX_CALL_TIMEOUT);
	ck_assert_int_eq(c->flags, 2);
	ck_assert_int_eq(c->type, RX_SERVER_CONNECTION);
	ck_assert_int_eq(c->securityIndex, RX_SECIDX_KAD);
	for (int i = 0; i < RX_MAXCALLS; i++) {
		ck_assert_int_eq(c->callNumber[i], 11 + i);
		ck_assert_int_eq(c->callState[i], 1 + i);
		ck_assert_int_eq(c->callMode[i], 11 + i);
		ck_assert_int_eq(c->callFlags[i], 21 + i);
		ck_assert_int_eq(c->callOther[i], 31 + i);
	}
}

static void check_security(const struct rx_debugConn *c)
{
	ck_assert_int_eq(c->secStats.type, RX_SECTYPE_KAD);
	ck_assert_int_eq(c->secStats.level, 2);
	ck_assert_int_eq(c->secStats.flags, 500);
	ck_assert_uint_eq(c->secStats.expires, 501);
	ck_assert_uint_eq(c->secStats.packetsReceived, 502);
	ck_assert_uint_eq(c->secStats.packetsSent, 503);
	ck_assert_uint_eq(c->secStats.bytesReceived, 504);
	ck_assert_uint_eq(c->secStats.bytesSent, 505);
}

START_TEST(connections)
{
	uint8_t body[176];
	struct rx_debugConn c;
	afs_uint32 supported;
	afs_int32 next = 5;

	put_connection(body, 3);
	put(body + 132, 0x11223344);
	put(body + 136, 1444);
	set_up();
	add_answer(body, sizeof(body));
	memset(body, 0, sizeof(body));
	put(body + 4, 0xffffffff);
	add_answer(body, sizeof(body));
	start();
	ck_assert_int_eq(
		rx_GetServerConnections(fd, HOST, server.port, &next, 1, 0x3df, &c, &supported),
		176);
	check_connection(&c);
	check_security(&c);
	ck_assert_int_eq(c.epoch, 0x11223344);
	ck_assert_int_eq(c.natMTU, 1444);
	ck_assert_int_eq(
		rx_GetServerConnections(fd, HOST, server.port, &next, 0, 0x3df, &c, &supported),
		176);
	ck_assert_int_eq(c.cid, -1);
	ck_assert_int_eq(next, 7);
	tear_down();
	ck_assert_int_eq(ntohl((uint32_t)server.type[0]), RX_DEBUGI_GETALLCONN);
	ck_assert_int_eq(ntohl((uint32_t)server.index[0]), 5);
	ck_assert_int_eq(ntohl((uint32_t)server.type[1]), RX_DEBUGI_GETCONN);
	ck_assert_int_eq(ntohl((uint32_t)server.index[1]), 6);
}
END_TEST

/* The states of calls follow the security index at once, and there are no epochs. */
START_TEST(old_connections)
{
	uint8_t body[176];
	struct rx_debugConn c;
	afs_uint32 supported;
	afs_int32 next = 0;

	put_connection(body, 0);
	put(body + 132, 0x11223344); /* spare words */
	set_up();
	add_answer(body, 172);
	add_answer(body, 53); /* without statistics of security */
	add_answer(body, 52); /* too short */
	start();
	ck_assert_int_eq(
		rx_GetServerConnections(fd, HOST, server.port, &next, 0, 0x21, &c, &supported),
		172);
	check_connection(&c);
	check_security(&c);
	ck_assert_int_eq(c.epoch, 0);
	ck_assert_int_eq(
		rx_GetServerConnections(fd, HOST, server.port, &next, 0, 0x20, &c, &supported), 53);
	check_connection(&c);
	ck_assert_int_eq(c.secStats.type, RX_SECTYPE_UNK);
	ck_assert_uint_eq(c.secStats.bytesSent, 0);
	ck_assert_int_eq(
		rx_GetServerConnections(fd, HOST, server.port, &next, 0, 0x20, &c, &supported), -1);
	ck_assert_int_eq(errno, EBADMSG);
	ck_assert_int_eq(next, 2);
	tear_down();
}
END_TEST

/* -- Peers ---------------------------------------------------------------------------------------- */

START_TEST(peers)
{
	uint8_t body[132];
	struct rx_debugPeer p;
	afs_uint32 supported;
	afs_int32 next = 3;

	for (uint8_t i = 0; i < sizeof(body); i++)
		body[i] = i;
	set_up();
	add_answer(body, sizeof(body));
	add_answer(body, 91);
	start();
	ck_assert_int_eq(rx_GetServerPeers(fd, HOST, server.port, &next, 0, &p, &supported), 132);
	ck_assert_int_eq(next, 4);
	ck_assert_uint_eq(ntohl(p.host), 0x00010203);
	ck_assert_uint_eq(ntohs(p.port), 0x0405);
	ck_assert_uint_eq(p.ifMTU, 0x0607);
	ck_assert_uint_eq(p.idleWhen, 0x08090a0b);
	ck_assert_int_eq(p.refCount, 0x0c0d);
	ck_assert_uint_eq(p.burst, 15);
	ck_assert_int_eq(p.rtt, 0x18191a1b);
	ck_assert_int_eq(p.timeout.usec, 0x24252627);
	ck_assert_int_eq(p.nSent, 0x28292a2b);
	ck_assert_uint_eq(p.natMTU, 0x3c3d);
	ck_assert_uint_eq(p.congestSeq, 0x4a4b);
	ck_assert_uint_eq(p.bytesSent.high, 0x4c4d4e4f);
	ck_assert_uint_eq(p.bytesReceived.low, 0x58595a5b);
	ck_assert_int_eq(rx_GetServerPeers(fd, HOST, server.port, &next, 0, &p, &supported), -1);
	ck_assert_int_eq(errno, EBADMSG);
	ck_assert_int_eq(next, 4);
	tear_down();
}
END_TEST

/* -- Refusals, hostile answers, no answers -------------------------------------------------------- */

START_TEST(refusals)
{
	uint8_t refused[8], body[176];
	struct rx_statistics s;
	struct rx_debugStats d;
	struct rx_debugConn c;
	struct rx_debugPeer p;
	afs_uint32 supported;
	afs_int32 next = 0;

	put(refused, (uint32_t)RX_DEBUGI_BADTYPE);
	put(refused + 4, (uint32_t)RX_DEBUGI_BADTYPE);
	put_connection(body, 3);
	set_up();
	for (int i = 0; i < 4; i++)
		add_answer(refused, sizeof(refused));
	add_answer(body, sizeof(body));
	start();
	ck_assert_int_eq(rx_GetServerDebug(fd, HOST, server.port, &d, &supported),
			 RX_DEBUGI_BADTYPE);
	ck_assert_int_eq(rx_GetServerStats(fd, HOST, server.port, &s, &supported), 8);
	ck_assert_int_eq(s.packetRequests, RX_DEBUGI_BADTYPE);
	ck_assert_int_eq(rx_GetServerPeers(fd, HOST, server.port, &next, 0, &p, &supported),
			 RX_DEBUGI_BADTYPE);
	/* The list of all is refused, the other one is not. */
	ck_assert_int_eq(
		rx_GetServerConnections(fd, HOST, server.port, &next, 1, 0x01, &c, &supported),
		176);
	check_connection(&c);
	ck_assert_int_eq(next, 1);
	tear_down();
	ck_assert_int_eq(ntohl((uint32_t)server.type[3]), RX_DEBUGI_GETALLCONN);
	ck_assert_int_eq(ntohl((uint32_t)server.type[4]), RX_DEBUGI_GETCONN);
}
END_TEST

/* Packets that are not the answer are passed over, each before the next question is due. */
START_TEST(foreign_packets)
{
	struct answer *a;
	char text[64];

	set_up();
	a = add_answer("wrong number", 12);
	a->number = 1;
	a->last = false;
	a = add_answer("wrong type", 10);
	a->type = RX_PACKET_TYPE_DEBUG;
	a->last = false;
	a = add_answer("an echo", 7);
	a->echoed = true;
	a->last = false;
	a = add_answer("cut off", 7);
	a->cut = true;
	a->last = false;
	a = add_answer("from another port", 17);
	a->elsewhere = true;
	a->last = false;
	add_answer("right", 5);
	start();
	ck_assert_int_eq(rx_GetServerVersion(fd, HOST, server.port, sizeof(text), text), 5);
	ck_assert_str_eq(text, "right");
	tear_down();
	ck_assert_int_eq(server.questions, 1);
}
END_TEST

START_TEST(repeats_the_question)
{
	struct answer *lost;
	char text[64];

	set_up();
	lost = add_answer("not an answer", 13);
	lost->number = 1;
	add_answer("answer", 6);
	start();
	ck_assert_int_eq(rx_GetServerVersion(fd, HOST, server.port, sizeof(text), text), 6);
	ck_assert_str_eq(text, "answer");
	tear_down();
	ck_assert_int_eq(server.questions, 2);
}
END_TEST

START_TEST(bad_socket)
{
	char text[64];
	int ends[2];

	errno = 0;
	ck_assert_int_eq(rx_GetServerVersion(OSI_NULLSOCKET, HOST, htons(7000), sizeof(text), text),
			 -1);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_int_eq(pipe(ends), 0);
	close(ends[0]);
	errno = 0;
	ck_assert_int_eq(rx_GetServerVersion(ends[1], HOST, htons(7000), sizeof(text), text), -1);
	ck_assert_int_eq(errno, ENOTSOCK);
	close(ends[1]);
}
END_TEST

TEST_MAIN("rxdebug", basic_statistics, versions, version_text, packet_statistics, connections,
	  old_connections, peers, refusals, foreign_packets, repeats_the_question, bad_socket)
