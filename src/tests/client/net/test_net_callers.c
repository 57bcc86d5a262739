/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Cancelling and deadlines, callbacks while all threads wait, servers in doubt, tokens, read-only
 * sites of several ages, the end.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <rxwire/afs.h>

#include "client/net/server.h"
#include "common/clock.h"
#include "tests/asserts.h"
#include "tests/client/net/fake.h"
#include "tests/main.h"

static const AFSFid directory = {FAKE_RW, 1, 1};
static const AFSStoreStatus nothing = {0};

/* -- an operation on a thread of its own -- */

struct operation {
	pthread_t thread;
	struct cl_caller caller;
	struct rxafs_failure failure;
	bool creates;
	int rc;
};

static void *run_operation(void *arg)
{
	struct operation *o = arg;
	AFSFetchStatus status;
	struct cl_stamp stamp;
	struct cl_made made;

	if (o->creates)
		o->rc = cl_net_create_file(fake_volume, &o->caller, &directory, "name", &nothing,
					   &made, &stamp, &o->failure);
	else
		o->rc = cl_net_fetch_status(fake_volume, &o->caller, &directory, &status, &stamp,
					    &o->failure);
	return NULL;
}

static void begin_operation(struct operation *o)
{
	ck_assert_int_eq(pthread_create(&o->thread, NULL, run_operation, o), 0);
}

static void end_operation(struct operation *o)
{
	pthread_join(o->thread, NULL);
}

START_TEST(a_read_is_cancelled)
{
	struct operation o = {.caller.cancel = cl_cancel_create()};

	fake_open(1, 30000);
	fake_hold(0, true);
	begin_operation(&o);
	fake_await_held(0, 1);
	cl_cancel_raise(o.caller.cancel);
	end_operation(&o);
	ck_assert_int_eq(o.rc, -EINTR);
	/* Raised before the operation begins. */
	begin_operation(&o);
	end_operation(&o);
	ck_assert_int_eq(o.rc, -EINTR);
	fake_hold(0, false);
	cl_cancel_reset(o.caller.cancel);
	begin_operation(&o);
	end_operation(&o);
	ck_assert_int_eq(o.rc, 0);
	cl_cancel_free(o.caller.cancel);
	fake_close();
}
END_TEST

START_TEST(a_change_is_not_aborted_by_cancel)
{
	struct operation o = {.caller.cancel = cl_cancel_create(), .creates = true};

	fake_open(1, 30000);
	fake_hold(0, true);
	begin_operation(&o);
	fake_await_held(0, 1);
	cl_cancel_raise(o.caller.cancel);
	fake_hold(0, false);
	end_operation(&o);
	/* It was under way, and was done. */
	ck_assert_int_eq(o.rc, 0);
	ck_assert_uint_eq(fake_calls(0), 1);
	cl_cancel_free(o.caller.cancel);
	fake_close();
}
END_TEST

START_TEST(waits_are_cancelled)
{
	struct operation o = {.caller.cancel = cl_cancel_create()};

	fake.dead_ms = 1000;
	fake_open(1, UINT32_MAX);
	fake_answers(0, FAKE_REPEATS, 1, AFS_VBUSY);
	begin_operation(&o);
	while (fake_calls(0) < 3)
		usleep(1000);
	cl_cancel_raise(o.caller.cancel);
	end_operation(&o);
	ck_assert_int_eq(o.rc, -EINTR);
	/* Of a server that is away. */
	fake_server_stop(0);
	cl_cancel_reset(o.caller.cancel);
	begin_operation(&o);
	while (cl_net_server_state(fake_net, 1) != CL_SERVER_DOWN)
		usleep(1000);
	cl_cancel_raise(o.caller.cancel);
	end_operation(&o);
	ck_assert_int_eq(o.rc, -EINTR);
	cl_cancel_free(o.caller.cancel);
	fake_close();
}
END_TEST

