/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Traces, read with the tests' own reader: all datagrams and their bytes, the ring, events, dead
 * calls, failures.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rxwire/observe.h>

#include "base/wire.h"
#include "reader.h"
#include "tests/rx/api/harness.h"

static struct h_bed bed;
static char folder[64], path[128], other[128];

static void begin_test(void)
{
	snprintf(folder, sizeof(folder), "/tmp/rxwire-trace-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/a.pcapng", folder);
	snprintf(other, sizeof(other), "%s/b.pcapng", folder);
}

static unsigned entries(const char *name, bool clean)
{
	DIR *d = opendir(name);
	struct dirent *e;
	unsigned n = 0;

	ck_assert_ptr_nonnull(d);
	while ((e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		n++;
		if (clean)
			ck_assert_int_eq(unlinkat(dirfd(d), e->d_name, 0), 0);
	}
	closedir(d);
	return n;
}

static void end_test(void)
{
	entries(folder, true);
	ck_assert_int_eq(rmdir(folder), 0);
}

static void start(rxw_endpoint *endpoint, size_t memory, unsigned snap)
{
	struct rxw_trace_options o = {.size = sizeof(o), .memory = memory, .snap = snap};

	ck_assert_int_eq(rxw_trace_start(endpoint, &o), 0);
}

static struct rxw_trace_counts count(rxw_endpoint *endpoint)
{
	struct rxw_trace_counts c = {.size = sizeof(c)};

	ck_assert_int_eq(rxw_trace_count(endpoint, &c), 0);
	return c;
}

/* No packet is between the sockets and the trace any more, and no call is left. */
static bool at_rest(void *arg)
{
	struct counters s = counters_of(arg);

	return !counter_in(&s, "calls_active") &&
	       count(arg).packets ==
		       counter_in(&s, "datagrams.sent") + counter_in(&s, "datagrams.received");
}

static void save(rxw_endpoint *endpoint, const char *name, struct reader *r)
{
	ck_assert_int_eq(rxw_trace_save(endpoint, name), 0);
	reader_open(r, name);
}

/* ---- contents ---- */

static uint16_t port_of(rxw_endpoint *endpoint)
{
	struct sockaddr_storage sa;
	socklen_t length = sizeof(sa);

	ck_assert_int_eq(rxw_endpoint_address(endpoint, &sa, &length), 0);
	return ntohs(sa.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&sa)->sin6_port
					      : ((struct sockaddr_in *)&sa)->sin_port);
}

/* The datagram of the other end that equals this one. */
static const struct reader_packet *same(const struct reader *r, const struct rxw_header *h)
{
	for (unsigned i = 0; i < r->count; i++) {
		struct rxw_header g;

		if (r->packet[i].sent && rxw_header_get(r->packet[i].data, r->packet[i].kept, &g) &&
		    g.serial == h->serial && g.cid == h->cid && g.type == h->type &&
		    g.seq == h->seq)
			return &r->packet[i];
	}
	return NULL;
}

/*
 * Each datagram that one end received was sent by the other, byte for byte, with the same names in
 * both directions.
 */
static void compare(const struct reader *from, const struct reader *to, uint16_t from_port,
		    uint16_t to_port, bool six)
{
	unsigned n = 0;

	for (unsigned i = 0; i < to->count; i++) {
		const struct reader_packet *p = &to->packet[i], *q;
		struct rxw_header h;

		ck_assert_int_eq(p->six, six);
		if (p->sent)
			continue;
		ck_assert(rxw_header_get(p->data, p->kept, &h));
		q = same(from, &h);
		ck_assert_ptr_nonnull(q);
		ck_assert_uint_eq(q->length, p->length);
		ck_assert_uint_eq(p->kept, p->length);
		ck_assert_mem_eq(q->data, p->data, p->length);
		ck_assert(q->from == from_port && p->from == from_port);
		ck_assert(q->to == to_port && p->to == to_port);
		ck_assert_mem_eq(p->source, q->source, 16);
		ck_assert_mem_eq(p->target, q->target, 16);
		n++;
	}
	ck_assert_uint_gt(n, 0);
}

