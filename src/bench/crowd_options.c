/* SPDX-License-Identifier: BSD-2-Clause */
/* The command line of crowd_load. */
#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "bench/crowd_load.h"

#define CLIENTS_MAX 4096u
#define FILES_MAX   100000u
#define GRACE_MS    10000u /* of a call, beyond the time of the cell */

static void explain_usage(void)
{
	fprintf(stderr,
		"usage: crowd_load [-s ADDRESS] [-v VL-PORT] [-f FS-PORT] [-V VOLUME] [-b ADDRESS] [-j] [-1] [-g]\n"
		"       [-l BYTES] [-z BYTES:MS] [-Z] | -w HTTP-PORT | -d DATAGRAM-PORT -q STATUS-PORT\n"
		"       [-c CLIENTS] [-n FILES] [-t MOST SECONDS] [-k FOLDER] [-r] [-P PID OF THE SERVER]...\n"
		"fetches f00000, f00001 and so on from an AFS file server, by HTTP (-w) or from crowd_raw_server (-d);\n"
		"AFS clients have addresses from that of -b on, or all the same (-1), or one socket (-g);\n"
		"they ask for so many bytes with a call (-l; else for a file), pause after so many bytes (-z), or read nothing more as soon as data arrive\n"
		"(-Z: SIGSTOP);\n"
		"-r: status calls have real-time priority, as if they came from another machine; -k compares what arrives with the files of a folder\n");
	exit(2);
}

static unsigned parse_number(const char *text)
{
	return (unsigned)strtoul(text, NULL, 10);
}

static void add_pid(struct crowd_options *o, const char *text)
{
	if (o->pid_count == CROWD_PIDS)
		explain_usage();
	o->pids[o->pid_count++] = (pid_t)strtol(text, NULL, 10);
}

static uint32_t parse_address(const char *text)
{
	struct in_addr in;

	if (inet_pton(AF_INET, text, &in) != 1)
		explain_usage();
	return ntohl(in.s_addr);
}

static void parse_pause(struct crowd_place *place, const char *text)
{
	if (sscanf(text, "%u:%u", &place->pause_bytes, &place->pause_ms) != 2 ||
	    !place->pause_bytes)
		explain_usage();
}

/* False: it is none of these. */
static bool parse_afs_option(struct crowd_place *place, int option)
{
	switch (option) {
	case 'v':
		place->vl_port = parse_number(optarg);
		return true;
	case 'f':
		place->fs_port = parse_number(optarg);
		return true;
	case 'V':
		place->volume = optarg;
		return true;
	case 'b':
		place->own = parse_address(optarg);
		return true;
	case '1':
		place->one_address = true;
		return true;
	case 'g':
		place->one_socket = true;
		return true;
	case 'l':
		place->part = strtoull(optarg, NULL, 10);
		return true;
	case 'z':
		parse_pause(place, optarg);
		return true;
	case 'j':
		place->jumbograms = true;
		return true;
	default:
		return false;
	}
}

static void parse_option(struct crowd_options *o, int option)
{
	switch (option) {
	case 's':
		o->place.address = optarg;
		break;
	case 'w':
		o->place.http_port = parse_number(optarg);
		o->way = &crowd_http;
		break;
	case 'd':
		o->place.raw_port = parse_number(optarg);
		o->way = &crowd_raw;
		break;
	case 'q':
		o->place.raw_status_port = parse_number(optarg);
		break;
	case 'c':
		o->clients = parse_number(optarg);
		break;
	case 'n':
		o->files = parse_number(optarg);
		break;
	case 't':
		o->seconds = parse_number(optarg);
		break;
	case 'k':
		o->content = optarg;
		break;
	case 'P':
		add_pid(o, optarg);
		break;
	case 'r':
		o->preferred = true;
		break;
	case 'Z':
		o->stops = true;
		break;
	default:
		explain_usage();
	}
}

void crowd_parse(struct crowd_options *o, int argc, char **argv)
{
	int option;

	while ((option = getopt(argc, argv, "s:v:f:V:b:1gl:z:Zrjw:d:q:c:n:t:k:P:")) != -1)
		if (!parse_afs_option(&o->place, option))
			parse_option(o, option);
	if (optind != argc || !o->clients || o->clients > CLIENTS_MAX || !o->files ||
	    o->files > FILES_MAX || !o->seconds || o->seconds > 3600)
		explain_usage();
	o->place.limit_ms = o->seconds * 1000 + GRACE_MS;
	o->place.clients = o->clients;
}
