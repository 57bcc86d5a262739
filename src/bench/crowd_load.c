/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A crowd: clients, each a thread with a socket of its own, fetch all files of a volume once, each in
 * an order of its own, until all are done or the time is over. One further client asks for the status
 * of a file all the time. Prints one line of JSON: the bytes and time of each client, the CPU time of
 * the server and of the clients, and the latency of the status calls.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "bench/count.h"
#include "bench/crowd.h"
#include "common/clock.h"
#include "tools/common/histogram.h"

#define CLIENTS_MAX 4096u
#define FILES_MAX   100000u
#define PIDS_MAX    128u
#define STACK	    (128u * 1024u)
#define ASK_NS	    (10 * NS_PER_MS) /* from one status call to the next */
#define RETRY_US    10000
#define GRACE_MS    10000u /* of a call, beyond the time of the cell */

static struct {
	struct crowd_place place;
	const struct crowd_way *way;
	const char *content; /* folder with the files, to compare what arrives */
	unsigned clients, files, seconds;
	pid_t pids[PIDS_MAX]; /* of the server */
	unsigned pid_count;
} set = {.place = {.address = "127.0.0.1", .volume = "bench", .fs_port = 7000, .vl_port = 7003},
	 .way = &crowd_afs,
	 .clients = 1,
	 .files = 1,
	 .seconds = 30};

struct worker {
	pthread_t thread;
	struct crowd_client *client;
	uint32_t *order; /* of the files */
	uint8_t *buffer;
	_Atomic(uint64_t) bytes;
	uint64_t done_ns;	/* 0 = not all files; read after the end */
	uint64_t got, ended_ns; /* at the end of the cell */
};

static struct worker *workers;
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
	unsigned left; /* clients that have files to fetch */
	unsigned errors;
	char why[CROWD_WHY]; /* of the first error */
} state = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "crowd_load: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

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

static void note_error(const char *why)
{
	pthread_mutex_lock(&state.lock);
	if (!state.errors++)
		snprintf(state.why, sizeof(state.why), "%s", why);
	pthread_mutex_unlock(&state.lock);
	usleep(RETRY_US);
}

/* A failed fetch is made again, and its bytes do not count. False: the time is over. */
static bool fetch_file(struct worker *w, const struct crowd_file *file)
{
	char why[CROWD_WHY];

	while (!atomic_load(&stopped)) {
		uint64_t before = atomic_load(&w->bytes);

		if (set.way->fetch(w->client, file, w->buffer, &w->bytes, why) == 0)
			return true;
		if (atomic_load(&stopped))
			break;
		atomic_store(&w->bytes, before);
		note_error(why);
	}
	return false;
}

static void *fetch_all(void *arg)
{
	struct worker *w = arg;
	bool going = true;

	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&begun);
	for (unsigned i = 0; going && i < set.files; i++)
		going = fetch_file(w, &files[w->order[i]]);
	pthread_mutex_lock(&state.lock);
	if (going)
		w->done_ns = monotonic_ns();
	if (!--state.left)
		pthread_cond_signal(&state.done);
	pthread_mutex_unlock(&state.lock);
	return NULL;
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

static void *ask_again_and_again(void *arg)
{
	uint64_t due;

	(void)arg;
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
		die("client", "no memory");
	pthread_mutex_init(&client->lock, NULL);
	client->number = clients++;
	client->limit_ms = set.place.limit_ms;
	if (set.way->open(client, &set.place, why) < 0)
		die("client", why);
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
	if (!workers)
		die("start", "no memory");
	for (unsigned i = 0; i < set.clients; i++) {
		struct worker *w = &workers[i];

		w->client = new_client();
		w->order = calloc(set.files, sizeof(*w->order));
		w->buffer = malloc(CROWD_BUFFER);
		if (!w->order || !w->buffer)
			die("start", "no memory");
		shuffle(w, i);
	}
	asker.client = new_client();
	tools_histogram_init(&asker.latency);
}

static const uint8_t *map_content(const struct crowd_file *file)
{
	char path[PATH_MAX];
	struct stat st;
	void *data;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", set.content, file->name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		die(path, strerror(errno));
	if ((uint64_t)st.st_size != file->length)
		die(path, "the server's file has another length");
	data = mmap(NULL, file->length, PROT_READ, MAP_SHARED, fd, 0);
	if (data == MAP_FAILED)
		die(path, strerror(errno));
	close(fd);
	return data;
}

void crowd_compare(const struct crowd_file *file, uint64_t offset, const void *data, size_t length)
{
	char why[80];

	if (!file->content || (offset <= file->length && length <= file->length - offset &&
			       memcmp(file->content + offset, data, length) == 0))
		return;
	snprintf(why, sizeof(why), "other bytes have arrived at offset %" PRIu64, offset);
	die(file->name, why);
}