static void in_order(const struct reader *r)
{
	for (unsigned i = 1; i < r->count; i++)
		ck_assert_uint_ge(r->packet[i].at, r->packet[i - 1].at);
}

START_TEST(every_datagram_recorded)
{
	static const struct {
		bool ipv6;
		const char *both, *security;
	} of[] = {{.both = "listeners=2"},
		  {.both = "gso=off gro=off io=msg"},
		  {.ipv6 = true, .both = "mtu=1400"},
		  {.both = "jumbo=on", .security = "null"},
		  {.security = "rxkad-crypt"}};
	struct h_options o = {
		.ipv6 = of[_i].ipv6, .both = of[_i].both, .security = of[_i].security};
	rxw_connection *connection;
	struct reader c, s;

	if (o.ipv6 && !h_have_ipv6())
		return;
	begin_test();
	h_open(&bed, &o);
	start(bed.client, 32 << 20, 65535);
	start(bed.server, 32 << 20, 65535);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 300000});
	for (int i = 0; i < 3; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	rxw_connection_release(connection);
	h_wait_for(at_rest, bed.client, "the client's trace");
	h_wait_for(at_rest, bed.server, "the server's trace");
	save(bed.client, path, &c);
	save(bed.server, other, &s);
	ck_assert_uint_eq(c.count, counter_of(bed.client, "datagrams.sent") +
					   counter_of(bed.client, "datagrams.received"));
	ck_assert_uint_eq(c.count, c.received);
	ck_assert_uint_eq(c.dropped, 0);
	compare(&c, &s, port_of(bed.client), port_of(bed.server), o.ipv6);
	compare(&s, &c, port_of(bed.server), port_of(bed.client), o.ipv6);
	in_order(&c);
	in_order(&s);
	reader_free(&c);
	reader_free(&s);
	h_close(&bed);
	end_test();
}
END_TEST

START_TEST(newest_replace_oldest)
{
	rxw_connection *connection;
	struct rxw_trace_counts k;
	struct reader r;

	begin_test();
	h_open(&bed, NULL);
	start(bed.server, 64 << 10, 101);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_SINK, .bytes = 2 << 20});
	rxw_connection_release(connection);
	h_wait_for(at_rest, bed.server, "the server's trace");
	k = count(bed.server);
	ck_assert_uint_gt(k.overwritten, 0);
	ck_assert_int_ne(k.on, 0);
	save(bed.server, path, &r);
	ck_assert_uint_eq(r.received, k.packets);
	ck_assert_uint_eq(r.dropped, k.overwritten);
	ck_assert_uint_eq(r.count, k.packets - k.overwritten);
	ck_assert_uint_gt(r.count, 50);
	ck_assert_uint_lt(r.size, 128 << 10);
	for (unsigned i = 0; i < r.count; i++) {
		ck_assert_uint_le(r.packet[i].kept, 101);
		ck_assert_uint_eq(r.packet[i].kept,
				  r.packet[i].length < 101 ? r.packet[i].length : 101);
	}
	in_order(&r);
	reader_free(&r);
	/* A new trace lacks it; a stopped one keeps its packets. */
	start(bed.server, 0, 0);
	ck_assert_int_eq(rxw_trace_stop(bed.server), 0);
	ck_assert_int_eq(count(bed.server).on, 0);
	save(bed.server, path, &r);
	ck_assert_uint_eq(r.count, 0);
	reader_free(&r);
	h_close(&bed);
	end_test();
}
END_TEST

