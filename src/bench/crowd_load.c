/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A crowd: clients, each with a socket of its own, fetch all files of a volume once, each in an order of its own, until
 * all are done or the time is over. One further client asks for the status of a file all the time. Each client is a
 * thread, but many AFS clients are callbacks. Prints one line of JSON: the bytes and time of each client, the CPU time
 * of the server and of the clients, and the latency of the status calls.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "bench/count.h"
#include "bench/crowd_load.h"
#include "common/clock.h"

#define STACK	 (128u * 1024u)
#define ASK_NS	 (10 * NS_PER_MS) /* from one status call to the next */
#define LOOK_NS	 (50 * NS_PER_MS) /* from one look at the bytes of the clients to the next */
#define RETRY_US 10000

static struct crowd_options set = {
	.place = {.address = "127.0.0.1", .volume = "bench", .fs_port = 7000, .vl_port = 7003},
	.way = &crowd_afs,
	.clients = 1,
	.files = 1,
	.seconds = 30};

struct worker {
	pthread_t thread;
	struct crowd_client *client;
	uint32_t *order; /* of the files */
	uint8_t *buffer;
	unsigned next;	 /* without a thread: of `order` */
	uint64_t before; /* without a thread: bytes of the files before */
	bool failed;	 /* without a thread, and to be tried again; with the lock of `state` */
	_Atomic(uint64_t) bytes;
	_Atomic(uint64_t) done_ns; /* 0 = not all files */
	uint64_t seen, seen_ns; /* the bytes at the latest look, and since when they are so many */
};

static struct worker *workers;
static struct crowd_got *got; /* of each of them */
static struct crowd_file *files;
static pthread_barrier_t ready, begun;
static atomic_bool stopped;

static struct {
	struct crowd_client *client;
	pthread_t thread;
	struct tools_histogram latency;
	uint64_t calls;
} asker;

static struct {
	pthread_mutex_t lock;
	pthread_cond_t done;
	unsigned left;	 /* clients that have files to fetch */
	unsigned failed; /* of those, without a thread, and to be tried again */
	unsigned errors;
	char why[CROWD_WHY]; /* of the first error */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the clients ---- */

/* Files in an order of this client, the same in each run. */
static void shuffle(struct worker *w, unsigned number)
{
	uint64_t random = 0x9e3779b97f4a7c15u * (number + 1);

	for (uint32_t i = 0; i < set.files; i++)
		w->order[i] = i;
	for (uint32_t i = set.files - 1; i > 0; i--) {
		uint32_t swap, other;

		random = random * 6364136223846793005u + 1442695040888963407u;
		other = (uint32_t)((random >> 32) * (i + 1) >> 32);
		swap = w->order[i];
		w->order[i] = w->order[other];
		w->order[other] = swap;
	}
}

/* With the lock. */
static void count_error(const char *why)
{
	if (!state.errors++)
		snprintf(state.why, sizeof(state.why), "%s", why);
}

static void note_error(const char *why)
{
	pthread_mutex_lock(&state.lock);
	count_error(why);
	pthread_mutex_unlock(&state.lock);
	usleep(RETRY_US);
}

/* A failed fetch is made again, and its bytes do not count. False: the time is over. */
static bool fetch_file(struct worker *w, const struct crowd_file *file)
{
	uint64_t before = atomic_load(&w->bytes);
	char why[CROWD_WHY];

	while (!atomic_load(&stopped)) {
		if (set.way->fetch(w->client, file, w->buffer, &w->bytes, why) == 0)
			return true;
		if (atomic_load(&stopped))
			break;
		atomic_store(&w->bytes, before + w->client->kept);
		note_error(why);
	}
	return false;
}

/* `all`: it has all files. */
static void end_worker(struct worker *w, bool all)
{
	pthread_mutex_lock(&state.lock);
	if (all)
		w->done_ns = monotonic_ns();
	if (!--state.left)
		pthread_cond_signal(&state.done);
	pthread_mutex_unlock(&state.lock);
}

static void *fetch_all(void *arg)
{
	struct worker *w = arg;
	bool going = true;

	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&begun);
	for (unsigned i = 0; going && i < set.files; i++)
		going = fetch_file(w, &files[w->order[i]]);
	end_worker(w, going);
	return NULL;
}

/* ---- clients without threads ---- */

static bool has_threads(void)
{
	return !set.way->needs_thread || set.way->needs_thread(&set.place);
}

/* Its bytes do not count. The main thread tries again after a while. */
static void set_aside(struct worker *w, const char *why)
{
	atomic_store(&w->bytes, w->before + w->client->kept);
	pthread_mutex_lock(&state.lock);
	count_error(why);
	w->failed = true;
	state.failed++;
	if (atomic_load(&stopped))
		pthread_cond_signal(&state.done);
	pthread_mutex_unlock(&state.lock);
}