START_TEST(deadlines)
{
	struct operation o = {.creates = false};

	fake_open(1, 30000);
	fake_hold(0, true);
	o.caller.deadline = cl_net_now() + (uint64_t)50 * NS_PER_MS;
	begin_operation(&o);
	end_operation(&o);
	ck_assert_int_eq(o.rc, -ETIMEDOUT);
	ck_assert(!o.failure.maybe_done);
	o.creates = true;
	o.caller.deadline = cl_net_now() + (uint64_t)50 * NS_PER_MS;
	begin_operation(&o);
	end_operation(&o);
	ck_assert_int_eq(o.rc, -ETIMEDOUT);
	/* It reached the server, unless that was slower than the limit. */
	if (o.failure.code)
		ck_assert(o.failure.maybe_done);
	fake_hold(0, false);
	fake_close();
}
END_TEST

START_TEST(all_are_cancelled_at_the_end)
{
	struct operation o[4] = {{.creates = false}, {.creates = true}};

	fake_open(1, UINT32_MAX);
	fake_hold(0, true);
	for (int i = 0; i < 4; i++)
		begin_operation(&o[i]);
	fake_await_held(0, 4);
	cl_net_cancel_all(fake_net);
	for (int i = 0; i < 4; i++) {
		end_operation(&o[i]);
		ck_assert_int_eq(o[i].rc, -EINTR);
	}
	ck_assert(o[1].failure.maybe_done);
	fake_hold(0, false);
	fake_close();
}
END_TEST

/* Of connections that are not used for further calls, too. */
START_TEST(calls_of_dropped_connections_end)
{
	struct operation o[2] = {{.creates = false}, {.creates = true}};

	fake_open(1, UINT32_MAX);
	fake_hold(0, true);
	for (int i = 0; i < 2; i++)
		begin_operation(&o[i]);
	fake_await_held(0, 2);
	cl_server_drop_lanes(cl_server_at(fake_net, 1), NULL);
	cl_net_cancel_all(fake_net);
	for (int i = 0; i < 2; i++) {
		end_operation(&o[i]);
		ck_assert_int_eq(o[i].rc, -EINTR);
	}
	fake_hold(0, false);
	fake_close();
}
END_TEST

static void *find_other_volume(void *arg)
{
	struct operation *o = arg;
	struct cl_volume *volume;

	o->rc = cl_volume_find(fake_net, cl_cells_home(fake_cells), "other", CL_WANT_EXACT,
			       &o->caller, &volume, &o->failure);
	if (o->rc == 0)
		cl_volume_unref(volume);
	return NULL;
}

START_TEST(questions_for_volumes_end)
{
	struct operation o = {.creates = false};
	unsigned asked;
	uint64_t began;

	fake_open(1, UINT32_MAX);
	asked = fake_asked();
	pthread_mutex_lock(&fake_lock);
	fake.vl_hold = true;
	pthread_mutex_unlock(&fake_lock);
	ck_assert_int_eq(pthread_create(&o.thread, NULL, find_other_volume, &o), 0);
	pthread_mutex_lock(&fake_lock);
	while (fake.asked == asked)
		pthread_cond_wait(&fake_changed, &fake_lock);
	pthread_mutex_unlock(&fake_lock);
	began = monotonic_ns();
	cl_net_cancel_all(fake_net);
	end_operation(&o);
	ck_assert_int_eq(o.rc, -EINTR);
	/* A question has 30 s. */
	ck_assert_uint_lt(monotonic_ns() - began, (uint64_t)10 * NS_PER_S);
	pthread_mutex_lock(&fake_lock);
	fake.vl_hold = false;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
	fake_close();
}
END_TEST

static void hold_locations(bool hold)
{
	pthread_mutex_lock(&fake_lock);
	fake.vl_hold = hold;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
}

/* Another thread has waited for the same answer, and asks itself. */
START_TEST(a_question_is_cancelled_for_one)
{
	struct operation first = {.caller.cancel = cl_cancel_create()}, second = {.creates = false};
	unsigned asked;

	fake_open(1, 30000);
	pthread_mutex_lock(&fake_lock);
	fake.name = "other";
	pthread_mutex_unlock(&fake_lock);
	asked = fake_asked();
	hold_locations(true);
	ck_assert_int_eq(pthread_create(&first.thread, NULL, find_other_volume, &first), 0);
	while (fake_asked() == asked)
		usleep(1000);
	ck_assert_int_eq(pthread_create(&second.thread, NULL, find_other_volume, &second), 0);
	/* So that it waits, usually. */
	usleep(100000);
	cl_cancel_raise(first.caller.cancel);
	end_operation(&first);
	ck_assert_int_eq(first.rc, -EINTR);
	hold_locations(false);
	end_operation(&second);
	ck_assert_int_eq(second.rc, 0);
	cl_cancel_free(first.caller.cancel);
	fake_close();
}
END_TEST