START_TEST(events_are_comments)
{
	static const uint8_t garbage[10];
	rxw_connection *connection;
	struct reader c, s;
	int fd;

	begin_test();
	h_open(&bed, NULL);
	start(bed.client, 0, 0);
	start(bed.server, 0, 0);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){.op = H_ABORT, .code = 4711}),
			 4711);
	rxw_connection_release(connection);
	fd = h_raw_socket(&bed);
	ck_assert_int_eq(send(fd, garbage, sizeof(garbage), 0), sizeof(garbage));
	close(fd);
	h_wait_for(at_rest, bed.client, "the client's trace");
	h_wait_for(at_rest, bed.server, "the server's trace");
	while (!counter_of(bed.server, "drops.short"))
		usleep(1000);
	save(bed.client, path, &c);
	save(bed.server, other, &s);
	ck_assert_uint_eq(reader_comments(&c, "begins: client, service 100"), 2);
	ck_assert_uint_eq(reader_comments(&c, "succeeded"), 1);
	ck_assert_uint_eq(reader_comments(&c, "with 4711"), 1);
	ck_assert_uint_eq(reader_comments(&c, "(from the peer)"), 1);
	ck_assert_uint_eq(reader_comments(&s, "begins: server, service 100"), 2);
	ck_assert_uint_eq(reader_comments(&s, "handler started"), 2);
	ck_assert_uint_eq(reader_comments(&s, "with 4711"), 1);
	ck_assert_uint_eq(reader_comments(&s, "dropped 1: short"), 1);
	reader_free(&c);
	reader_free(&s);
	h_close(&bed);
	end_test();
}
END_TEST

/* Datagrams that the kernel refused are reported, and not shown as packets. */
START_TEST(refused_datagrams_not_shown)
{
	rxw_connection *connection;
	struct counters s;
	struct reader r;

	begin_test();
	h_open(&bed,
	       &(struct h_options){
		       .client =
			       "gso=off inject=send:ENOBUFS@2,send:ENOBUFS@3,"
		"send:EPERM@7,send:EPERM@8"});
	start(bed.client, 0, 0);
	connection = h_connect(&bed, H_SERVICE);
	h_good_call(&bed, connection, &(struct h_ask){.op = H_SINK, .bytes = 100000});
	rxw_connection_release(connection);
	ck_assert_int_eq(rxw_trace_stop(bed.client), 0);
	save(bed.client, path, &r);
	s = counters_of(bed.client);
	ck_assert_uint_gt(counter_in(&s, "send_errors"), 0);
	ck_assert_uint_ge(reader_comments(&r, "the kernel refused it"), 1);
	ck_assert_uint_lt(r.count, r.received);
	reader_free(&r);
	h_close(&bed);
	end_test();
}
END_TEST

/* ---- dead calls ---- */

static unsigned written; /* that the test waits for */
static atomic_uint reported, unreported;

static void count_file(void *arg, const char *name, int result)
{
	ck_assert_ptr_eq(arg, &reported);
	ck_assert_ptr_nonnull(strstr(name, "-dead-"));
	atomic_fetch_add(result ? &unreported : &reported, 1);
}

static bool is_written(void *arg)
{
	(void)arg;
	return atomic_load(&reported) == written;
}

