/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A load for a file server: clients, each a thread with a socket of its own (with -t, all with one
 * socket) and one call at a time, make a fixed number of operations. Prints one line of JSON: rates,
 * latencies, and the CPU time of the server and of the clients from the first operation to the last.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rxwire/rxwire.h>

#include "afs/bare.h"
#include "afs/fetch.h"
#include "afs/numbers.h"
#include "bench/count.h"
#include "bench/site.h"
#include "common/clock.h"
#include "program/histogram.h"

#define PIECE	    262144u
#define CLIENTS_MAX 1024u
#define MODE	    8u /* AFS_SETMODE */

/* A file of a fill, as it is kept in a file of such records. */
struct place {
	AFSFid dir, file;
};

static struct {
	const char *server, *volume, *places;
	unsigned vl_port, fs_port;
	unsigned clients, calls; /* operations of each client */
	uint64_t size;		 /* bytes of a file */
	unsigned files;		 /* of a directory of a fill */
	unsigned batch;		 /* objects of a bulk status */
	bool together;		 /* the clients are threads of one client */
	pid_t pid;		 /* of the server; 0 = not to be measured */
	const char *label;	 /* in names; "x" by default */
} set = {.server = "127.0.0.1",
	 .volume = "bench",
	 .vl_port = 7003,
	 .fs_port = 7000,
	 .clients = 1,
	 .calls = 100,
	 .size = 4096,
	 .batch = 50,
	 .files = 1000,
	 .label = "x"};

struct worker {
	pthread_t thread;
	unsigned number;
	struct bare_client *client;
	rxw_connection *connection; /* of a client that others share; NULL: the client's own */
	AFSFid dir, file;
	AFSCBFids bulk;
	struct place *made; /* by a fill */
	uint32_t made_count;
	uint64_t random, bytes;
	struct tools_histogram latency;
};

static struct worker *workers;
static rxw_engine *engine;
static struct sockaddr_storage site_address;
static socklen_t site_address_len;
static AFSFid named; /* the object of set.label in the root directory, for loads of it */
static AFSFid root = {.Vnode = 1, .Unique = 1};
static const struct place *place;
static size_t place_count;
static uint8_t *data;
static pthread_barrier_t ready, begun, ended;
static atomic_uint busy; /* answers that the volume is busy */

static void die(const char *what, const char *why)
{
	fprintf(stderr, "fileserver_load: %s: %s\n", what, why);
	exit(EXIT_FAILURE);
}

/*
 * ---- single calls ----
 * They are made again while the server is busy, as OpenAFS's is for new connections of one client
 * that come at the same time.
 */

static rxw_call *begin(struct worker *w)
{
	struct rxw_call_options co = {.size = sizeof(co), .deadline_ms = 300000};
	rxw_call *call;
	int rc = w->connection ? rxw_call_begin(w->connection, &co, &call)
			       : bare_begin(w->client, &co, &call);

	if (rc < 0)
		die("call", rxw_strerror(rc));
	return call;
}

/* True: the server was busy, and the call is to be made again. */
static bool end(rxw_call *call, int32_t code, const char *what)
{
	enum rxw_origin origin;
	char why[160];

	code = rxw_call_end(call, code, &origin);
	if (code == 0)
		return false;
	if (code == AFS_VBUSY && origin == RXW_ORIGIN_PEER) {
		atomic_fetch_add(&busy, 1);
		usleep(10000);
		return true;
	}
	snprintf(why, sizeof(why), "%s (code %d)", rxw_code_text_from(code, origin), code);
	die(what, why);
	return false;
}

static AFSFid create(struct worker *w, const AFSFid *dir, const char *name)
{
	const AFSStoreStatus how = {.Mask = MODE, .UnixModeBits = 0644};
	AFSFetchStatus status, dir_status;
	AFSCallBack callback;
	AFSVolSync sync;
	AFSFid fid = {0};
	rxw_call *call;
	int32_t code;

	do {
		call = begin(w);
		code = StartRXAFS_CreateFile(call, dir, name, &how);
		if (code == 0)
			code = EndRXAFS_CreateFile(call, &fid, &status, &dir_status, &callback,
						   &sync);
	} while (end(call, code, "CreateFile"));
	return fid;
}

