/* SPDX-License-Identifier: BSD-2-Clause */
/* Calls of classic Rx: both sides in one process, through the port of rx_Init(). */
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rx/rx.h>

#include "port.h"
#include "tests/main.h"

#define SERVICE 5000

/* Requests: a word, then what the procedure below says. */
enum {
	ECHO,	/* a length and as many bytes: sends them back */
	CODE,	/* a word: the code */
	LEND,	/* like ECHO, with rx_Readv and rx_Writev */
	WAIT,	/* waits for the gate, then 7 */
	WHOLE,	/* reads to the end of the request */
	OFFER,	/* rx_WritevAlloc without rx_Writev */
	FAMILY, /* values on the connection */
	STATUS	/* sets the status byte to 3 */
};

static struct {
	struct rx_service *service;
	struct rx_securityClass *classes[1];
	struct rx_connection *connection;
	u_short port;
	sem_t arrived, gate;
	struct rx_call *_Atomic call; /* of the last WAIT */
	atomic_int before, after, post, destroyed;
	afs_int32 last;
	int key;
} bed;

static int procedure_echo(struct rx_call *call, int length)
{
	char *bytes = malloc((size_t)length + 1);
	int rc = 0;

	if (rx_Read(call, bytes, length) != length)
		rc = RX_EOF;
	else if (rx_Write(call, bytes, length) != length)
		rc = RX_PROTOCOL_ERROR;
	free(bytes);
	return rc;
}

/* All is read first: the first write would end reading. */
static int procedure_lend(struct rx_call *call, int length)
{
	char *bytes = malloc((size_t)length + 1);
	struct iovec iov[RX_MAXIOVECS];
	int done = 0, n, count, rc = 0;

	while (done < length) {
		n = rx_Readv(call, iov, &count, RX_MAXIOVECS, length - done);
		if (n <= 0)
			break;
		for (int i = 0; i < count; i++) {
			memcpy(bytes + done, iov[i].iov_base, iov[i].iov_len);
			done += (int)iov[i].iov_len;
		}
	}
	if (done != length)
		rc = RX_EOF;
	for (done = 0; !rc && done < length; done += n) {
		int filled = 0;

		n = rx_WritevAlloc(call, iov, &count, RX_MAXIOVECS, length - done);
		if (n <= 0) {
			rc = EIO;
			break;
		}
		for (int i = 0; i < count; i++) {
			memcpy(iov[i].iov_base, bytes + done + filled, iov[i].iov_len);
			filled += (int)iov[i].iov_len;
		}
		ck_assert_int_eq(filled, n);
		if (rx_Writev(call, iov, count, n) != n)
			rc = EIO;
	}
	free(bytes);
	return rc;
}

static int procedure_wait(struct rx_call *call)
{
	char byte;
	int n;

	bed.call = call;
	sem_post(&bed.arrived);
	sem_wait(&bed.gate);
	n = rx_Read(call, &byte, 1);
	sem_post(&bed.arrived);
	return n == 1 ? 0 : 7;
}

static int procedure_whole(struct rx_call *call)
{
	char byte;

	while (rx_Read(call, &byte, 1) == 1)
		;
	sem_post(&bed.arrived);
	return 0;
}

static int procedure_family(struct rx_call *call)
{
	struct rx_connection *c = rx_ConnectionOf(call);
	afs_int32 answer[4];

	answer[0] = (afs_int32)(intptr_t)rx_GetSpecific(c, bed.key);
	answer[1] = (afs_int32)rx_GetConnectionId(c);
	answer[2] = (afs_int32)rx_GetConnectionEpoch(c);
	answer[3] = rx_SecurityClassOf(c) | rx_IsServerConn(c) << 8 | rx_ServiceIdOf(c) << 16;
	rx_SetSpecific(c, bed.key, (void *)(intptr_t)(answer[0] + 1));
	return rx_Write(call, (char *)answer, sizeof(answer)) == sizeof(answer) ? 0 : EIO;
}

static afs_int32 procedure(struct rx_call *call)
{
	struct iovec iov[4];
	afs_int32 what, argument = 0;
	int count;

	if (rx_Read32(call, &what) != 4 || rx_Read32(call, &argument) != 4)
		return RX_EOF;
	switch (what) {
	case ECHO:
		return procedure_echo(call, argument);
	case LEND:
		return procedure_lend(call, argument);
	case CODE:
		return argument;
	case WAIT:
		return procedure_wait(call);
	case WHOLE:
		return procedure_whole(call);
	case OFFER:
		return rx_WritevAlloc(call, iov, &count, 4, 100) > 0 ? 0 : EIO;
	case FAMILY:
		return procedure_family(call);
	case STATUS:
		rx_SetLocalStatus(call, 3);
		return rx_Write(call, "", 1) == 1 ? 0 : EIO;
	default:
		return RX_PROTOCOL_ERROR;
	}
}

