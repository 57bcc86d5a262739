/* SPDX-License-Identifier: BSD-2-Clause */
/* A thread that waits at a queue has the receive role. Each event that must end its wait does. */
#include <semaphore.h>
#include <string.h>

#include "engine/lock.h"
#include "engine/objects.h"
#include "engine/sched/inner.h"
#include "tests/main.h"
#include "tests/rx/api/harness.h"

#define AN_HOUR (3600 * RXW_SEC)

static struct h_bed bed;
static rxw_queue *queue;
static rxw_connection *connection;
static struct rxw_shard *shard; /* of the client */

/* A deadline may pass before the request is written: then the call has ended, as the test expects. */
static rxw_call *ask(rxw_connection *c, enum h_op op, struct rxw_call_options options)
{
	bool may_be_late = options.deadline_ms != 0;
	rxw_call *call;

	options.size = sizeof(options);
	options.flags = RXW_CALL_NONBLOCK;
	options.events = options.callback ? 0 : RXW_EVENT_DONE;
	options.queue = options.callback ? NULL : queue;
	ck_assert_int_eq(rxw_call_begin(c, &options, &call), 0);
	if (h_try_write_ask(call, &(struct h_ask){.op = op}) && !rxw_call_send_end(call))
		return call;
	ck_assert(may_be_late);
	return call;
}

static rxw_call *ping(rxw_connection *c)
{
	return ask(c, H_PING, (struct rxw_call_options){0});
}

static struct rxw_queue_event next(int timeout_ms)
{
	struct rxw_queue_event event = {0};
	int n = rxw_queue_next(queue, &event, 1, timeout_ms);

	ck_assert_int_ge(n, 0);
	ck_assert(n || timeout_ms >= 0);
	return event;
}

static void end(rxw_call *call, int32_t code)
{
	ck_assert_int_eq(rxw_call_end(call, 0, NULL), code);
}

/* `grace` and `idle`: 0: as they are. */
static void open_bed(uint64_t grace, uint64_t idle)
{
	h_open(&bed, &(struct h_options){.client = "listeners=1"});
	ck_assert_int_eq(rxw_queue_create(bed.client_engine, NULL, &queue), 0);
	shard = &bed.client->shard[0];
	rxw_role_lock(shard);
	if (grace)
		shard->role.grace = grace;
	if (idle)
		shard->role.idle = idle;
	rxw_role_unlock(shard);
	connection = h_connect(&bed, H_SERVICE);
	ping(connection);
	end(next(-1).call, 0);
}

static void close_bed(void)
{
	ck_assert_uint_eq(atomic_load(&shard->role.sleepers), 0);
	ck_assert_uint_eq(atomic_load(&shard->role.waiters), 0);
	ck_assert_uint_eq(atomic_load(&shard->role.guests), 0);
	rxw_connection_release(connection);
	ck_assert_int_eq(rxw_queue_destroy(queue), 0);
	h_close(&bed);
}

/*
 * With an endless grace the role stays free once a blocking caller has had it. The queue is not
 * to stay out because this thread was away for longer than usual.
 */
static void free_role(void)
{
	pthread_mutex_lock(&queue->lock);
	queue->away_at = queue->stay_out = 0;
	pthread_mutex_unlock(&queue->lock);
	while (!rxw_role_is_free(&shard->role))
		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
}

static bool receives(void *unused)
{
	bool does;

	(void)unused;
	pthread_mutex_lock(&queue->lock);
	does = queue->receiving == shard;
	pthread_mutex_unlock(&queue->lock);
	return does && atomic_load(&shard->role.in_wait);
}

static bool sleeps(void *unused)
{
	bool does;

	(void)unused;
	pthread_mutex_lock(&queue->lock);
	does = queue->waiting > 0;
	pthread_mutex_unlock(&queue->lock);
	return does;
}

static void *wait_once(void *event)
{
	*(struct rxw_queue_event *)event = next(-1);
	return NULL;
}

/* A thread waits in rxw_queue_next() without limit, and receives. No listener helps it. */
static void start_receiver(pthread_t *t, struct rxw_queue_event *event)
{
	free_role();
	pthread_create(t, NULL, wait_once, event);
	h_wait_for(receives, NULL, "the thread receives");
}

START_TEST(it_receives)
{
	struct rxw_queue_event event;
	rxw_call *call;
	pthread_t t;

	open_bed(AN_HOUR, AN_HOUR);
	for (unsigned i = 0; i < 20; i++) {
		uint64_t wakeups;

		start_receiver(&t, &event);
		wakeups = atomic_load(&shard->wakeups);
		call = ping(connection);
		pthread_join(t, NULL);
		ck_assert_ptr_eq(event.call, call);
		ck_assert_uint_eq(atomic_load(&shard->wakeups), wakeups);
		end(call, 0);
		ck_assert(rxw_role_is_free(&shard->role));
	}
	close_bed();
}
END_TEST