static void find_files(void)
{
	char why[CROWD_WHY];

	files = calloc(set.files, sizeof(*files));
	if (!files)
		die("start", "no memory");
	for (unsigned i = 0; i < set.files; i++) {
		files[i].number = i;
		snprintf(files[i].name, sizeof(files[i].name), "f%05u", i);
		if (set.way->find(workers[0].client, &files[i], why) < 0)
			die(files[i].name, why);
		if (set.content)
			files[i].content = map_content(&files[i]);
	}
}

static void start_threads(void)
{
	pthread_condattr_t clock;
	pthread_attr_t small;
	int rc;

	pthread_condattr_init(&clock);
	pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
	pthread_cond_init(&state.done, &clock);
	pthread_condattr_destroy(&clock);
	pthread_barrier_init(&ready, NULL, set.clients + 2);
	pthread_barrier_init(&begun, NULL, set.clients + 2);
	state.left = set.clients;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, STACK);
	for (unsigned i = 0; i < set.clients; i++) {
		rc = pthread_create(&workers[i].thread, &small, fetch_all, &workers[i]);
		if (rc)
			die("thread", strerror(rc));
	}
	rc = pthread_create(&asker.thread, &small, ask_again_and_again, NULL);
	if (rc)
		die("thread", strerror(rc));
	pthread_attr_destroy(&small);
}

/* CPU seconds of the server's processes. */
static double server_cpu(void)
{
	double seconds;

	if (count_cpu_of(set.pids, set.pid_count, &seconds) < 0)
		die("the server", strerror(errno));
	return seconds;
}

/* True: the time is over, and clients have files to fetch. */
static bool wait_for_clients(uint64_t until)
{
	struct timespec t = {.tv_sec = (time_t)(until / NS_PER_S),
			     .tv_nsec = (long)(until % NS_PER_S)};
	bool over;
	int rc = 0;

	pthread_mutex_lock(&state.lock);
	while (state.left && rc != ETIMEDOUT)
		rc = pthread_cond_timedwait(&state.done, &state.lock, &t);
	over = state.left;
	pthread_mutex_unlock(&state.lock);
	return over;
}

/* The bytes of each client so far. */
static void take_bytes(uint64_t now)
{
	pthread_mutex_lock(&state.lock);
	for (unsigned i = 0; i < set.clients; i++) {
		workers[i].got = atomic_load(&workers[i].bytes);
		workers[i].ended_ns = workers[i].done_ns ? workers[i].done_ns : now;
	}
	pthread_mutex_unlock(&state.lock);
}

static void stop_clients(void)
{
	atomic_store(&stopped, true);
	for (unsigned i = 0; i < set.clients; i++)
		interrupt_client(workers[i].client);
	interrupt_client(asker.client);
	for (unsigned i = 0; i < set.clients; i++)
		pthread_join(workers[i].thread, NULL);
	pthread_join(asker.thread, NULL);
}

static void close_clients(void)
{
	for (unsigned i = 0; i < set.clients; i++) {
		close_client(workers[i].client);
		free(workers[i].order);
		free(workers[i].buffer);
	}
	close_client(asker.client);
	free(workers);
	free(files);
}

/* ---- the report ---- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The slowest client ÷ median and ÷ mean: of the bytes if they were stopped, else of 1/time. */
static void report_slowest(bool over, uint64_t from)
{
	double *speed = calloc(set.clients, sizeof(*speed)), sum = 0, middle;

	if (!speed)
		die("report", "no memory");
	for (unsigned i = 0; i < set.clients; i++) {
		const struct worker *w = &workers[i];

		speed[i] = over ? (double)w->got : 1e9 / (double)(w->ended_ns - from);
		sum += speed[i];
	}
	qsort(speed, set.clients, sizeof(*speed), compare);
	middle = (speed[(set.clients - 1) / 2] + speed[set.clients / 2]) / 2;
	printf(", \"slowest_to_median\": %.4f, \"slowest_to_mean\": %.4f",
	       middle > 0 ? speed[0] / middle : 0, sum > 0 ? speed[0] * set.clients / sum : 0);
	free(speed);
}

static void report_clients(uint64_t from)
{
	printf(", \"client_bytes\": [");
	for (unsigned i = 0; i < set.clients; i++)
		printf("%s%" PRIu64, i ? ", " : "", workers[i].got);
	printf("], \"client_s\": [");
	for (unsigned i = 0; i < set.clients; i++)
		printf("%s%.4f", i ? ", " : "", (double)(workers[i].ended_ns - from) / 1e9);
	printf("]");
}

