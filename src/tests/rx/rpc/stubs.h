/* SPDX-License-Identifier: BSD-2-Clause */
/* A small interface with hand-written stubs, in the form that rxwgen generates. */
#ifndef TESTS_RPC_STUBS_H
#define TESTS_RPC_STUBS_H

#include <rxwire/rpc.h>
#include <rxwire/stub.h>

#include "tests/rx/api/harness.h"

/* Service ids in addition to those of the harness. */
#define T_SERVICE 200
#define T_SHORT	  201
#define T_RAW	  202 /* replies with the bytes of the request */

#define T_DATA_MAX  (1u << 20)
#define T_NAME_MAX  100
#define T_ITEMS_MAX 20000
#define T_LIMIT	    (2u << 20) /* bytes of one request */

struct t_item {
	uint32_t number;
	char *name;
};

struct t_items {
	uint32_t len;
	struct t_item *val;
};

enum {
	T_OP_ECHO = 1,
	T_OP_FAIL = 2,
	T_OP_LIST = 5,
	T_OP_WAIT = 7,
	T_OP_PUT = 9,
	T_OP_ABSENT = 12 /* in the table, without a function */
};
enum {
	T_FN_ECHO,
	T_FN_FAIL,
	T_FN_LIST,
	T_FN_WAIT,
	T_FN_PUT,
	T_FN_ABSENT,
	T_FUNCTIONS
};
extern const struct rxw_rpc_interface T_interface;

/* Where T_FAIL fails. */
enum t_when {
	T_BEFORE, /* nothing is written */
	T_WITHIN, /* after a window and a half of results */
	T_AFTER,  /* after all results: the application's function has returned */
	T_TORN	  /* truncated results, code 0 */
};

bool t_put_items(struct rxw_xdr *x, const struct t_items *v);
bool t_get_items(struct rxw_xdr *x, struct t_items *v);
void t_free_items(struct t_items *v);

int32_t T_Echo(rxw_connection *connection, const struct rxw_opaque *in, struct rxw_opaque *out);
int32_t T_Fail(rxw_connection *connection, int32_t code, enum t_when when, struct t_items *items);
int32_t T_List(rxw_connection *connection, uint32_t count, struct t_items *items);
int32_t StartT_Wait(rxw_call *call, uint32_t key);
int32_t EndT_Wait(rxw_call *call, uint32_t *key);
int32_t StartT_Put(rxw_call *call, const char *name, uint32_t length);
int32_t EndT_Put(rxw_call *call, struct rxw_opaque *name, uint32_t *sum);

struct t_handlers {
	int32_t (*Echo)(void *context, rxw_call *call, const struct rxw_opaque *in,
			struct rxw_opaque *out);
	int32_t (*Fail)(void *context, rxw_call *call, int32_t code, uint32_t when,
			struct t_items *items);
	int32_t (*List)(void *context, rxw_call *call, uint32_t count, struct t_items *items);
	int32_t (*Wait)(void *context, rxw_call *call, uint32_t key, uint32_t *back);
	int32_t (*Put)(void *context, rxw_call *call, const char *name, uint32_t length,
		       struct rxw_opaque *back, uint32_t *sum);
	int32_t (*Absent)(void *context, rxw_call *call);
};

struct t_service {
	struct rxw_rpc_service base;
	const struct t_handlers *handlers;
};
int32_t T_ExecuteRequest(rxw_call *call, void *service);
/* The server's table; the tests set swap_errno. */
extern struct rxw_rpc_table T_table;

/* -- the bed of the harness with the services above ------------------------------------------ */

extern struct h_bed bed;
extern struct t_service t_service;

/* WAIT with key k returns when k was opened, in the order of opening. */
void t_open(uint32_t key);
void t_open_all(void); /* all keys, until the test ends */
/* Waits until so many calls of WAIT have reached their function since the test began. */
void t_waiting(unsigned count);

void t_set_up(void);
void t_tear_down(void);

#endif