/* -- callbacks -- */

#define BUSY 80 /* more than the connections to a server can carry */

START_TEST(breaks_are_answered_while_all_threads_wait)
{
	static struct operation o[BUSY];
	const AFSFid fids[] = {{FAKE_RW, 2, 9}, {FAKE_RW, 4, 10}};
	uint64_t began, longest = 0;

	fake_open(1, 60000);
	looks(fake_volume);
	fake_hold(0, true);
	for (int i = 0; i < BUSY; i++)
		begin_operation(&o[i]);
	fake_await_held(0, 64);
	for (int i = 0; i < 50; i++) {
		began = monotonic_ns();
		ck_assert_int_eq(fake_break(0, fids, 2), 0);
		if (monotonic_ns() - began > longest)
			longest = monotonic_ns() - began;
	}
	ck_assert_uint_eq(fake.breaks, 100);
	ck_assert_uint_eq(fake.broken[0].cell, 1);
	ck_assert_uint_eq(fake.broken[1].volume, FAKE_RW);
	ck_assert_uint_eq(fake.broken[1].vnode, 4);
	ck_assert_uint_eq(fake.broken[1].unique, 10);
	/* A server waits 4 s for this answer. */
	ck_assert_uint_lt(longest, (uint64_t)2 * NS_PER_S);
	fake_hold(0, false);
	for (int i = 0; i < BUSY; i++) {
		end_operation(&o[i]);
		ck_assert_int_eq(o[i].rc, 0);
	}
	fake_close();
}
END_TEST

START_TEST(strangers_and_servers_that_forget)
{
	const AFSFid fid = {FAKE_RW, 2, 9}, whole = {FAKE_RW, 0, 0};
	struct sockaddr_storage client;
	rxw_connection *connection;
	struct rxw_uuid uuid = {.time_low = 0x1000, .time_mid = 7};
	interfaceAddr self;
	Capabilities caps;
	unsigned asked;

	fake.servers[0].promised = 1000;
	fake_open(2, 30000);
	looks(fake_volume);
	client = fake.servers[0].client;
	/* Server 1 holds nothing of this client, which does not know it. */
	fake.servers[1].client = client;
	ck_assert_int_eq(fake_break(1, &fid, 1), 0);
	ck_assert_uint_eq(fake.breaks, 0);
	ck_assert_int_eq(fake_break(0, &fid, 1), 0);
	ck_assert_uint_eq(fake.breaks, 1);
	/* A whole volume: where it is is asked again. */
	asked = fake_asked();
	ck_assert_int_eq(fake_break(0, &whole, 1), 0);
	looks(fake_volume);
	ck_assert_uint_eq(fake_asked(), asked + 1);
	ck_assert_int_eq(rxw_connection_create(fake.servers[0].endpoint, (void *)&client,
					       client.ss_family == AF_INET6
						       ? sizeof(struct sockaddr_in6)
						       : sizeof(struct sockaddr_in),
					       AFS_SERVICE_CB, NULL, &connection),
			 0);
	ck_assert_int_eq(RXAFSCB_InitCallBackState3(connection, &uuid), 0);
	ck_assert_uint_eq(fake.resets, 1);
	looks(fake_volume);
	ck_assert_uint_eq(fake_stamp.resets, 1);
	ck_assert_int_eq(RXAFSCB_InitCallBackState(connection), 0);
	ck_assert_uint_eq(fake.resets, 2);
	ck_assert_int_eq(RXAFSCB_TellMeAboutYourself(connection, &self, &caps), 0);
	ck_assert_uint_eq(caps.len, 1);
	ck_assert_uint_eq(caps.val[0], CLIENT_CAPABILITY_ERRORTRANS);
	xdrfree_Capabilities(&caps);
	ck_assert_int_eq(RXAFSCB_ProbeUuid(connection, &self.uuid), 0);
	ck_assert_int_eq(RXAFSCB_ProbeUuid(connection, &uuid), 1);
	ck_assert_int_eq(RXAFSCB_Probe(connection), 0);
	ck_assert_int_eq(RXAFSCB_WhoAreYou(connection, &self), 0);
	ck_assert_int_eq(RXAFSCB_GetCellByNum(connection, 1, &(char *){NULL}, &(serverList){0}),
			 RXW_RPC_OPCODE);
	rxw_connection_release(connection);
	fake_close();
}
END_TEST