static void before(struct rx_call *call)
{
	ck_assert_ptr_nonnull(rx_ConnectionOf(call));
	bed.before++;
}

static void after(struct rx_call *call, afs_int32 code)
{
	ck_assert_ptr_nonnull(call);
	bed.last = code;
	bed.after++;
}

static void post(afs_int32 code)
{
	(void)code;
	bed.post++;
}

/* The values are numbers from 1 on: count them. */
static void destroyed(void *value)
{
	ck_assert_ptr_nonnull(value);
	bed.destroyed++;
}

static void open_bed(void)
{
	bed.classes[0] = rxnull_NewServerSecurityObject();
	sem_init(&bed.arrived, 0, 0);
	sem_init(&bed.gate, 0, 0);
	if (!bed.key)
		bed.key = rx_KeyCreate(destroyed);
	bed.port = port_start();
	ck_assert_int_eq(rx_Init(0), 0);
	bed.service = rx_NewService(0, SERVICE, "test", bed.classes, 1, procedure);
	ck_assert_ptr_nonnull(bed.service);
	ck_assert_ptr_eq(rx_NewService(0, SERVICE, "test", bed.classes, 1, procedure), bed.service);
	rx_SetMaxProcs(bed.service, 4);
	rx_SetMinProcs(bed.service, 2);
	rx_SetBeforeProc(bed.service, before);
	rx_SetAfterProc(bed.service, after);
	rx_SetPostProc(bed.service, post);
	bed.connection =
		rx_NewConnection(htonl(INADDR_LOOPBACK), bed.port, SERVICE, bed.classes[0], 0);
}

static void close_bed(void)
{
	rx_DestroyConnection(bed.connection);
	rx_Finalize();
	rxs_Release(bed.classes[0]);
}

static struct rx_call *ask(afs_int32 what, afs_int32 argument)
{
	struct rx_call *call = rx_NewCall(bed.connection);

	ck_assert_int_eq(rx_Write32(call, &what), 4);
	ck_assert_int_eq(rx_Write32(call, &argument), 4);
	return call;
}

/* A call that transfers `n` bytes there and back, read in parts. */
static void round_trip(afs_int32 what, int n, int part)
{
	struct rx_call *call = ask(what, n);
	char *out = malloc((size_t)n + 1), *in = malloc((size_t)n + 1);

	for (int i = 0; i < n; i++)
		out[i] = (char)(i * 7 + i / 1000);
	for (int done = 0; done < n; done += part) {
		int some = n - done < part ? n - done : part;

		ck_assert_int_eq(rx_Write(call, out + done, some), some);
	}
	for (int done = 0; done < n; done += part) {
		int some = n - done < part ? n - done : part;

		ck_assert_int_eq(rx_Read(call, in + done, some), some);
	}
	ck_assert_int_eq(rx_Read(call, in, 1), 0);
	ck_assert_int_eq(rx_Error(call), 0);
	ck_assert(!memcmp(in, out, (size_t)n));
	ck_assert_int_eq(rx_EndCall(call, 0), 0);
	free(out);
	free(in);
}

START_TEST(streams)
{
	static const int sizes[] = {0, 1, 3, 4, 1000, 1023, 1024, 1025, 1443, 5000, 300000};
	static const int parts[] = {1, 4, 7, 1000, 1024, 4096, 1000000};

	open_bed();
	rx_StartServer(0);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (size_t j = 0; j < sizeof(parts) / sizeof(parts[0]); j++) {
			if (sizes[i] / parts[j] > 10000)
				continue;
			round_trip(ECHO, sizes[i], parts[j]);
			round_trip(LEND, sizes[i], parts[j]);
		}
	ck_assert_int_gt(bed.before, 100);
	ck_assert_int_eq(bed.before, bed.after);
	close_bed();
}
END_TEST

START_TEST(codes)
{
	static const afs_int32 all[] = {1,	    -1,	       -2,	  -450,
					1700000000, INT32_MIN, INT32_MAX, 19270408};

	open_bed();
	rx_StartServer(0);
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct rx_call *call = ask(CODE, all[i]);
		char byte;

		ck_assert_int_eq(rx_Read(call, &byte, 1), 0);
		ck_assert_int_eq(rx_Error(call), all[i]);
		ck_assert_int_eq(rx_EndCall(call, RX_USER_ABORT), all[i]);
		ck_assert_int_eq(bed.last, all[i]);
		ck_assert_int_eq(rx_ConnError(bed.connection), 0);
	}
	ck_assert_int_eq(rx_EndCall(ask(CODE, VDISKFULL), 0), ENOSPC);
	ck_assert_int_eq(rx_EndCall(ask(CODE, VOVERQUOTA), 0), EDQUOT);
	ck_assert_int_eq(rx_EndCall(ask(CODE, 0), 0), 0);
	ck_assert_int_eq(rx_EndCall(ask(CODE, 0), 99), 99);
	close_bed();
}
END_TEST