/* Until it has to wait, has all files, or is interrupted. One thread at a time. */
static void drive_worker(void *arg)
{
	struct worker *w = arg;
	char why[CROWD_WHY];

	for (;;) {
		switch (set.way->step(w->client, &files[w->order[w->next]], &w->bytes, why)) {
		case CROWD_AGAIN:
			return;
		case CROWD_DONE:
			w->before = atomic_load(&w->bytes);
			if (++w->next < set.files)
				break;
			end_worker(w, true);
			return;
		case CROWD_FAILED:
			if (atomic_load(&stopped))
				end_worker(w, false);
			else
				set_aside(w, why);
			return;
		}
	}
}

/* Those that failed. */
static void drive_again(void)
{
	for (unsigned i = 0; i < set.clients; i++) {
		bool again;

		pthread_mutex_lock(&state.lock);
		again = workers[i].failed;
		workers[i].failed = false;
		state.failed -= again;
		pthread_mutex_unlock(&state.lock);
		if (again)
			drive_worker(&workers[i]);
	}
}

static void start_workers(void)
{
	for (unsigned i = 0; i < set.clients; i++) {
		workers[i].client->ready = drive_worker;
		workers[i].client->arg = &workers[i];
		drive_worker(&workers[i]);
	}
}

/* Each call has failed, or will. */
static void await_workers(void)
{
	pthread_mutex_lock(&state.lock);
	while (state.left) {
		if (state.failed) {
			pthread_mutex_unlock(&state.lock);
			drive_again();
			pthread_mutex_lock(&state.lock);
			continue;
		}
		pthread_cond_wait(&state.done, &state.lock);
	}
	pthread_mutex_unlock(&state.lock);
}

static void wait_until(uint64_t ns)
{
	struct timespec t = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) == EINTR)
		;
}

/*
 * A call that takes longer than the interval stands for those that would have been made meanwhile:
 * otherwise a server that stops for a second would cost a single call.
 */
static void add_latency(uint64_t ns)
{
	asker.calls++;
	tools_histogram_add(&asker.latency, ns);
	for (; ns > ASK_NS; ns -= ASK_NS)
		tools_histogram_add(&asker.latency, ns - ASK_NS);
}

/* Also a call that fails, or waits when the time is over, has taken that long. */
static void ask_once(const struct crowd_file *file)
{
	char why[CROWD_WHY];
	uint64_t from = monotonic_ns(), took;
	int rc = set.way->ask(asker.client, file, why);

	took = monotonic_ns() - from;
	if (rc == 0 || took > ASK_NS)
		add_latency(took);
	if (rc < 0 && !atomic_load(&stopped))
		note_error(why);
}

/* Also of threads that this one makes. */
static void prefer_thread(bool preferred)
{
	struct sched_param param = {.sched_priority = preferred ? 1 : 0};
	int rc = pthread_setschedparam(pthread_self(), preferred ? SCHED_RR : SCHED_OTHER, &param);

	if (rc)
		crowd_die("real-time priority", strerror(rc));
}

static void *ask_again_and_again(void *arg)
{
	uint64_t due;

	(void)arg;
	if (set.preferred)
		prefer_thread(true);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&begun);
	due = monotonic_ns();
	for (unsigned i = 0; !atomic_load(&stopped); i++) {
		ask_once(&files[i % set.files]);
		while (due <= monotonic_ns())
			due += ASK_NS;
		wait_until(due);
	}
	return NULL;
}

/* ---- the run ---- */

static struct crowd_client *new_client(void)
{
	char why[CROWD_WHY];
	struct crowd_client *client = calloc(1, set.way->client_size);
	static unsigned clients;

	if (!client)
		crowd_die("client", "no memory");
	pthread_mutex_init(&client->lock, NULL);
	client->number = clients++;
	client->limit_ms = set.place.limit_ms;
	if (set.way->open(client, &set.place, why) < 0)
		crowd_die("client", why);
	return client;
}

static void interrupt_client(struct crowd_client *client)
{
	pthread_mutex_lock(&client->lock);
	client->interrupted = true;
	set.way->interrupt(client);
	pthread_mutex_unlock(&client->lock);
}

static void close_client(struct crowd_client *client)
{
	set.way->close(client);
	pthread_mutex_destroy(&client->lock);
	free(client);
}

static void open_clients(void)
{
	workers = calloc(set.clients, sizeof(*workers));
	got = calloc(set.clients, sizeof(*got));
	if (!workers || !got)
		crowd_die("start", "no memory");
	for (unsigned i = 0; i < set.clients; i++) {
		struct worker *w = &workers[i];

		w->client = new_client();
		w->order = calloc(set.files, sizeof(*w->order));
		w->buffer = malloc(CROWD_BUFFER);
		if (!w->order || !w->buffer)
			crowd_die("start", "no memory");
		shuffle(w, i);
	}
	if (set.preferred)
		prefer_thread(true);
	asker.client = new_client();
	if (set.preferred)
		prefer_thread(false);
	tools_histogram_init(&asker.latency);
}