static _Atomic bool closed;

static void *break_for_ever(void *arg)
{
	const AFSFid fids[] = {{FAKE_RW, 2, 9}, {FAKE_RW, 0, 0}};

	/* After the end nobody answers, or the service is gone. */
	while (!closed)
		fake_break_by(arg, fids, 2);
	return arg;
}

START_TEST(breaks_while_the_client_ends)
{
	for (int round = 0; round < 20; round++) {
		rxw_connection *connections[4];
		pthread_t threads[4];

		closed = false;
		fake_open(1, 30000);
		looks(fake_volume);
		for (int i = 0; i < 4; i++) {
			connections[i] = fake_connect_client(0);
			pthread_create(&threads[i], NULL, break_for_ever, connections[i]);
		}
		pthread_mutex_lock(&fake_lock);
		while (fake.breaks < 10)
			pthread_cond_wait(&fake_changed, &fake_lock);
		pthread_mutex_unlock(&fake_lock);
		fake_close_client();
		closed = true;
		/* Else a call that was sent at the end waits until its server sends it again. */
		for (int i = 0; i < 4; i++)
			rxw_connection_abort(connections[i], RXW_USER_ABORT);
		for (int i = 0; i < 4; i++) {
			pthread_join(threads[i], NULL);
			rxw_connection_release(connections[i]);
		}
		fake_close();
	}
}
END_TEST

START_TEST(a_silent_server_is_in_doubt)
{
	struct operation o = {.creates = false};
	uint32_t number = 0;

	fake_open(1, 30000);
	looks(fake_volume);
	ck_assert_int_eq(cl_volume_state(fake_volume, &number), CL_SERVER_UP);
	ck_assert_uint_eq(number, 1);
	fake_hold(0, true);
	begin_operation(&o);
	while (cl_volume_state(fake_volume, &number) != CL_SERVER_DOUBT)
		usleep(10000);
	fake_hold(0, false);
	end_operation(&o);
	ck_assert_int_eq(o.rc, 0);
	ck_assert_int_eq(cl_volume_state(fake_volume, &number), CL_SERVER_UP);
	fake_close();
}
END_TEST

START_TEST(promises_are_given_back)
{
	const AFSFid fids[] = {{FAKE_RW, 2, 9}, {FAKE_RW, 4, 10}};

	fake.servers[0].promised = 1000;
	fake_open(2, 30000);
	looks(fake_volume);
	ck_assert_uint_eq(fake_stamp.callback.ExpirationTime, 1000);
	cl_net_give_up(fake_net, fake_stamp.server, fids, 2);
	ck_assert_uint_eq(fake.servers[0].given_up, 2);
	fake_close_client();
	/* All, at the end; and nobody who promised nothing is bothered. */
	ck_assert_uint_eq(fake.servers[0].given_up, 3);
	ck_assert_uint_eq(fake.servers[1].given_up, 0);
	fake_close();
}
END_TEST

/* -- read-only sites of several ages -- */