/* Calls that come before rx_StartServer() wait for it. */
START_TEST(early)
{
	struct rx_call *call;

	open_bed();
	call = ask(CODE, 5);
	rx_FlushWrite(call);
	ck_assert_int_eq(bed.before, 0);
	rx_StartServer(0);
	rx_StartServer(0);
	ck_assert_int_eq(rx_EndCall(call, 0), 5);
	close_bed();
}
END_TEST

START_TEST(direction)
{
	struct rx_call *call;
	struct iovec iov[2];
	char bytes[4];
	int count;

	open_bed();
	rx_StartServer(0);
	call = ask(ECHO, 4);
	ck_assert_int_eq(rx_Write(call, "abcd", 4), 4);
	ck_assert_int_eq(rx_Read(call, bytes, 2), 2);
	ck_assert_int_eq(rx_Write(call, "abcd", 4), 0);
	ck_assert_int_eq(rx_WritevAlloc(call, iov, &count, 2, 10), 0);
	ck_assert_int_eq(rx_Readv(call, iov, &count, 2, 10), 2);
	ck_assert_int_eq(count, 1);
	ck_assert(!memcmp(iov[0].iov_base, "cd", 2));
	ck_assert_int_eq(rx_Readv(call, iov, &count, 2, 10), 0);
	ck_assert_int_eq(rx_EndCall(call, 0), 0);
	/* The offer of a procedure that returns without using it lapses. */
	call = ask(OFFER, 0);
	ck_assert_int_eq(rx_Read(call, bytes, 1), 0);
	ck_assert_int_eq(rx_EndCall(call, 0), 0);
	call = ask(STATUS, 0);
	ck_assert_int_eq(rx_Read(call, bytes, 1), 1);
	ck_assert_int_eq(rx_GetRemoteStatus(call), 3);
	ck_assert_int_eq(rx_EndCall(call, 0), 0);
	close_bed();
}
END_TEST

/* The server sees the end of a request although the client does not read yet. */
START_TEST(flush_ends_the_request)
{
	struct rx_call *call;

	open_bed();
	rx_StartServer(0);
	call = ask(WHOLE, 0);
	ck_assert_int_eq(rx_Write(call, "abcd", 4), 4);
	rx_FlushWrite(call);
	sem_wait(&bed.arrived);
	ck_assert_int_eq(rx_Write(call, "abcd", 4), 0);
	rx_FlushWrite(call);
	ck_assert_int_eq(rx_EndCall(call, 0), 0);
	close_bed();
}
END_TEST

START_TEST(interrupt)
{
	struct rx_call *call;
	afs_int32 read_next, transmit_next;
	int last_send, last_receive;
	char byte;

	open_bed();
	rx_StartServer(0);
	call = ask(WAIT, 0);
	rx_FlushWrite(call);
	sem_wait(&bed.arrived);
	rx_GetCallStatus(bed.call, &read_next, &transmit_next, &last_send, &last_receive);
	ck_assert_int_eq(read_next, 2);
	ck_assert_int_eq(transmit_next, 1);
	ck_assert_int_gt(last_receive, 1000000000);
	rx_GetCallStatus(bed.call, NULL, NULL, NULL, NULL);
	rx_InterruptCall(bed.call, 110);
	/* The client knows at once, the procedure at its next read. */
	ck_assert_int_eq(rx_Read(call, &byte, 1), 0);
	ck_assert_int_eq(rx_EndCall(call, 0), 110);
	sem_post(&bed.gate);
	sem_wait(&bed.arrived);
	close_bed();
	ck_assert_int_eq(bed.last, 7);
}
END_TEST

START_TEST(values)
{
	afs_int32 answer[4], first[4];
	struct rx_call *call;

	open_bed();
	rx_StartServer(0);
	for (int i = 0; i < 5; i++) {
		call = ask(FAMILY, 0);
		ck_assert_int_eq(rx_Read(call, (char *)answer, sizeof(answer)), sizeof(answer));
		ck_assert_int_eq(rx_EndCall(call, 0), 0);
		if (!i)
			memcpy(first, answer, sizeof(first));
		ck_assert_int_eq(answer[0], i);
		ck_assert_int_eq(answer[1], (int)rx_GetConnectionId(bed.connection));
		ck_assert_int_eq(answer[2], (int)rx_GetConnectionEpoch(bed.connection));
		ck_assert_int_eq(answer[3], 1 << 8 | SERVICE << 16);
		ck_assert_int_eq(answer[1] & 3, 0);
	}
	/* Each one that was replaced, but not the initial NULL. */
	ck_assert_int_eq(bed.destroyed, 4);
	ck_assert_ptr_null(rx_GetSpecific(bed.connection, bed.key));
	rx_SetSpecific(bed.connection, bed.key, (void *)1);
	rx_SetSpecific(bed.connection, bed.key, (void *)1);
	ck_assert_int_eq(bed.destroyed, 4);
	rx_SetSpecific(bed.connection, bed.key, NULL);
	ck_assert_int_eq(bed.destroyed, 5);
	close_bed();
	/* The one that was left on the server's connection. */
	ck_assert_int_eq(bed.destroyed, 6);
}
END_TEST