/* A silent socket. */
static int silent(struct sockaddr_in *sin)
{
	socklen_t length = sizeof(*sin);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	*sin = (struct sockaddr_in){.sin_family = AF_INET,
				    .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(bind(fd, (struct sockaddr *)sin, length), 0);
	ck_assert_int_eq(getsockname(fd, (struct sockaddr *)sin, &length), 0);
	return fd;
}

START_TEST(dead_calls_leave_files)
{
	struct rxw_trace_files files = {.size = sizeof(files),
					.dir = folder,
					.most = 2,
					.pause_ms = 1,
					.report = count_file,
					.arg = &reported};
	rxw_trace_watch *watch;
	rxw_connection *connection;
	struct sockaddr_in sin;
	struct reader r;
	int fd = silent(&sin);

	begin_test();
	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_trace_watch_start(bed.client, NULL, &files, &watch), 0);
	connection = h_connect(&bed, H_SERVICE);
	ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){.op = H_ABORT, .code = -6}), -6);
	rxw_connection_release(connection);
	ck_assert_int_eq(rxw_connection_create(bed.client, (struct sockaddr *)&sin, sizeof(sin),
					       H_SERVICE, NULL, &connection),
			 0);
	ck_assert_int_eq(rxw_connection_set_timeouts(connection, 0, 0, 200), 0);
	for (written = 1; written <= 3; written++) {
		ck_assert_int_eq(h_call(&bed, connection, &(struct h_ask){.op = H_PING}),
				 RXW_CALL_TIMEOUT);
		if (written == 3) /* pending files are written before it ends */
			rxw_trace_watch_stop(watch);
		h_wait_for(is_written, bed.client, "the file");
		ck_assert_uint_eq(entries(folder, false), written < 2 ? 1 : 2);
	}
	ck_assert_uint_eq(count(bed.client).deaths, 3);
	ck_assert_uint_eq(atomic_load(&unreported), 0);
	rxw_connection_release(connection);
	for (unsigned i = 0; i < 2; i++) {
		struct stat st;

		snprintf(path, sizeof(path), "%s/rxwire-%u-dead-%u.pcapng", folder,
			 port_of(bed.client), i);
		ck_assert_int_eq(stat(path, &st), 0);
		ck_assert_uint_eq(st.st_mode & 0777, 0600);
		reader_open(&r, path);
		/* The first was replaced by the third. */
		ck_assert_uint_eq(reader_comments(&r, "with -3"), i ? 2 : 3);
		reader_free(&r);
	}
	h_close(&bed);
	close(fd);
	end_test();
}
END_TEST

static int try_folder(const char *name)
{
	struct rxw_trace_files files = {.size = sizeof(files), .dir = name};
	rxw_trace_watch *watch = NULL;
	int rc = rxw_trace_watch_start(bed.server, NULL, &files, &watch), why = errno;

	ck_assert_int_eq(count(bed.server).on, !rc);
	rxw_trace_watch_stop(watch);
	ck_assert_int_eq(count(bed.server).on, 0);
	errno = why;
	return rc;
}

START_TEST(shared_folders_refused)
{
	begin_test();
	h_open(&bed, NULL);
	ck_assert_int_eq(chmod(folder, 0777), 0);
	ck_assert_int_eq(try_folder(folder), -RXW_ESYS);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(chmod(folder, 0720), 0);
	ck_assert_int_eq(try_folder(folder), -RXW_ESYS);
	ck_assert_int_eq(errno, EPERM);
	ck_assert_int_eq(chmod(folder, 0755), 0);
	ck_assert_int_eq(try_folder(folder), 0);
	ck_assert_int_eq(try_folder(path), -RXW_ESYS);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(try_folder("/dev/null"), -RXW_ESYS);
	ck_assert_int_eq(errno, ENOTDIR);
	h_close(&bed);
	end_test();
}
END_TEST

/* ---- failures ---- */

