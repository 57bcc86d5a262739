/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Plain datagrams from files in the page cache, for the clients of crowd_raw.c: the kernel's limit
 * for a file server. A client asks for a block of a file, and for what it lacks again. One thread
 * for each processor sends blocks. Another one answers questions for the status of a file, on a
 * port of its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/crowd_raw.h"
#include "bench/raw.h"

#define BUFFER	  (64 << 20) /* of a socket, for the requests of thousands of clients */
#define FILES_MAX 100000u

static struct file {
	const uint8_t *data;
	uint64_t length;
} * files;
static uint32_t file_count;
static uint32_t lose; /* leave out every so many messages; 0: none */
static _Atomic(uint64_t) again, messages;

/* A block as the kernel takes it: headers of our own, data from the page cache. */
struct batch {
	struct mmsghdr hdr[CROWD_RAW_BURSTS];
	union raw_control control[CROWD_RAW_BURSTS];
	struct iovec iov[CROWD_RAW_PIECES * 2];
	struct crowd_raw_head head[CROWD_RAW_PIECES];
};

static int open_socket(const char *address, const char *port)
{
	struct sockaddr_in in = {.sin_family = AF_INET};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	in.sin_port = htons((uint16_t)raw_number("a port", port, 1, UINT16_MAX));
	if (inet_pton(AF_INET, address, &in.sin_addr) != 1)
		raw_usage_error("not a numeric address", address);
	if (fd < 0 || bind(fd, (struct sockaddr *)&in, sizeof(in)) < 0)
		raw_fail("socket", strerror(errno));
	raw_set_buffers(fd, BUFFER);
	return fd;
}

static void map_file(const char *folder, uint32_t number)
{
	struct file *file = &files[number];
	char path[PATH_MAX];
	struct stat st;
	void *data;
	int fd;

	snprintf(path, sizeof(path), "%s/f%05" PRIu32, folder, number);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		raw_fail(path, strerror(errno));
	file->length = (uint64_t)st.st_size;
	data = mmap(NULL, file->length, PROT_READ, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (data == MAP_FAILED)
		raw_fail(path, strerror(errno));
	close(fd);
	file->data = data;
}

static void add_piece(struct batch *b, unsigned piece, const struct crowd_raw_request *r,
		      uint32_t offset)
{
	struct crowd_raw_head *h = &b->head[piece];

	*h = (struct crowd_raw_head){.offset = r->offset + offset, .file = r->file};
	h->length = r->length - offset < CROWD_RAW_DATA ? r->length - offset : CROWD_RAW_DATA;
	b->iov[piece * 2] = (struct iovec){h, sizeof(*h)};
	b->iov[piece * 2 + 1] =
		(struct iovec){(void *)(files[r->file].data + h->offset), h->length};
}

/* A burst of the block's pieces from `first` on. */
static void add_burst(struct batch *b, unsigned burst, unsigned first, unsigned pieces,
		      struct sockaddr_in *peer)
{
	struct msghdr *m = &b->hdr[burst].msg_hdr;

	*m = (struct msghdr){.msg_name = peer,
			     .msg_namelen = sizeof(*peer),
			     .msg_iov = &b->iov[(size_t)first * 2],
			     .msg_iovlen = (size_t)pieces * 2};
	if (pieces > 1)
		raw_put_segment(m, &b->control[burst], CROWD_RAW_DATAGRAM);
}

/* What cannot be sent is lost, and asked for again. */
static void send_bursts(int fd, struct mmsghdr *hdr, unsigned count)
{
	while (count) {
		int sent = sendmmsg(fd, hdr, count, 0);

		if (sent <= 0) {
			if (errno == EINVAL || errno == EIO || errno == EMSGSIZE)
				raw_fail("the kernel cannot send bursts", strerror(errno));
			return;
		}
		hdr += sent;
		count -= (unsigned)sent;
	}
}

static void send_block(int fd, struct batch *b, const struct crowd_raw_request *r,
		       struct sockaddr_in *peer)
{
	unsigned pieces = (r->length + CROWD_RAW_DATA - 1) / CROWD_RAW_DATA, bursts = 0;

	for (unsigned i = 0; i < pieces; i++)
		add_piece(b, i, r, i * CROWD_RAW_DATA);
	for (unsigned at = 0; at < pieces; at += CROWD_RAW_BURST) {
		unsigned left = pieces - at;

		if (lose && atomic_fetch_add(&messages, 1) % lose == lose - 1)
			continue;
		add_burst(b, bursts++, at, left < CROWD_RAW_BURST ? left : CROWD_RAW_BURST, peer);
	}
	send_bursts(fd, b->hdr, bursts);
	if (r->again)
		atomic_fetch_add_explicit(&again, pieces, memory_order_relaxed);
}

static void send_status(int fd, const struct crowd_raw_request *r, const struct sockaddr_in *peer)
{
	struct crowd_raw_status s = {
		.length = files[r->file].length, .again = atomic_load(&again), .file = r->file};

	sendto(fd, &s, sizeof(s), 0, (const struct sockaddr *)peer, sizeof(*peer));
}

static void answer(int fd, struct batch *b, const struct crowd_raw_request *r,
		   struct sockaddr_in *peer)
{
	if (r->file >= file_count)
		return;
	if (!r->length)
		send_status(fd, r, peer);
	else if (r->length <= CROWD_RAW_BLOCK && r->offset <= files[r->file].length &&
		 r->length <= files[r->file].length - r->offset)
		send_block(fd, b, r, peer);
}

static void *serve(void *arg)
{
	const int *fd = arg;
	struct batch *b = calloc(1, sizeof(*b));

	if (!b)
		raw_fail("memory", strerror(errno));
	for (;;) {
		struct crowd_raw_request r;
		struct sockaddr_in peer;
		socklen_t length = sizeof(peer);
		ssize_t n = recvfrom(*fd, &r, sizeof(r), 0, (struct sockaddr *)&peer, &length);

		if (n < 0 && errno != EINTR)
			raw_fail("recvfrom", strerror(errno));
		if (n == (ssize_t)sizeof(r))
			answer(*fd, b, &r, &peer);
	}
	return NULL;
}

static void start(int *fd)
{
	pthread_t thread;
	int rc = pthread_create(&thread, NULL, serve, fd);

	if (rc)
		raw_fail("thread", strerror(rc));
}

int main(int argc, char **argv)
{
	static int data, status;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (argc != 6 && argc != 7) {
		fprintf(stderr,
			"usage: crowd_raw_server ADDRESS PORT STATUS-PORT FOLDER FILES [N]\n"
			"sends the files f00000, f00001 and so on of a folder; N: leaves out each Nth burst\n");
		return 2;
	}
	file_count = (uint32_t)raw_number("FILES", argv[5], 1, FILES_MAX);
	if (argc == 7)
		lose = (uint32_t)raw_number("N", argv[6], 2, UINT32_MAX);
	files = calloc(file_count, sizeof(*files));
	if (!files)
		raw_fail("memory", strerror(errno));
	for (uint32_t i = 0; i < file_count; i++)
		map_file(argv[4], i);
	status = open_socket(argv[1], argv[3]);
	data = open_socket(argv[1], argv[2]);
	for (long i = 0; i < processors; i++)
		start(&data);
	serve(&status);
	return 0;
}