START_TEST(multi)
{
	struct rx_connection *c[5];
	bool seen[5] = {false};
	struct multi_handle *mh;
	int order = 0;

	open_bed();
	rx_SetMaxProcs(bed.service, 8);
	rx_StartServer(0);
	for (int i = 0; i < 5; i++)
		c[i] = rx_NewConnection(htonl(INADDR_LOOPBACK), bed.port,
					i == 3 ? SERVICE + 1 : SERVICE, NULL, 0);
	mh = multi_Init(c, 5);
	for (int i = 0; i < 5; i++) {
		afs_int32 what = i == 1 ? WAIT : CODE, argument = 10 + i;

		ck_assert_int_eq(rx_Write32(mh->calls[i], &what), 4);
		ck_assert_int_eq(rx_Write32(mh->calls[i], &argument), 4);
		rx_FlushWrite(mh->calls[i]);
	}
	for (int i; order < 4 && (i = multi_Select(mh)) >= 0; order++) {
		ck_assert(!seen[i] && i != 1);
		seen[i] = true;
		ck_assert_int_eq(rx_EndCall(mh->calls[i], 0),
				 i == 3 ? RX_INVALID_OPERATION : 10 + i);
		mh->calls[i] = NULL;
	}
	ck_assert_int_eq(order, 4);
	/* The one that waits is ended with it. */
	sem_wait(&bed.arrived);
	multi_Finalize(mh);
	sem_post(&bed.gate);
	for (int i = 0; i < 5; i++)
		rx_DestroyConnection(c[i]);
	close_bed();
}
END_TEST

/* A connection that was given up goes after its calls. */
START_TEST(references)
{
	struct rx_connection *c;
	struct rx_call *call;
	afs_int32 what = CODE, argument = 12;

	open_bed();
	rx_StartServer(0);
	c = rx_NewConnection(htonl(INADDR_LOOPBACK), bed.port, SERVICE, NULL, 0);
	rx_GetConnection(c);
	rx_PutConnection(c);
	call = rx_NewCall(c);
	rx_PutConnection(c);
	ck_assert_int_eq(rx_Write32(call, &what), 4);
	ck_assert_int_eq(rx_Write32(call, &argument), 4);
	ck_assert_int_eq(rx_EndCall(call, 0), 12);
	ck_assert_int_eq(rx_Error(call), 12);
	close_bed();
}
END_TEST

START_TEST(cache)
{
	struct rx_connection *c[6];

	open_bed();
	for (int i = 0; i < 6; i++)
		c[i] = rx_GetCachedConnection(htonl(INADDR_LOOPBACK), bed.port, SERVICE,
					      bed.classes[0], 0);
	/* One for each channel. */
	for (int i = 0; i < 6; i++)
		ck_assert_ptr_eq(c[i], i < 4 ? c[0] : c[4]);
	ck_assert_ptr_ne(c[0], c[4]);
	for (int i = 0; i < 6; i++)
		rx_ReleaseCachedConnection(c[i]);
	ck_assert_ptr_eq(rx_GetCachedConnection(htonl(INADDR_LOOPBACK), bed.port, SERVICE,
						bed.classes[0], 0),
			 c[0]);
	close_bed();
}
END_TEST

/* A packet of type 13 comes without a call. */
START_TEST(nat_ping)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct pollfd readable = {.fd = fd, .events = POLLIN};
	socklen_t length = sizeof(sa);
	struct rx_connection *c;
	unsigned char packet[64];

	open_bed();
	ck_assert_int_eq(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&sa, &length), 0);
	c = rx_NewConnection(sa.sin_addr.s_addr, sa.sin_port, SERVICE, NULL, 0);
	rx_SetConnSecondsUntilNatPing(c, 1);
	ck_assert_int_eq(poll(&readable, 1, 30000), 1);
	ck_assert_int_eq(recv(fd, packet, sizeof(packet), 0), 29);
	ck_assert_uint_eq(packet[20], 13);
	rx_SetConnSecondsUntilNatPing(c, 0);
	rx_DestroyConnection(c);
	close(fd);
	close_bed();
}
END_TEST

TEST_MAIN("classic calls", streams, codes, early, direction, flush_ends_the_request, interrupt,
	  values, multi, references, cache, nat_ping)