static void report_errors(void)
{
	for (char *c = state.why; *c; c++)
		if (*c == '"' || *c == '\\' || (unsigned char)*c < ' ')
			*c = ' ';
	printf(", \"errors\": %u, \"first_error\": \"%s\"", state.errors, state.why);
}

/* `server` and `mine`: CPU seconds. */
static void report(bool over, uint64_t from, uint64_t elapsed, double server, double mine)
{
	const struct tools_histogram *h = &asker.latency;
	uint64_t bytes = 0, volume = 0;

	for (unsigned i = 0; i < set.clients; i++)
		bytes += workers[i].got;
	for (unsigned i = 0; i < set.files; i++)
		volume += files[i].length;
	printf("{\"way\": \"%s\", \"clients\": %u, \"files\": %u, \"volume_bytes\": %" PRIu64
	       ", \"stopped\": %s, \"seconds\": %.6f, \"bytes\": %" PRIu64 ", \"MBps\": %.3f"
	       ", \"server_cpu_s\": %.6f, \"client_cpu_s\": %.6f",
	       set.way->name, set.clients, set.files, volume, over ? "true" : "false",
	       (double)elapsed / 1e9, bytes, (double)bytes * 1e3 / (double)elapsed, server, mine);
	report_slowest(over, from);
	printf(", \"status_calls\": %" PRIu64
	       ", \"status_p50_us\": %.1f, \"status_p99_us\": %.1f, \"status_max_us\": %.1f",
	       asker.calls, (double)tools_histogram_quantile(h, 0.5) / 1e3,
	       (double)tools_histogram_quantile(h, 0.99) / 1e3, (double)h->max / 1e3);
	report_errors();
	report_clients(from);
	printf("}\n");
}

static void run(void)
{
	uint64_t from, now;
	double server, mine;
	bool over;

	start_threads();
	pthread_barrier_wait(&ready);
	server = server_cpu();
	mine = count_cpu(CLOCK_PROCESS_CPUTIME_ID);
	from = monotonic_ns();
	pthread_barrier_wait(&begun);
	over = wait_for_clients(from + (uint64_t)set.seconds * NS_PER_S);
	now = monotonic_ns();
	take_bytes(now);
	server = server_cpu() - server;
	mine = count_cpu(CLOCK_PROCESS_CPUTIME_ID) - mine;
	stop_clients();
	report(over, from, now - from, server, mine);
}

/* ---- the command line ---- */

static void usage(void)
{
	fprintf(stderr,
		"usage: crowd_load [-s ADDRESS] [-v VL-PORT] [-f FS-PORT] [-V VOLUME] [-b ADDRESS] [-j] | -w HTTP-PORT |\n"
		"       -d DATAGRAM-PORT -q STATUS-PORT [-c CLIENTS] [-n FILES] [-t MOST SECONDS] "
		"[-k FOLDER]\n       [-P PID OF THE SERVER]...\n"
		"fetches f00000, f00001 and so on from an AFS file server, by HTTP (-w) or from\n"
		"crowd_raw_server (-d); AFS clients have addresses from that of -b on; -k compares what arrives with the files of a folder\n");
	exit(2);
}

static void add_pid(const char *text)
{
	if (set.pid_count == PIDS_MAX)
		usage();
	set.pids[set.pid_count++] = (pid_t)strtol(text, NULL, 10);
}

static uint32_t parse_address(const char *text)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1)
		usage();
	return ntohl(in.s_addr);
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:v:f:V:b:jw:d:q:c:n:t:k:P:")) != -1)
		switch (option) {
		case 's':
			set.place.address = optarg;
			break;
		case 'v':
			set.place.vl_port = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'f':
			set.place.fs_port = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'V':
			set.place.volume = optarg;
			break;
		case 'w':
			set.place.http_port = (unsigned)strtoul(optarg, NULL, 10);
			set.way = &crowd_http;
			break;
		case 'b':
			set.place.own = parse_address(optarg);
			break;
		case 'j':
			set.place.jumbograms = true;
			break;
		case 'd':
			set.place.raw_port = (unsigned)strtoul(optarg, NULL, 10);
			set.way = &crowd_raw;
			break;
		case 'q':
			set.place.raw_status_port = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'c':
			set.clients = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'n':
			set.files = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 't':
			set.seconds = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'k':
			set.content = optarg;
			break;
		case 'P':
			add_pid(optarg);
			break;
		default:
			usage();
		}
	if (optind != argc || !set.clients || set.clients > CLIENTS_MAX || !set.files ||
	    set.files > FILES_MAX || !set.seconds || set.seconds > 3600)
		usage();
	set.place.limit_ms = set.seconds * 1000 + GRACE_MS;
	set.place.clients = set.clients;
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	parse(argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	open_clients();
	find_files();
	run();
	close_clients();
	return EXIT_SUCCESS;
}