START_TEST(a_post_ends_the_wait)
{
	struct rxw_queue_event event;
	pthread_t t;

	open_bed(AN_HOUR, AN_HOUR);
	for (unsigned i = 0; i < 20; i++) {
		start_receiver(&t, &event);
		ck_assert_int_eq(rxw_queue_post(queue, &bed), 0);
		pthread_join(t, NULL);
		ck_assert_uint_eq(event.events, RXW_EVENT_POST);
		ck_assert_ptr_eq(event.arg, &bed);
	}
	close_bed();
}
END_TEST

START_TEST(the_timeout_ends_the_wait)
{
	uint64_t began;

	open_bed(AN_HOUR, AN_HOUR);
	free_role();
	began = h_now_ms();
	ck_assert_uint_eq(next(30).events, 0);
	ck_assert_uint_ge(h_now_ms() - began, 29);
	/* It may not come back soon, so the listener receives. */
	ck_assert(!rxw_role_is_free(&shard->role));
	close_bed();
}
END_TEST

/* A thread that has nothing to do for long sleeps without the role, and is still woken. */
START_TEST(an_idle_thread_leaves_the_role)
{
	struct rxw_queue_event event;
	rxw_call *call;
	pthread_t t;

	open_bed(AN_HOUR, 1);
	free_role();
	pthread_create(&t, NULL, wait_once, &event);
	h_wait_for(sleeps, NULL, "the thread sleeps");
	ck_assert(!rxw_role_is_free(&shard->role));
	call = ping(connection);
	pthread_join(t, NULL);
	ck_assert_ptr_eq(event.call, call);
	end(call, 0);
	close_bed();
}
END_TEST

/* A blocking caller leaves the role free beside an idle thread: for the grace period only. */
START_TEST(an_idle_thread_waits_for_the_grace_at_most)
{
	struct rxw_queue_event event;
	rxw_call *call;
	pthread_t t;

	open_bed(0, 1);
	pthread_create(&t, NULL, wait_once, &event);
	h_wait_for(sleeps, NULL, "the thread sleeps");
	while (!rxw_role_is_free(&shard->role))
		h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
	call = ping(connection);
	pthread_join(t, NULL);
	ck_assert_ptr_eq(event.call, call);
	end(call, 0);
	close_bed();
}
END_TEST

START_TEST(the_end_of_the_endpoint_ends_the_wait)
{
	struct rxw_queue_event event;
	pthread_t t;

	open_bed(AN_HOUR, AN_HOUR);
	if (_i) { /* asleep, for the listener has the role */
		rxw_role_reclaim(shard);
		pthread_create(&t, NULL, wait_once, &event);
		h_wait_for(sleeps, NULL, "the thread sleeps");
	} else {
		start_receiver(&t, &event);
	}
	rxw_connection_release(connection);
	ck_assert_int_eq(rxw_endpoint_destroy(bed.client), 0);
	/* It goes on waiting, and can use another endpoint. */
	bed.client = h_client(&bed, "listeners=1");
	shard = &bed.client->shard[0];
	connection = h_connect(&bed, H_SERVICE);
	ping(connection);
	pthread_join(t, NULL);
	end(event.call, 0);
	close_bed();
}
END_TEST

START_TEST(an_event_of_another_endpoint)
{
	struct rxw_queue_event event;
	rxw_connection *c;
	rxw_endpoint *other;
	pthread_t t;

	open_bed(AN_HOUR, AN_HOUR);
	other = h_client(&bed, NULL);
	ck_assert_int_eq(rxw_connection_create(other, (struct sockaddr *)&bed.address,
					       bed.address_len, H_SERVICE, bed.security, &c),
			 0);
	for (unsigned i = 0; i < 20; i++) {
		start_receiver(&t, &event);
		ping(c);
		pthread_join(t, NULL);
		end(event.call, 0);
		/* From now on the listeners would receive. Forget that. */
		pthread_mutex_lock(&queue->lock);
		ck_assert(atomic_load(&queue->elsewhere));
		atomic_store(&queue->elsewhere, false);
		pthread_mutex_unlock(&queue->lock);
	}
	rxw_connection_release(c);
	ck_assert_int_eq(rxw_endpoint_destroy(other), 0);
	close_bed();
}
END_TEST

