/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A cell of fake servers in this process: a location server, and file servers that answer as they
 * are told, on 127.0.0.1, .2 and so on with one port. And a client of it.
 */
#ifndef TESTS_CLIENT_NET_FAKE_H
#define TESTS_CLIENT_NET_FAKE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rxwire/rxwire.h>

#include "client/net/calls.h"

#define FAKE_SERVERS 4
#define FAKE_ANSWERS 64
#define FAKE_RW	     100u
#define FAKE_RO	     101u
#define FAKE_BACKUP  102u

enum fake_last {
	FAKE_REPEATS = 1 /* the last answer of the list is given again and again */
};

struct fake_server {
	unsigned number;	/* from 0 on: address 127.0.0.(number + 1) */
	rxw_endpoint *endpoint; /* NULL: it does not run */
	int place; /* a socket that has its port while it does not run, so that no other test gets it */
	struct RXAFS_service service;
	/* `lock` covers the rest */
	int32_t answers[FAKE_ANSWERS]; /* codes for the next calls; 0 and at the end: success */
	unsigned count, next, flags;
	unsigned calls;			/* that have answers: not probes */
	unsigned probes;		/* GetCapabilities */
	unsigned given_up;		/* GiveUpAllCallBacks */
	unsigned waiting;		/* calls that are held */
	bool hold;			/* calls wait until this is false */
	bool mute_probes;		/* GetCapabilities is held, too */
	unsigned drip_ms;		/* a pause before each 100 bytes of FetchData64 */
	bool hold_data;			/* FetchData64 of a long file stops in the middle of the file while this is true */
	unsigned data_waiting;		/* of them */
	unsigned data_calls;		/* FetchData64 of a long file */
	uint64_t data_from;		/* the offset of the last one */
	uint32_t version;		/* of a long file; 0 = 7 */
	uint32_t started;		/* what it says; 0 = it does not know this question */
	uint32_t creation;		/* of VolSync */
	uint32_t missing;		/* enum cl_missing: calls that are unknown */
	uint64_t last_length;		/* file length of the last store */
	unsigned promised;		/* seconds of promises; 0 = none */
	uint8_t index;			/* security index of the last call */
	struct sockaddr_storage client; /* that called last */
};

struct fake {
	rxw_engine *engine;
	rxw_endpoint *vl[2]; /* the second one answers like the first, if it runs */
	struct VL_service vl_service[2];
	uint16_t vl_port[2], fs_port;
	struct fake_server servers[FAKE_SERVERS];
	unsigned server_count;
	/* `lock` covers the rest */
	unsigned asked; /* questions for volumes */
	unsigned asked_addresses;
	int32_t vl_answer[2]; /* codes for questions for volumes */
	bool vl_hold;
	const char *
		folder; /* with a CellServDB; the second location server is that of linked.org then */
	const char *name;		/* of the volume */
	uint32_t shift;			/* is added to the ids */
	bool no_uuids;			/* an older location server */
	bool no_route; /* the first location server has an address that cannot be reached */
	unsigned rw_server, ro_servers; /* the latter: bits */
	unsigned also; /* bits: servers whose addresses are those of server 0, too */
	bool odd, far; /* so are some that no server can have; and 192.0.2.1 */
	unsigned new_sites; /* bits: read-only sites that have the new release */
	unsigned closed_sites; /* bits: those that are marked as not to be used */
	bool rw_marked;	       /* as vos does during a release */
	uint64_t length; /* of files, whose bytes are fake_byte(); 0: they seem to be empty, and bring up to 1,000 'x' */
	bool has_ro, has_backup;
	unsigned generation;
	unsigned pause_ms; /* of the client, between tries; 0 = 10 */
	unsigned
		dead_ms; /* after which it takes a server for dead that sends nothing; 0 = 30,000 */
	rxw_security *security[2]; /* what file servers accept beside the null class */
	/* what the client was told */
	unsigned breaks, resets, renewals;
	unsigned older;		 /* times that an older release was shown */
	unsigned unrouted;	 /* times that no route to a location server was found */
	unsigned moves;		 /* addresses of this machine that came or went */
	unsigned probes_at_move; /* of server 0, when it was told */
	struct rxafs_fid broken[8];
	bool renew; /* the answer of renew() */
	void (*on_renew)(struct cl_identity *identity, uint32_t cell);
};

extern struct fake fake;
extern pthread_mutex_t fake_lock;
extern pthread_cond_t fake_changed;

extern struct cl_cells *fake_cells;
extern struct cl_net *fake_net;
extern struct cl_volume *fake_volume; /* the read-write one */
extern struct cl_caller fake_caller;
extern struct rxafs_failure fake_failure;
extern struct cl_stamp fake_stamp;
extern AFSFetchStatus fake_status;

/* Starts the servers, and a client with a limit of `soft_ms`. */
void fake_open(unsigned servers, unsigned soft_ms);
/* The client, if a test closes it itself. */
void fake_close_client(void);
/* Another client, with other limits. */
void fake_open_client(unsigned soft_ms);
void fake_close(void);

void fake_server_stop(unsigned number);
/* Ends a location server. A socket that has its port, and reads nothing. */
int fake_vl_stop(unsigned number);
/* Questions that have come to such a socket since the last time. */
unsigned fake_questions(int fd);
void fake_server_start(unsigned number);
/*
 * The next calls to a server get these codes; the list ends with `end`, which may be FAKE_REPEATS
 * or 0.
 */
void fake_answers(unsigned number, unsigned flags, unsigned count, ...);
void fake_hold(unsigned number, bool hold);
/* Waits until so many calls are held. */
void fake_await_held(unsigned number, unsigned count);
unsigned fake_calls(unsigned number);
unsigned fake_asked(void);
/* The volume of a name, with a reference. */
struct cl_volume *fake_find(const char *name, enum cl_wanted wanted);
/* 0 if there is a volume of the name, or a negative errno value. */
int fake_seek(const char *name);
static inline uint8_t fake_byte(uint64_t at)
{
	return (uint8_t)(at ^ at >> 8 ^ at >> 16);
}
/* Waits until FetchData64 has stopped at one of two servers. Its number; it does not answer probes any more. */
unsigned fake_silence_data(unsigned one, unsigned other);
void fake_hold_data(unsigned number, bool hold);
/* FetchStatus of the root: 0 or a negative errno value. */
int fake_look(struct cl_volume *volume);
#define looks(volume)                                                      \
	do {                                                               \
		int rc_ = fake_look(volume);                               \
		ck_assert_msg(rc_ == 0, "%d: %s", rc_, fake_failure.text); \
	} while (0)
/* A connection from server `number` to the callback service of the client, and a call through it. */
rxw_connection *fake_connect_client(unsigned number);
int32_t fake_break_by(rxw_connection *connection, const AFSFid *fids, uint32_t count);
/* The same with a connection of its own. */
int32_t fake_break(unsigned number, const AFSFid *fids, uint32_t count);

#endif