START_TEST(files_that_fail)
{
	struct stat st;
	char text[8];
	int fd, ends[2];

	begin_test();
	signal(SIGPIPE, SIG_IGN);
	h_open(&bed, NULL);
	start(bed.server, 0, 0);
	fd = open("/dev/full", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		ck_assert_int_eq(rxw_trace_write(bed.server, fd), -RXW_ESYS);
		ck_assert_int_eq(errno, ENOSPC);
		close(fd);
	}
	ck_assert_int_eq(pipe(ends), 0);
	close(ends[0]);
	ck_assert_int_eq(rxw_trace_write(bed.server, ends[1]), -RXW_ESYS);
	ck_assert_int_eq(errno, EPIPE);
	close(ends[1]);
	ck_assert_int_eq(rxw_trace_write(bed.server, ends[1]), -RXW_ESYS);
	ck_assert_int_eq(errno, EBADF);
	ck_assert_int_eq(rxw_trace_save(bed.server, "/nowhere/a.pcapng"), -RXW_ESYS);
	ck_assert_int_eq(errno, ENOENT);
	ck_assert_int_eq(rxw_trace_save(bed.server, folder),
			 -RXW_ESYS); /* a folder has that name */
	ck_assert_uint_eq(entries(folder, false), 0);
	snprintf(text, sizeof(text), "%s", "mine");
	/* A link is replaced, not followed. */
	fd = open(other, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	ck_assert_int_eq(write(fd, text, 4), 4);
	close(fd);
	ck_assert_int_eq(symlink(other, path), 0);
	ck_assert_int_eq(rxw_trace_save(bed.server, path), 0);
	ck_assert_int_eq(lstat(path, &st), 0);
	ck_assert(S_ISREG(st.st_mode));
	ck_assert_int_eq(lstat(other, &st), 0);
	ck_assert_int_eq(st.st_size, 4);
	ck_assert_uint_eq(entries(folder, false), 2);
	h_close(&bed);
	end_test();
}
END_TEST

static void note_nothing(void *arg)
{
	(void)arg;
}

static void refuse_files(void)
{
	struct rxw_trace_files files = {.size = sizeof(files), .dir = folder};
	struct rxw_trace_options o = {.size = sizeof(o)};
	rxw_trace_watch *watch;

	ck_assert_int_eq(rxw_trace_watch_start(NULL, NULL, &files, &watch), -RXW_EINVAL);
	ck_assert_int_eq(rxw_trace_watch_start(bed.server, NULL, NULL, &watch), -RXW_EINVAL);
	ck_assert_int_eq(rxw_trace_watch_start(bed.server, NULL, &files, NULL), -RXW_EINVAL);
	files.most = 1001;
	ck_assert_int_eq(rxw_trace_watch_start(bed.server, NULL, &files, &watch), -RXW_EINVAL);
	files.most = 0;
	o.memory = 1000;
	ck_assert_int_eq(rxw_trace_watch_start(bed.server, &o, &files, &watch), -RXW_EINVAL);
	o.memory = 0;
	o.failed = note_nothing;
	ck_assert_int_eq(rxw_trace_watch_start(bed.server, &o, &files, &watch), -RXW_EINVAL);
	files.dir = NULL;
	ck_assert_int_eq(rxw_trace_watch_start(bed.server, NULL, &files, &watch), -RXW_EINVAL);
	ck_assert_int_eq(count(bed.server).on, 0);
	rxw_trace_watch_stop(NULL);
}

START_TEST(arguments)
{
	struct rxw_trace_options o = {.size = sizeof(o)};
	struct rxw_trace_counts k = {.size = sizeof(k)};

	begin_test();
	h_open(&bed, NULL);
	ck_assert_int_eq(rxw_trace_stop(bed.server), -RXW_ESTATE);
	ck_assert_int_eq(rxw_trace_write(bed.server, 1), -RXW_ESTATE);
	ck_assert_int_eq(rxw_trace_save(bed.server, path), -RXW_ESTATE);
	ck_assert_int_eq(count(bed.server).on, 0);
	ck_assert_int_eq(rxw_trace_start(NULL, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_trace_stop(NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_trace_write(NULL, 1), -RXW_EINVAL);
	ck_assert_int_eq(rxw_trace_save(bed.server, NULL), -RXW_EINVAL);
	ck_assert_int_eq(rxw_trace_count(NULL, &k), -RXW_EINVAL);
	ck_assert_int_eq(rxw_trace_count(bed.server, NULL), -RXW_EINVAL);
	o.memory = 1000;
	ck_assert_int_eq(rxw_trace_start(bed.server, &o), -RXW_EINVAL);
	o.memory = (size_t)2 << 30;
	ck_assert_int_eq(rxw_trace_start(bed.server, &o), -RXW_EINVAL);
	o.memory = 0;
	o.snap = 27;
	ck_assert_int_eq(rxw_trace_start(bed.server, &o), -RXW_EINVAL);
	o.snap = 65536;
	ck_assert_int_eq(rxw_trace_start(bed.server, &o), -RXW_EINVAL);
	o.snap = 0;
	o.size = 1;
	ck_assert_int_eq(rxw_trace_start(bed.server, &o), -RXW_EINVAL);
	refuse_files();
	ck_assert_int_eq(rxw_trace_start(bed.server, NULL), 0);
	ck_assert_int_eq(rxw_trace_stop(bed.server), 0);
	ck_assert_int_eq(rxw_trace_stop(bed.server), -RXW_ESTATE);
	h_close(&bed);
	end_test();
}
END_TEST

/* The ring is charged to the engine's memory and returned to it. */
START_TEST(memory_charged_to_engine)
{
	int64_t before;

	begin_test();
	h_open(&bed, &(struct h_options){.both = "memory=64M"});
	before = (int64_t)rxw_engine_memory(bed.server_engine, NULL);
	ck_assert_int_eq(rxw_trace_start(bed.server,
					 &(struct rxw_trace_options){
						 .size = sizeof(struct rxw_trace_options),
						 .memory = 128 << 20}),
			 -RXW_ENOMEM);
	ck_assert_int_eq(count(bed.server).on, 0);
	/* The listeners also allocate and release some. */
	for (unsigned i = 1; i < 4; i++) {
		int64_t used, ring = (int64_t)i << 23;

		start(bed.server, (size_t)ring, 0);
		used = (int64_t)rxw_engine_memory(bed.server_engine, NULL);
		ck_assert_int_gt(used, before + ring - (4 << 20));
		ck_assert_int_lt(used, before + ring + (4 << 20));
	}
	h_close(&bed);
	end_test();
}
END_TEST

/* ---- on and off during calls ---- */

static atomic_bool over;

static void *switches(void *arg)
{
	for (unsigned i = 0; !atomic_load(&over); i++) {
		start(arg, (64u + i % 3 * 64u) << 10, i % 2 ? 0 : 1500);
		ck_assert_int_eq(rxw_trace_save(arg, path), 0);
		(void)rxw_trace_stop(arg);
	}
	return NULL;
}

static void *writes(void *arg)
{
	while (!atomic_load(&over)) {
		int rc = rxw_trace_save(arg, other);

		ck_assert(rc == 0 || rc == -RXW_ESTATE);
		(void)count(arg);
	}
	return NULL;
}

START_TEST(on_and_off_during_calls)
{
	rxw_connection *connection;
	pthread_t thread[2];

	begin_test();
	h_open(&bed, &(struct h_options){.both = "listeners=2"});
	atomic_store(&over, false);
	ck_assert_int_eq(pthread_create(&thread[0], NULL, switches, bed.server), 0);
	ck_assert_int_eq(pthread_create(&thread[1], NULL, writes, bed.server), 0);
	connection = h_connect(&bed, H_SERVICE);
	for (int i = 0; i < 20; i++)
		h_good_call(&bed, connection, &(struct h_ask){.op = H_BOTH, .bytes = 200000});
	rxw_connection_release(connection);
	atomic_store(&over, true);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	h_close(&bed);
	end_test();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("trace");
	TCase *t = tcase_create("trace");
	SRunner *r;
	int failed;

	tcase_set_timeout(t, 120);
	tcase_add_loop_test(t, every_datagram_recorded, 0, 5);
	tcase_add_test(t, newest_replace_oldest);
	tcase_add_test(t, events_are_comments);
	tcase_add_test(t, refused_datagrams_not_shown);
	tcase_add_test(t, dead_calls_leave_files);
	tcase_add_test(t, shared_folders_refused);
	tcase_add_test(t, files_that_fail);
	tcase_add_test(t, arguments);
	tcase_add_test(t, memory_charged_to_engine);
	tcase_add_test(t, on_and_off_during_calls);
	suite_add_tcase(s, t);
	r = srunner_create(s);
	srunner_run_all(r, CK_NORMAL);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