/* The wheel of the shard runs while the thread waits, also for an earlier time than before. */
START_TEST(a_deadline_during_the_wait)
{
	struct rxw_call_options late = {.deadline_ms = 30};
	struct rxw_queue_event event;
	pthread_t t;

	open_bed(AN_HOUR, AN_HOUR);
	start_receiver(&t, &event);
	ask(connection, H_WAIT, late);
	pthread_join(t, NULL);
	ck_assert_int_eq(rxw_call_end(event.call, 0, NULL), RXW_CALL_TIMEOUT);
	close_bed();
}
END_TEST

/* ---- several threads ---- */

START_TEST(two_threads_wait)
{
	struct rxw_queue_event event[2];
	pthread_t t[2];

	open_bed(AN_HOUR, AN_HOUR);
	for (unsigned i = 0; i < 20; i++) {
		start_receiver(&t[0], &event[0]);
		pthread_create(&t[1], NULL, wait_once, &event[1]);
		h_wait_for(sleeps, NULL, "one of two threads sleeps");
		if (i % 2) {
			ping(connection);
			ping(connection);
		} else {
			ck_assert_int_eq(rxw_queue_post(queue, NULL), 0);
			ck_assert_int_eq(rxw_queue_post(queue, NULL), 0);
		}
		for (unsigned k = 0; k < 2; k++) {
			pthread_join(t[k], NULL);
			if (event[k].call)
				end(event[k].call, 0);
		}
		if (i % 2)
			ck_assert_ptr_ne(event[0].call, event[1].call);
	}
	close_bed();
}
END_TEST

START_TEST(a_blocking_caller_beside_it)
{
	struct rxw_queue_event event;
	pthread_t t;

	open_bed(AN_HOUR, AN_HOUR);
	for (unsigned i = 0; i < 20; i++) {
		start_receiver(&t, &event);
		for (unsigned k = 0; k < 10; k++)
			h_good_call(&bed, connection, &(struct h_ask){.op = H_PING});
		ping(connection);
		pthread_join(t, NULL);
		end(event.call, 0);
	}
	close_bed();
}
END_TEST

/*
 * On a busy machine a thread may come so late that it leaves receiving to the listener for a while. With
 * an endless grace no thread would receive then.
 */
static void forget_absence(void)
{
	pthread_mutex_lock(&queue->lock);
	queue->away_at = 0;
	pthread_mutex_unlock(&queue->lock);
}

static void *calls_through_queue(void *arg)
{
	rxw_connection *c = h_connect(&bed, H_SERVICE);

	for (unsigned i = 0; i < *(unsigned *)arg; i++) {
		ping(c);
		forget_absence();
		end(next(-1).call, 0);
	}
	rxw_connection_release(c);
	return NULL;
}

static void *blocking_calls(void *arg)
{
	rxw_connection *c = h_connect(&bed, H_SERVICE);

	for (unsigned i = 0; i < *(unsigned *)arg; i++)
		h_good_call(&bed, c, &(struct h_ask){.op = H_PING});
	rxw_connection_release(c);
	return NULL;
}

/*
 * The role changes hands at any time. With an endless grace, no reply waits for the listener's
 * timeout. With threads that are soon idle, it may, but then the grace ends.
 */