static AFSFid make_dir(struct worker *w, const AFSFid *dir, const char *name)
{
	const AFSStoreStatus how = {.Mask = MODE, .UnixModeBits = 0755};
	AFSFetchStatus status, dir_status;
	AFSCallBack callback;
	AFSVolSync sync;
	AFSFid fid = {0};
	rxw_call *call;
	int32_t code;

	do {
		call = begin(w);
		code = StartRXAFS_MakeDir(call, dir, name, &how);
		if (code == 0)
			code = EndRXAFS_MakeDir(call, &fid, &status, &dir_status, &callback, &sync);
	} while (end(call, code, "MakeDir"));
	return fid;
}

static void drop(struct worker *w, const AFSFid *dir, const char *name)
{
	rxw_call *call = begin(w);
	AFSFetchStatus status;
	AFSVolSync sync;
	int32_t code = StartRXAFS_RemoveFile(call, dir, name);

	if (code == 0)
		code = EndRXAFS_RemoveFile(call, &status, &sync);
	if (end(call, code, "RemoveFile"))
		die("RemoveFile", "busy");
}

/* `file_length`: of the file after it. True: to be made again. */
static bool store_once_more(struct worker *w, const AFSFid *fid, uint64_t at, uint64_t length,
			    uint64_t file_length)
{
	const AFSStoreStatus how = {0};
	rxw_call *call = begin(w);
	AFSFetchStatus status;
	AFSVolSync sync;
	int32_t code = StartRXAFS_StoreData64(call, fid, &how, at, length, file_length);

	for (uint64_t done = 0; code == 0 && done < length;) {
		size_t part = length - done < PIECE ? (size_t)(length - done) : PIECE;

		if (rxw_call_write(call, data, part) != (ssize_t)part)
			code = RXW_CALL_DEAD; /* end() tells the code of the call */
		done += part;
	}
	if (code == 0)
		code = EndRXAFS_StoreData64(call, &status, &sync);
	return end(call, code, "StoreData64");
}

static void store(struct worker *w, const AFSFid *fid, uint64_t at, uint64_t length,
		  uint64_t file_length)
{
	while (store_once_more(w, fid, at, length, file_length))
		;
	w->bytes += length;
}

/* `all`: the file has this length. */
static void fetch(struct worker *w, const AFSFid *fid, uint64_t length, bool all)
{
	struct afs_fetch f;
	rxw_call *call;
	bool done;

	do {
		afs_fetch_init(&f, fid, 0, length ? length : 1);
		call = begin(w);
		done = afs_fetch_drop(&f, call) == AFS_FETCH_DONE;
	} while (end(call, done ? 0 : RXW_USER_ABORT, f.why ? f.why : "FetchData64"));
	if (all && f.length != length)
		die("FetchData64", "the file has another length");
	w->bytes += f.length;
}

static void get_status(struct worker *w, const AFSFid *fid)
{
	AFSFetchStatus status;
	AFSCallBack callback;
	AFSVolSync sync;
	rxw_call *call;
	int32_t code;

	do {
		call = begin(w);
		code = StartRXAFS_FetchStatus(call, fid);
		if (code == 0)
			code = EndRXAFS_FetchStatus(call, &status, &callback, &sync);
	} while (end(call, code, "FetchStatus"));
}

/* True: to be made again. */
static bool bulk_once_more(struct worker *w, const AFSCBFids *fids)
{
	rxw_call *call = begin(w);
	AFSBulkStats stats = {0};
	AFSCBs callbacks = {0};
	AFSVolSync sync;
	int32_t code = StartRXAFS_InlineBulkStatus(call, fids);

	if (code == 0)
		code = EndRXAFS_InlineBulkStatus(call, &stats, &callbacks, &sync);
	if (code == 0 && stats.len != fids->len)
		die("InlineBulkStatus", "the answer has another length");
	for (uint32_t i = 0; code == 0 && i < stats.len; i++)
		if (stats.val[i].errorCode)
			die("InlineBulkStatus", "an object has an error");
	xdrfree_AFSBulkStats(&stats);
	xdrfree_AFSCBs(&callbacks);
	return end(call, code, "InlineBulkStatus");
}

static void bulk(struct worker *w, const AFSCBFids *fids)
{
	while (bulk_once_more(w, fids))
		;
}

/* ---- loads ---- */

static void nothing(struct worker *w)
{
	(void)w;
}

static const struct place *any_place(struct worker *w)
{
	w->random = w->random * 6364136223846793005u + 1442695040888963407u;
	return &place[(w->random >> 32) * place_count >> 32];
}