static void start_threads(void)
{
	unsigned threads = has_threads() ? set.clients : 0;
	pthread_attr_t small;
	int rc;

	monotonic_cond_init(&state.done);
	pthread_barrier_init(&ready, NULL, threads + 2);
	pthread_barrier_init(&begun, NULL, threads + 2);
	state.left = set.clients;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	for (unsigned i = 0; i < threads; i++) {
		rc = pthread_create(&workers[i].thread, &small, fetch_all, &workers[i]);
		if (rc)
			crowd_die("thread", strerror(rc));
	}
	rc = pthread_create(&asker.thread, &small, ask_again_and_again, NULL);
	if (rc)
		crowd_die("thread", strerror(rc));
	pthread_attr_destroy(&small);
}

/* CPU seconds of the server's processes. */
static double server_cpu(void)
{
	double seconds;

	if (count_cpu_of(set.pids, set.pid_count, &seconds) < 0)
		crowd_die("the server", strerror(errno));
	return seconds;
}

/* The bytes of each client so far, and how long it has got none. False: no client has any file left to fetch. */
static bool look_at_clients(uint64_t from, uint64_t now)
{
	bool left = false;

	for (unsigned i = 0; i < set.clients; i++) {
		struct worker *w = &workers[i];
		uint64_t done = atomic_load(&w->done_ns), bytes = atomic_load(&w->bytes);
		uint64_t since = w->seen_ns ? w->seen_ns : from, until = done ? done : now;

		if (until > since && until - since > got[i].gap_ns)
			got[i].gap_ns = until - since;
		if (bytes != w->seen || !w->seen_ns || done)
			w->seen_ns = bytes ? until : from;
		w->seen = got[i].bytes = bytes;
		got[i].ended_ns = until;
		left |= !done;
	}
	return left;
}

/* Clients that do as if their machine had stopped. */
static void stop_with_first_data(void)
{
	for (unsigned i = 0; set.stops && i < set.clients; i++)
		if (atomic_load(&workers[i].bytes)) {
			raise(SIGSTOP);
			return;
		}
}

/* True: the time is over, and clients have files to fetch. *now: when that was. */
static bool wait_for_clients(uint64_t from, uint64_t *now)
{
	uint64_t until = from + (uint64_t)set.seconds * NS_PER_S, next = from;

	for (;;) {
		*now = monotonic_ns();
		if (!look_at_clients(from, *now))
			return false;
		if (*now >= until)
			return true;
		stop_with_first_data();
		drive_again();
		pthread_mutex_lock(&state.lock);
		next = *now + (state.failed ? RETRY_US * 1000u : LOOK_NS);
		next = next < until ? next : until;
		if (state.left)
			monotonic_wait(&state.done, &state.lock, next);
		pthread_mutex_unlock(&state.lock);
	}
}

static void stop_clients(void)
{
	atomic_store(&stopped, true);
	for (unsigned i = 0; i < set.clients; i++)
		interrupt_client(workers[i].client);
	interrupt_client(asker.client);
	for (unsigned i = 0; i < set.clients && has_threads(); i++)
		pthread_join(workers[i].thread, NULL);
	await_workers();
	pthread_join(asker.thread, NULL);
}

static void close_clients(void)
{
	/* The first one may have the socket of all. */
	for (unsigned i = set.clients; i-- > 0;) {
		close_client(workers[i].client);
		free(workers[i].order);
		free(workers[i].buffer);
	}
	close_client(asker.client);
	free(workers);
	free(got);
	free(files);
}

static void run(void)
{
	struct crowd_cell cell = {.options = &set, .got = got, .latency = &asker.latency};
	uint64_t now;

	for (unsigned i = 0; i < set.files; i++)
		cell.volume += files[i].length;
	start_threads();
	pthread_barrier_wait(&ready);
	cell.server = -server_cpu();
	cell.mine = -count_cpu(CLOCK_PROCESS_CPUTIME_ID);
	cell.from = monotonic_ns();
	pthread_barrier_wait(&begun);
	if (!has_threads())
		start_workers();
	cell.over = wait_for_clients(cell.from, &now);
	cell.elapsed = now - cell.from;
	cell.server += server_cpu();
	cell.mine += count_cpu(CLOCK_PROCESS_CPUTIME_ID);
	stop_clients();
	cell.calls = asker.calls;
	cell.errors = state.errors;
	cell.why = state.why;
	crowd_report(&cell);
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	crowd_parse(&set, argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	open_clients();
	files = crowd_find_files(&set, workers[0].client);
	run();
	close_clients();
	return EXIT_SUCCESS;
}