START_TEST(time_does_not_run_backwards)
{
	struct cl_volume *ro;
	unsigned used, other;

	fake.has_ro = true;
	fake.ro_servers = 3;
	fake.servers[0].creation = fake.servers[1].creation = 10;
	fake_open(2, 30000);
	ro = fake_find("vol.readonly", CL_WANT_EXACT);
	looks(ro);
	used = fake_stamp.server - 1;
	other = 1 - used;
	/* A release has reached the site in use. */
	fake.servers[used].creation = 20;
	/* The other one could have become the nearer one. */
	fake_answers(1 - used, FAKE_REPEATS, 1, AFS_VBUSY);
	looks(ro);
	fake_answers(1 - used, 0, 0);
	ck_assert_uint_eq(fake_stamp.sync.spare1, 20);
	/* For a moment it is busy: the other one's answer is older, and does not count. */
	fake_answers(used, 0, 2, AFS_VBUSY, AFS_VBUSY);
	fake_answers(other, 0, 0);
	looks(ro);
	ck_assert_uint_eq(fake_stamp.sync.spare1, 20);
	ck_assert_uint_ge(fake_calls(other), 1);
	/* Once released there, too, it is as good. */
	fake.servers[other].creation = 20;
	usleep(200000);
	fake_answers(used, FAKE_REPEATS, 1, AFS_VOFFLINE);
	looks(ro);
	ck_assert_uint_eq(fake_stamp.server - 1, other);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* A server of a volume with two sites has had a newer release, and is stopped. What a look shows then, with this limit of the client. */
static int look_after_newer_site(unsigned soft_ms, struct cl_volume **ro)
{
	unsigned used;

	fake.has_ro = true;
	fake.ro_servers = 3;
	fake.servers[0].creation = fake.servers[1].creation = 10;
	fake.dead_ms = 1000;
	fake_open(2, soft_ms);
	*ro = fake_find("vol.readonly", CL_WANT_EXACT);
	looks(*ro);
	used = fake_stamp.server - 1;
	fake.servers[used].creation = 20;
	/* The other one could have become the nearer one. */
	fake_answers(1 - used, FAKE_REPEATS, 1, AFS_VBUSY);
	looks(*ro);
	fake_answers(1 - used, 0, 0);
	fake_server_stop(used);
	return fake_look(*ro);
}

START_TEST(an_old_site_is_better_than_none)
{
	struct cl_volume *ro;
	unsigned soft_ms = 2500;
	int rc;

	/* The newer one may come back: this waits for it as for a read-write volume. It may have been away for so long before this process looks. */
	while ((rc = look_after_newer_site(soft_ms, &ro)) == 0 && soft_ms < 40000) {
		cl_volume_unref(ro);
		fake_close();
		soft_ms *= 2;
	}
	ck_assert_int_eq(rc, -ETIMEDOUT);
	/* It has been away for longer than anybody waits. */
	do
		rc = fake_look(ro);
	while (rc == -ETIMEDOUT);
	ck_assert_int_eq(rc, 0);
	ck_assert_uint_eq(fake_stamp.sync.spare1, 10);
	cl_volume_unref(ro);
	fake_close();
}
END_TEST

/* -- tokens -- */

static rxw_keys *keys;

static rxw_security *make_token(void)
{
	const struct rxw_rxkad_print_options options = {
		.size = sizeof(options), .name = "user@EXAMPLE.ORG", .lifetime_s = 3600};
	struct rxw_rxkad_token token = {.size = sizeof(token)};
	rxw_security *security = NULL;

	ck_assert_int_eq(rxw_rxkad_print_token(keys, &options, &token), 0);
	ck_assert_int_eq(rxw_rxkad_client(&token, RXW_LEVEL_AUTH, &security), 0);
	rxw_rxkad_token_free(&token);
	return security;
}

static void set_token(struct cl_identity *identity, int64_t expires)
{
	rxw_security *security = make_token();

	ck_assert_int_eq(
		cl_identity_set_token(identity, cl_cells_home(fake_cells), security, expires, true),
		0);
	rxw_security_unref(security);
}

static void renew_token(struct cl_identity *identity, uint32_t cell)
{
	ck_assert_uint_eq(cell, 1);
	set_token(identity, INT64_MAX);
}

static int create_one(void)
{
	struct cl_made made;

	return cl_net_create_file(fake_volume, &fake_caller, &directory, "name", &nothing, &made,
				  &fake_stamp, &fake_failure);
}

START_TEST(tokens)
{
	struct rxw_rxkad_server_options so = {.size = sizeof(so)};
	struct cl_identity *identity;
	uint32_t number;

	ck_assert_int_eq(rxw_keys_create(&keys), 0);
	ck_assert_int_eq(rxw_keys_add(keys, RXW_KEY_KRB5, 1, 17, "0123456789abcdef", 16), 0);
	so.keys = keys;
	ck_assert_int_eq(rxw_rxkad_server(&so, &fake.security[0]), 0);
	fake_open(1, 30000);
	looks(fake_volume);
	ck_assert_uint_eq(fake.servers[0].index, 0);
	identity = cl_identity_create(fake_net, NULL);
	fake_caller.identity = identity;
	/* Without a token it is anonymous. */
	looks(fake_volume);
	ck_assert_uint_eq(fake.servers[0].index, 0);
	ck_assert_uint_eq(fake_stamp.identity, 0);
	set_token(identity, INT64_MAX);
	number = cl_identity_number(identity, 1);
	ck_assert_uint_ne(number, 0);
	ck_assert_uint_eq(cl_identity_number(identity, 2), 0);
	looks(fake_volume);
	ck_assert_uint_eq(fake.servers[0].index, RXW_RXKAD_INDEX);
	ck_assert_uint_eq(fake_stamp.identity, number);
	/* A renewed token is the same user. */
	set_token(identity, INT64_MAX);
	ck_assert_uint_eq(cl_identity_number(identity, 1), number);
	looks(fake_volume);
	/* The server calls it expired, and there is a newer one. */
	fake.renew = true;
	fake.on_renew = renew_token;
	fake_answers(0, 0, 1, RXW_RXKAD_EXPIRED);
	ck_assert_int_eq(create_one(), 0);
	ck_assert_uint_eq(fake.renewals, 1);
	ck_assert_uint_eq(fake.servers[0].index, RXW_RXKAD_INDEX);
	/* There is none: reads are anonymous, changes fail. */
	fake.renew = false;
	fake.on_renew = NULL;
	fake_answers(0, 0, 1, RXW_RXKAD_EXPIRED);
	ck_assert_int_eq(create_one(), -EKEYEXPIRED);
	ck_assert_int_eq(cl_identity_expires(identity, cl_cells_home(fake_cells)), 1);
	looks(fake_volume);
	ck_assert_uint_eq(fake.servers[0].index, 0);
	ck_assert_uint_eq(fake_stamp.identity, 0);
	ck_assert_uint_eq(cl_identity_number(identity, 1), 0);
	ck_assert_int_eq(create_one(), -EKEYEXPIRED);
	/* The local clock knows it. */
	set_token(identity, wall_ns() / NS_PER_S - 1);
	fake_answers(0, 0, 0);
	ck_assert_int_eq(create_one(), -EKEYEXPIRED);
	ck_assert_uint_eq(fake_calls(0), 0);
	/* Others are not affected. */
	set_token(identity, INT64_MAX);
	fake_answers(0, 0, 1, RXW_RXKAD_BADTICKET);
	ck_assert_int_eq(create_one(), -EACCES);
	ck_assert_int_eq(cl_identity_set_token(identity, cl_cells_home(fake_cells), NULL, 0, false),
			 0);
	ck_assert_uint_eq(cl_identity_number(identity, 1), 0);
	ck_assert_int_eq(create_one(), 0);
	cl_identity_unref(identity);
	fake_close_client();
	rxw_security_unref(fake.security[0]);
	fake.security[0] = NULL;
	rxw_keys_unref(keys);
	fake_close();
}
END_TEST

START_TEST(servers_are_listed_and_probed)
{
	struct cl_server_info info;
	struct cl_caller caller = {0};
	uint32_t servers[4];

	fake.has_ro = true;
	fake.ro_servers = 6;
	fake.dead_ms = 1000;
	fake_open(3, 30000);
	ck_assert_uint_eq(cl_volume_servers(fake_volume, servers, 4), 1);
	ck_assert(cl_net_server_info(fake_net, 3, &info));
	ck_assert(!cl_net_server_info(fake_net, 4, &info));
	ck_assert(!cl_net_server_info(fake_net, 0, &info));
	fake_server_stop(2);
	cl_net_probe_servers(fake_net, 1, &caller);
	for (uint32_t n = 1; n <= 3; n++) {
		struct sockaddr_in sin;

		ck_assert(cl_net_server_info(fake_net, n, &info));
		memcpy(&sin, &info.address, sizeof(sin));
		ck_assert_int_eq(info.state, (ntohl(sin.sin_addr.s_addr) == 0x7f000003)
						     ? CL_SERVER_DOWN
						     : CL_SERVER_UP);
	}
	fake_close();
}
END_TEST

/* -- addresses of this machine -- */

/* A network namespace of its own, with loopback only. False: that is not permitted. */
static bool enter_network(void)
{
	struct ifreq r = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
	int fd, rc;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return false;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	rc = ioctl(fd, SIOCSIFFLAGS, &r);
	close(fd);
	return rc == 0;
}

/* A second address of the loopback interface, or none. */
static void set_second_address(bool present)
{
	struct ifreq r = {.ifr_name = "lo:1"};
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x0a090901)};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	memcpy(&r.ifr_addr, &sin, sizeof(sin));
	if (!present)
		r.ifr_flags = 0;
	ck_assert_int_eq(ioctl(fd, present ? SIOCSIFADDR : SIOCSIFFLAGS, &r), 0);
	close(fd);
}