static void own_dir(struct worker *w)
{
	char name[64];

	snprintf(name, sizeof(name), "%s.%ld.%u", set.label, (long)getpid(), w->number);
	w->dir = make_dir(w, &root, name);
}

static void own_file(struct worker *w)
{
	own_dir(w);
	w->file = create(w, &w->dir, "file");
	store(w, &w->file, 0, set.size, set.size);
	w->bytes = 0;
}

static void own_files(struct worker *w)
{
	char name[32];

	own_dir(w);
	w->bulk.val = calloc(set.batch, sizeof(AFSFid));
	w->bulk.len = set.batch;
	for (unsigned i = 0; i < set.batch; i++) {
		snprintf(name, sizeof(name), "f%u", i);
		w->bulk.val[i] = create(w, &w->dir, name);
	}
}

/* A file that somebody made before, by name in the root directory. */
static void find_file(struct worker *w)
{
	w->file = named;
}

/* A file of that name in the root directory. */
static void put_once(struct worker *w, unsigned i)
{
	AFSFid fid = create(w, &root, set.label);

	(void)i;
	store(w, &fid, 0, set.size, set.size);
}

static void fetch_once(struct worker *w, unsigned i)
{
	(void)i;
	fetch(w, &w->file, set.size, true);
}

static void store_once(struct worker *w, unsigned i)
{
	(void)i;
	store(w, &w->file, 0, set.size, set.size);
}

/* A page somewhere in a file that keeps its length. */
static void overwrite(struct worker *w, unsigned i)
{
	uint64_t pages = set.size / 4096;

	store(w, &w->file, (i * 7919ull + 13) % pages * 4096, 4096, set.size);
}

static void triple(struct worker *w, unsigned i)
{
	char name[32];
	AFSFid fid;

	(void)i;
	snprintf(name, sizeof(name), "t%u", w->number);
	fid = create(w, &w->dir, name);
	store(w, &fid, 0, set.size, set.size);
	drop(w, &w->dir, name);
}

static void bulk_once(struct worker *w, unsigned i)
{
	(void)i;
	bulk(w, &w->bulk);
}

static void triple_place(struct worker *w, unsigned i)
{
	w->dir = any_place(w)->dir;
	triple(w, i);
}

static void status_place(struct worker *w, unsigned i)
{
	(void)i;
	get_status(w, &any_place(w)->file);
}

/* As much of a file as there is of its first page. */
static void read_place(struct worker *w, unsigned i)
{
	const struct place *p = any_place(w);

	(void)i;
	fetch(w, &p->file, 4096, false);
}

/* Of files that were made one after the other, mostly of one directory. */
static void bulk_place(struct worker *w, unsigned i)
{
	AFSFid fids[AFSCBMAX];
	const AFSCBFids some = {.len = set.batch, .val = fids};
	size_t first = (size_t)(any_place(w) - place);

	(void)i;
	for (size_t k = 0; k < set.batch; k++)
		fids[k] = place[(first + k) % place_count].file;
	bulk(w, &some);
}

static void write_place(struct worker *w, unsigned i)
{
	(void)i;
	store(w, &any_place(w)->file, 0, set.size, set.size);
}

/* One operation of a fill is a directory with all its files. */
static void fill_once(struct worker *w, unsigned i)
{
	char name[64];
	AFSFid dir;

	snprintf(name, sizeof(name), "%s%u.%u", set.label, w->number, i);
	dir = make_dir(w, &root, name);
	for (unsigned k = 0; k < set.files; k++) {
		struct place *p = &w->made[w->made_count++];

		snprintf(name, sizeof(name), "f%u", k);
		*p = (struct place){.dir = dir, .file = create(w, &dir, name)};
		if (set.size)
			store(w, &p->file, 0, set.size, set.size);
	}
}

static void fill_prepare(struct worker *w)
{
	w->made = calloc((size_t)set.calls * set.files, sizeof(*w->made));
	if (!w->made)
		die("fill", "no memory");
}

static const struct load {
	const char *name;
	void (*prepare)(struct worker *w);
	void (*once)(struct worker *w, unsigned i);
	bool places;
} loads[] = {{"fetch", own_file, fetch_once, false},
	     {"fetch-named", find_file, fetch_once, false},
	     {"store", own_file, store_once, false},
	     {"put-named", nothing, put_once, false},
	     {"overwrite-named", find_file, overwrite, false},
	     {"triple", own_dir, triple, false},
	     {"bulk", own_files, bulk_once, false},
	     {"fill", fill_prepare, fill_once, false},
	     {"triple-places", nothing, triple_place, true},
	     {"status-places", nothing, status_place, true},
	     {"read-places", nothing, read_place, true},
	     {"bulk-places", nothing, bulk_place, true},
	     {"write-places", nothing, write_place, true}};