START_TEST(threads_of_both_kinds)
{
	unsigned each = h_small() ? 300 : 3000;
	pthread_t t[4];

	open_bed(_i ? 0 : AN_HOUR, _i ? RXW_MS : AN_HOUR);
	for (unsigned i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, i < 2 ? calls_through_queue : blocking_calls, &each);
	for (unsigned i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	close_bed();
}
END_TEST

/* ---- a thread that works for long ---- */

static sem_t busy, worked, done;
static pthread_t worker, beside;

static void on_event(rxw_call *call, unsigned events, void *arg)
{
	(void)call;
	(void)arg;
	if (!(events & RXW_EVENT_DONE))
		return;
	ck_assert(!pthread_equal(pthread_self(), worker));
	ck_assert(!pthread_equal(pthread_self(), beside));
	sem_post(&worked);
	sem_post(&done);
}

/* Works until another call of the endpoint has ended, for which a thread has to receive. */
static void work(const struct rxw_queue_event *event)
{
	end(event->call, 0);
	sem_post(&busy);
	sem_wait(&worked);
}

/* The other call, which ends by its reply or by its deadline. */
static void *call_beside(void *deadline_ms)
{
	struct rxw_call_options options = {.callback = on_event,
					   .deadline_ms = *(unsigned *)deadline_ms};
	rxw_call *call;

	beside = pthread_self();
	sem_wait(&busy);
	call = ask(connection, options.deadline_ms ? H_WAIT : H_PING, options);
	sem_wait(&done);
	end(call, options.deadline_ms ? RXW_CALL_TIMEOUT : 0);
	return NULL;
}

START_TEST(the_listener_takes_over)
{
	unsigned deadline_ms = _i ? 20 : 0;
	pthread_t t;

	open_bed(0, AN_HOUR);
	worker = pthread_self();
	sem_init(&busy, 0, 0);
	sem_init(&worked, 0, 0);
	sem_init(&done, 0, 0);
	for (unsigned i = 0; i < 5; i++) {
		pthread_create(&t, NULL, call_beside, &deadline_ms);
		ping(connection);
		ck_assert_int_eq(rxw_queue_run(queue, work, 1, -1), 1);
		pthread_join(t, NULL);
	}
	close_bed();
}
END_TEST

static void come_late(const struct rxw_queue_event *event)
{
	end(event->call, 0);
	sem_post(&busy);
	rxw_sleep_us(5000);
}

static void *run_late(void *unused)
{
	ck_assert_int_eq(rxw_queue_run(queue, come_late, 1, -1), 1);
	ck_assert_int_eq(rxw_queue_run(queue, come_late, 1, -1), 1);
	return unused;
}

static bool waits(void *unused)
{
	bool does;

	(void)unused;
	pthread_mutex_lock(&queue->lock);
	does = queue->waiting > 0 || queue->receiving;
	pthread_mutex_unlock(&queue->lock);
	return does;
}

/* A thread that always comes late leaves receiving to the listener, so that nothing waits for it. */
START_TEST(who_comes_late_does_not_receive)
{
	pthread_t t;

	open_bed(0, AN_HOUR);
	sem_init(&busy, 0, 0);
	for (unsigned i = 0; i < 4; i++) {
		pthread_create(&t, NULL, run_late, NULL);
		for (unsigned k = 0; k < 2; k++) {
			h_wait_for(waits, NULL, "the thread waits");
			ping(connection);
			sem_wait(&busy);
		}
		pthread_join(t, NULL);
	}
	ck_assert_uint_gt(queue->stay_out, 0);
	close_bed();
}
END_TEST

/* From the moment at which it decides to come no more, the listener receives, whatever the grace is. */
START_TEST(who_stays_out_calls_the_listener)
{
	open_bed(AN_HOUR, AN_HOUR);
	free_role();
	pthread_mutex_lock(&queue->lock);
	queue->away_at = 1; /* long ago, and not for the first time */
	queue->absences = 2;
	pthread_mutex_unlock(&queue->lock);
	ping(connection);
	end(next(-1).call, 0);
	ck_assert_uint_gt(queue->stay_out, 0);
	close_bed();
}
END_TEST

/* A receiver sends one batch at a time. What is left is sent before it goes: nobody may receive for a while. */
START_TEST(who_leaves_sends_the_rest)
{
	open_bed(AN_HOUR, AN_HOUR);
	free_role();
	ck_assert(rxw_role_try(shard));
	rxw_tx_hold(shard);
	ping(connection);
	rxw_tx_hold(NULL);
	ck_assert(atomic_load(&shard->tx.any));
	atomic_store(&shard->tx.left, true);
	rxw_role_leave(shard);
	ck_assert(!atomic_load(&shard->tx.any));
	ck_assert(rxw_role_is_free(&shard->role));
	end(next(-1).call, 0);
	close_bed();
}
END_TEST

int main(void)
{
	Suite *s = suite_create("queue_role");
	TCase *tc = tcase_create("queue_role");
	SRunner *r = srunner_create(s);
	int failed;

	tcase_set_timeout(tc, 60);
	tcase_add_test(tc, it_receives);
	tcase_add_test(tc, a_post_ends_the_wait);
	tcase_add_test(tc, the_timeout_ends_the_wait);
	tcase_add_test(tc, an_idle_thread_leaves_the_role);
	tcase_add_test(tc, an_idle_thread_waits_for_the_grace_at_most);
	tcase_add_loop_test(tc, the_end_of_the_endpoint_ends_the_wait, 0, 2);
	tcase_add_test(tc, an_event_of_another_endpoint);
	tcase_add_test(tc, a_deadline_during_the_wait);
	tcase_add_test(tc, two_threads_wait);
	tcase_add_test(tc, a_blocking_caller_beside_it);
	tcase_add_loop_test(tc, threads_of_both_kinds, 0, 2);
	tcase_add_loop_test(tc, the_listener_takes_over, 0, 2);
	tcase_add_test(tc, who_comes_late_does_not_receive);
	tcase_add_test(tc, who_stays_out_calls_the_listener);
	tcase_add_test(tc, who_leaves_sends_the_rest);
	suite_add_tcase(s, tc);
	srunner_run_all(r, CK_ENV);
	failed = srunner_ntests_failed(r);
	srunner_free(r);
	return failed != 0;
}