static unsigned count_resets(void)
{
	unsigned resets;

	pthread_mutex_lock(&fake_lock);
	resets = fake.resets;
	pthread_mutex_unlock(&fake_lock);
	return resets;
}

/* Until the client has seen so many changes of the addresses, and has probed the server `more` times since. */
static void await_move(unsigned number, unsigned more)
{
	bool seen = false;

	while (!seen) {
		usleep(1000);
		pthread_mutex_lock(&fake_lock);
		seen = fake.moves == number && fake.servers[0].probes >= fake.probes_at_move + more;
		pthread_mutex_unlock(&fake_lock);
	}
}

static void mute_probes(bool mute)
{
	pthread_mutex_lock(&fake_lock);
	fake.servers[0].mute_probes = mute;
	pthread_cond_broadcast(&fake_changed);
	pthread_mutex_unlock(&fake_lock);
}

START_TEST(servers_see_other_addresses)
{
	if (!enter_network()) {
		puts("note: without namespaces the addresses of this machine do not change");
		return;
	}
	fake_open(1, 30000);
	looks(fake_volume);
	set_second_address(true);
	await_move(1, 1);
	ck_assert_uint_eq(count_resets(), 0);
	looks(fake_volume);
	set_second_address(false);
	await_move(2, 1);
	while (count_resets() == 0)
		usleep(1000);
	looks(fake_volume);
	ck_assert_uint_eq(fake_stamp.resets, 1);
	/* A probe that was sent before says nothing of the new address. */
	mute_probes(true);
	set_second_address(true);
	await_move(3, 1);
	set_second_address(false);
	await_move(4, 0);
	mute_probes(false);
	await_move(4, 1);
	fake_close();
}
END_TEST