static const struct load *load;

/* ---- the run ---- */

static void *work(void *arg)
{
	struct worker *w = arg;

	load->prepare(w);
	pthread_barrier_wait(&ready);
	pthread_barrier_wait(&begun);
	for (unsigned i = 0; i < set.calls; i++) {
		uint64_t from = monotonic_ns();

		load->once(w, i);
		tools_histogram_add(&w->latency, monotonic_ns() - from);
	}
	pthread_barrier_wait(&ended);
	return NULL;
}

/* CPU seconds of the server; 0 if it is not to be measured. */
static double server_cpu(void)
{
	double seconds;

	if (count_cpu_of(&set.pid, set.pid ? 1 : 0, &seconds) < 0)
		die("the server", strerror(errno));
	return seconds;
}

/* The volume's server, and the object of a load that names one. */
static void find_volume(void)
{
	struct site *site;
	char why[SITE_WHY];
	uint64_t ignored;

	if (site_open(set.server, set.vl_port, set.fs_port, set.volume, &site, why) < 0 ||
	    site_server(site, &site_address, &site_address_len, why) < 0 ||
	    site_find(site, "", &root, &ignored, why) < 0)
		die("volume", why);
	if (load->prepare == find_file && site_find(site, set.label, &named, &set.size, why) < 0)
		die("file", why);
	site_close(site);
}

static void open_client(struct worker *w)
{
	const struct bare_options o = {.server = &site_address, .server_len = site_address_len};
	int rc = bare_open(engine, &o, &w->client);

	if (rc < 0)
		die("client", rxw_strerror(rc));
}

/* The first worker's client, by another connection. */
static void share_client(struct worker *w)
{
	int rc = rxw_connection_create(bare_endpoint(workers[0].client),
				       (struct sockaddr *)&site_address, site_address_len,
				       AFS_SERVICE_FS, NULL, &w->connection);

	if (rc < 0)
		die("connection", rxw_strerror(rc));
	w->client = workers[0].client;
}

static void open_places(void)
{
	struct stat st;
	int fd = set.places ? open(set.places, O_RDONLY | O_CLOEXEC) : -1;

	if (fd < 0 || fstat(fd, &st) || !st.st_size)
		die("--places", "needs a file that a fill has written");
	place_count = (size_t)st.st_size / sizeof(*place);
	place = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (place == MAP_FAILED)
		die(set.places, strerror(errno));
	close(fd);
}

static void keep_places(void)
{
	FILE *file = fopen(set.places, "w");

	if (!file)
		die(set.places, strerror(errno));
	for (unsigned i = 0; i < set.clients; i++)
		fwrite(workers[i].made, sizeof(struct place), workers[i].made_count, file);
	if (fclose(file))
		die(set.places, strerror(errno));
}

/* `server` and `mine`: CPU seconds. */
static void report(uint64_t elapsed, double server, double mine)
{
	static struct tools_histogram all;
	uint64_t bytes = 0;
	double seconds = (double)elapsed / NS_PER_S;

	tools_histogram_init(&all);
	for (unsigned i = 0; i < set.clients; i++) {
		tools_histogram_merge(&all, &workers[i].latency);
		bytes += workers[i].bytes;
	}
	printf("{\"load\": \"%s\", \"clients\": %u, \"operations\": %" PRIu64
	       ", \"seconds\": %.6f, "
	       "\"per_s\": %.3f, \"bytes\": %" PRIu64
	       ", \"MBps\": %.3f, \"p50_us\": %.1f, \"p99_us\": %.1f, "
	       "\"max_us\": %.1f, \"busy\": %u, \"server_cpu_us\": %.3f, \"client_cpu_us\": %.3f}\n",
	       load->name, set.clients, all.count, seconds, (double)all.count / seconds, bytes,
	       (double)bytes / seconds / 1e6, (double)tools_histogram_quantile(&all, 0.5) / 1e3,
	       (double)tools_histogram_quantile(&all, 0.99) / 1e3, (double)all.max / 1e3,
	       atomic_load(&busy), server * 1e6 / (double)all.count,
	       mine * 1e6 / (double)all.count);
}

static void run(void)
{
	uint64_t from, elapsed;
	double server, mine;

	pthread_barrier_init(&ready, NULL, set.clients + 1);
	pthread_barrier_init(&begun, NULL, set.clients + 1);
	pthread_barrier_init(&ended, NULL, set.clients + 1);
	for (unsigned i = 0; i < set.clients; i++)
		if (pthread_create(&workers[i].thread, NULL, work, &workers[i]))
			die("thread", "cannot be started");
	pthread_barrier_wait(&ready);
	server = server_cpu();
	mine = count_cpu(CLOCK_PROCESS_CPUTIME_ID);
	from = monotonic_ns();
	pthread_barrier_wait(&begun);
	pthread_barrier_wait(&ended);
	elapsed = monotonic_ns() - from;
	server = server_cpu() - server;
	mine = count_cpu(CLOCK_PROCESS_CPUTIME_ID) - mine;
	for (unsigned i = 0; i < set.clients; i++)
		pthread_join(workers[i].thread, NULL);
	report(elapsed, server, mine);
}

static void finish(void)
{
	struct bare_client **all = calloc(set.clients, sizeof(struct bare_client *));
	unsigned clients = set.together ? 1 : set.clients;

	for (unsigned i = 0; all && i < clients; i++)
		all[i] = workers[i].client;
	if (all)
		bare_give_up(all, clients, 2000);
	for (unsigned i = clients; i < set.clients; i++)
		rxw_connection_release(workers[i].connection);
	for (unsigned i = 0; i < clients; i++)
		bare_close(workers[i].client);
	free(all);
}

static void start(void)
{
	struct rxw_config config;
	int rc;

	rxw_config_init(&config, sizeof(config));
	rc = rxw_engine_create(&config, &engine);
	if (rc < 0)
		die("engine", rxw_strerror(rc));
	workers = calloc(set.clients, sizeof(*workers));
	data = malloc(PIECE);
	if (!workers || !data)
		die("start", "no memory");
	for (size_t i = 0; i < PIECE; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 13);
	for (unsigned i = 0; i < set.clients; i++) {
		workers[i].number = i;
		workers[i].random = 0x9e3779b97f4a7c15u * (i + 1);
		tools_histogram_init(&workers[i].latency);
		if (i && set.together)
			share_client(&workers[i]);
		else
			open_client(&workers[i]);
	}
}

static void usage(void)
{
	fprintf(stderr,
		"usage: fileserver_load [-s ADDRESS] [-v VL-PORT] [-f FS-PORT] [-V VOLUME] [-c CLIENTS] "
		"[-n OPERATIONS OF EACH]\n       [-b BYTES] [-k FILES OF A DIRECTORY] [-p FILE OF PLACES] "
		"[-P PID OF THE SERVER] [-l NAME] [-t] LOAD\nloads:");
	for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++)
		fprintf(stderr, " %s", loads[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

static void parse(int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:v:f:V:c:n:b:k:p:P:l:t")) != -1)
		switch (option) {
		case 's':
			set.server = optarg;
			break;
		case 'v':
			set.vl_port = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'f':
			set.fs_port = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'V':
			set.volume = optarg;
			break;
		case 'c':
			set.clients = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'n':
			set.calls = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'b':
			set.size = strtoull(optarg, NULL, 10);
			break;
		case 'k':
			set.files = (unsigned)strtoul(optarg, NULL, 10);
			break;
		case 'p':
			set.places = optarg;
			break;
		case 'P':
			set.pid = (pid_t)strtol(optarg, NULL, 10);
			break;
		case 'l':
			set.label = optarg;
			break;
		case 't':
			set.together = true;
			break;
		default:
			usage();
		}
	for (size_t i = 0; optind == argc - 1 && i < sizeof(loads) / sizeof(loads[0]); i++)
		if (strcmp(loads[i].name, argv[optind]) == 0)
			load = &loads[i];
	if (!load || !set.clients || set.clients > CLIENTS_MAX)
		usage();
}

int main(int argc, char **argv)
{
	struct rlimit limit;

	parse(argc, argv);
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
	if (load->places)
		open_places();
	find_volume();
	start();
	run();
	if (set.places && load->prepare == fill_prepare)
		keep_places();
	finish();
	return EXIT_SUCCESS;
}