START_TEST(a_busy_server_is_not_down)
{
	struct cl_server_info info;
	struct cl_caller caller = {0};
	uint64_t began;

	fake.dead_ms = 1000;
	fake_open(1, 30000);
	looks(fake_volume);
	mute_probes(true);
	/* It does not answer within the dead time, but its library answers PINGs. */
	cl_net_probe_servers(fake_net, 0, &caller);
	pthread_mutex_lock(&fake_lock);
	ck_assert_uint_ge(fake.servers[0].probes, 1);
	pthread_mutex_unlock(&fake_lock);
	ck_assert(cl_net_server_info(fake_net, 1, &info));
	ck_assert_int_eq(info.state, CL_SERVER_UP);
	looks(fake_volume);
	/* The end does not wait for it. */
	began = monotonic_ns();
	fake_close_client();
	ck_assert_uint_lt(monotonic_ns() - began, (uint64_t)10 * NS_PER_S);
	fake_close();
}
END_TEST

TEST_MAIN_WITHIN(120, "net callers", a_read_is_cancelled, a_change_is_not_aborted_by_cancel,
		 waits_are_cancelled, deadlines, all_are_cancelled_at_the_end,
		 calls_of_dropped_connections_end, questions_for_volumes_end,
		 a_question_is_cancelled_for_one, breaks_are_answered_while_all_threads_wait,
		 strangers_and_servers_that_forget, breaks_while_the_client_ends,
		 a_silent_server_is_in_doubt, promises_are_given_back, time_does_not_run_backwards,
		 an_old_site_is_better_than_none, tokens, servers_see_other_addresses,
		 servers_are_listed_and_probed, a_busy_server_is_not_down)
