/* SPDX-License-Identifier: BSD-2-Clause */
/* The older public interface of librxwire that old.c is compiled with, without its comments. */
#ifndef RXWIRE_RXWIRE_H
#define RXWIRE_RXWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>

typedef struct rxw_engine rxw_engine;
typedef struct rxw_endpoint rxw_endpoint;
typedef struct rxw_connection rxw_connection;
typedef struct rxw_call rxw_call;
typedef struct rxw_service rxw_service;
typedef struct rxw_security rxw_security;

typedef int32_t rxw_code;

enum rxw_origin {
	RXW_ORIGIN_NONE = 0,
	RXW_ORIGIN_LOCAL,
	RXW_ORIGIN_PEER
};

enum rxw_error {
	RXW_EINVAL = 1,
	RXW_ENOMEM,
	RXW_EADDRINUSE,
	RXW_ESYS,
	RXW_ECALL,
	RXW_EAGAIN,
	RXW_EEOF,

	RXW_ESTATE,
	RXW_EDEADLK,
	RXW_ESTOPPED,
	RXW_ETIMEDOUT,
	RXW_ENOTSUP,
	RXW_ELIMIT,
	RXW_ENAME,
	RXW_EVALUE,
	RXW_EDECODE,
	RXW_ENOKEY
};

#define RXW_CALL_DEAD	      (-1)
#define RXW_INVALID_OPERATION (-2)
#define RXW_CALL_TIMEOUT      (-3)
#define RXW_CALL_EOF	      (-4)
#define RXW_PROTOCOL_ERROR    (-5)
#define RXW_USER_ABORT	      (-6)
#define RXW_CALL_ADDRINUSE    (-7)
#define RXW_CALL_MSGSIZE      (-8)
#define RXW_RESTARTING	      (-100)
#define RXW_NETWORK_RESET     (-101)

#define RXW_RPC_CC_MARSHAL   (-450)
#define RXW_RPC_CC_UNMARSHAL (-451)
#define RXW_RPC_SS_MARSHAL   (-452)
#define RXW_RPC_SS_UNMARSHAL (-453)
#define RXW_RPC_DECODE	     (-454)
#define RXW_RPC_OPCODE	     (-455)

const char *rxw_strerror(int result);

const char *rxw_code_text(rxw_code code);

const char *rxw_code_text_from(rxw_code code, enum rxw_origin origin);

rxw_code rxw_code_from_errno(int err);
int rxw_code_to_errno(rxw_code code);

#define RXW_EVENT_READ	0x1u
#define RXW_EVENT_WRITE 0x2u
#define RXW_EVENT_DONE \
	0x4u

typedef void (*rxw_call_fn)(rxw_call *call, unsigned events, void *arg);

#define RXW_CALL_NONBLOCK 0x1u
#define RXW_CALL_TRY	  0x2u

struct rxw_call_options {
	size_t size;
	unsigned flags;
	unsigned deadline_ms;
	rxw_call_fn callback;
	void *arg;
};

int rxw_call_begin(rxw_connection *connection, const struct rxw_call_options *options,
		   rxw_call **call);

ssize_t rxw_call_write(rxw_call *call, const void *data, size_t length);

ssize_t rxw_call_reserve(rxw_call *call, size_t length, struct iovec *iov, unsigned *count);
int rxw_call_commit(rxw_call *call, size_t length);

ssize_t rxw_call_sendfile(rxw_call *call, int fd, off_t offset, size_t length);

int rxw_call_flush(rxw_call *call);

int rxw_call_send_end(rxw_call *call);

ssize_t rxw_call_read(rxw_call *call, void *data, size_t length);

ssize_t rxw_call_read_some(rxw_call *call, void *data, size_t length);

ssize_t rxw_call_readv(rxw_call *call, size_t length, struct iovec *iov, unsigned *count);

struct rxw_call_statistics {
	size_t size;
	uint64_t bytes_sent, bytes_received;
	uint64_t packets_sent, packets_received;
	uint64_t retransmitted, duplicates;
	uint64_t acks_sent, acks_received;

	uint64_t windows_by_writer, windows_by_receiver;
	uint64_t rtt_ns;
	uint32_t cwnd, peer_window;
	uint64_t started_ns, ended_ns;
	uint8_t security, level;
};

int rxw_call_stats(rxw_call *call, struct rxw_call_statistics *stats);

rxw_code rxw_call_end(rxw_call *call, rxw_code code, enum rxw_origin *origin);

void rxw_call_abort(rxw_call *call, rxw_code code);

rxw_code rxw_call_error(const rxw_call *call, enum rxw_origin *origin);


int rxw_call_set_events(rxw_call *call, unsigned events);

unsigned rxw_call_events(rxw_call *call);

int rxw_call_set_callback(rxw_call *call, rxw_call_fn callback, void *arg);

int rxw_call_peer(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len);
int rxw_call_local(const rxw_call *call, struct sockaddr_storage *address, socklen_t *address_len);
uint16_t rxw_call_service_id(const rxw_call *call);

void rxw_call_set_status(rxw_call *call, uint8_t status);
uint8_t rxw_call_peer_status(const rxw_call *call);


size_t rxw_call_packet_size(const rxw_call *call);

enum rxw_switch {
	RXW_AUTO = 0,
	RXW_ON = 1,
	RXW_OFF = 2
};
enum rxw_io_kind {
	RXW_IO_AUTO = 0,
	RXW_IO_MMSG = 1,
	RXW_IO_MSG = 2
};
enum rxw_congestion {
	RXW_CONGESTION_AUTO = 0,
	RXW_CONGESTION_RENO = 1,
	RXW_CONGESTION_CUBIC = 2
};
enum rxw_debug_access {
	RXW_DEBUG_LOCAL = 0,
	RXW_DEBUG_OFF = 1,
	RXW_DEBUG_ANY = 2,
	RXW_DEBUG_NET = 3
};

enum rxw_log_level {
	RXW_LOG_ERROR = 3,
	RXW_LOG_WARNING = 4,
	RXW_LOG_INFO = 6,
	RXW_LOG_DEBUG = 7
};

typedef void (*rxw_log_fn)(void *arg, enum rxw_log_level level, const char *line);

struct rxw_config {
	size_t size;

	unsigned listeners;
	unsigned mtu;
	size_t rcvbuf;
	size_t sndbuf;
	enum rxw_switch gso;
	enum rxw_switch gro;
	enum rxw_io_kind io;

	unsigned poll_us;
	char affinity[256];

	unsigned window;
	enum rxw_congestion congestion;
	enum rxw_switch path_mtu;
	enum rxw_switch jumbo;

	unsigned dead_ms;
	unsigned idle_ms;
	unsigned hard_ms;
	unsigned server_idle_ms;

	size_t memory;
	size_t peer_memory;

	unsigned workers_max;
	unsigned queue;

	unsigned connections_max;
};

void rxw_config_init(struct rxw_config *config, size_t size);

struct rxw_option {
	const char *name;
	const char *argument;
	const char *unit;
	const char *scope;
	int ordinary;
	const char *help;
};

const struct rxw_option *rxw_config_options(size_t *count);

int rxw_config_set(struct rxw_config *config, const char *name, const char *value, char *message,
		   size_t message_size);

int rxw_config_get(const struct rxw_config *config, const char *name, char *text, size_t text_size);

int rxw_connection_create(rxw_endpoint *endpoint, const struct sockaddr *peer, socklen_t peer_len,
			  uint16_t service_id, rxw_security *security, rxw_connection **connection);

rxw_connection *rxw_call_connection(const rxw_call *call);

rxw_connection *rxw_connection_ref(rxw_connection *connection);
void rxw_connection_release(rxw_connection *connection);

int rxw_connection_set_data(rxw_connection *connection, void *data, void (*destructor)(void *data));
void *rxw_connection_data(rxw_connection *connection);

int rxw_connection_id(const rxw_connection *connection, uint32_t *epoch, uint32_t *cid);

int rxw_connection_peer(const rxw_connection *connection, struct sockaddr_storage *address,
			socklen_t *address_len);


int rxw_connection_security_index(const rxw_connection *connection);

rxw_code rxw_connection_error(const rxw_connection *connection, enum rxw_origin *origin);

int rxw_connection_close(rxw_connection *connection, rxw_code code);

int rxw_connection_abort(rxw_connection *connection, rxw_code code);

#define RXW_TIMEOUT_OFF 0xffffffffu

int rxw_connection_set_timeouts(rxw_connection *connection, unsigned dead_ms, unsigned idle_ms,
				unsigned hard_ms);

struct rxw_endpoint_options {
	size_t size;
	const struct sockaddr *address;
	socklen_t address_len;
	const struct rxw_config *config;

	int server;
	const char *version_text;

	int paused;

	const int *sockets;
	size_t socket_count;
};

int rxw_endpoint_create(rxw_engine *engine, const struct rxw_endpoint_options *options,
			rxw_endpoint **endpoint);

int rxw_endpoint_start(rxw_endpoint *endpoint);

int rxw_endpoint_address(const rxw_endpoint *endpoint, struct sockaddr_storage *address,
			 socklen_t *address_len);

int rxw_endpoint_set(rxw_endpoint *endpoint, const char *name, const char *value);

int rxw_endpoint_stop(rxw_endpoint *endpoint, unsigned limit_ms);

int rxw_endpoint_destroy(rxw_endpoint *endpoint);

#define RXW_VERSION_MAJOR  0
#define RXW_VERSION_MINOR  1
#define RXW_VERSION_PATCH  0
#define RXW_VERSION_NUMBER (RXW_VERSION_MAJOR * 10000 + RXW_VERSION_MINOR * 100 + RXW_VERSION_PATCH)

const char *rxw_version(void);

int rxw_engine_create(const struct rxw_config *config, rxw_engine **engine);


int rxw_engine_destroy(rxw_engine *engine);

size_t rxw_engine_memory(const rxw_engine *engine, size_t *peak);

enum rxw_level {
	RXW_LEVEL_CLEAR = 0,
	RXW_LEVEL_AUTH = 1,
	RXW_LEVEL_CRYPT = 2
};

struct rxw_security_room {
	uint8_t head;
	uint8_t tail;
	uint8_t block;
	uint8_t least;
	bool quick;
};

struct rxw_security_id {
	uint32_t epoch, cid;
	uint16_t service;
	uint8_t index;
	bool client;
};

struct rxw_security_packet {
	uint8_t *data;
	uint32_t call, seq;
	uint8_t channel;
	uint16_t spare;

	uint32_t length;

	rxw_code result;
};

struct rxw_identity {
	size_t size;
	uint8_t index;
	uint8_t level;

	bool local;
	const char *name;
	const char *rxkad_name;
	int64_t expires;
};

#define RXW_CLASS_SLOW 0x1u

struct rxw_security_class {
	size_t size;
	const char *name;
	uint8_t index;
	unsigned flags;

	rxw_code broken;

	void (*destroy)(void *data);

	int (*conn_create)(void *data, const struct rxw_security_id *id, void **conn);
	void (*conn_destroy)(void *conn);

	void (*room)(const void *conn, struct rxw_security_room *room);

	int (*identity)(const void *conn, struct rxw_identity *identity);

	int (*seal)(void *conn, struct rxw_security_packet *packets, size_t count);
	void (*verify)(void *conn, struct rxw_security_packet *packets, size_t count);

	int (*challenge)(void *conn, uint8_t *out, size_t room);

	int (*respond)(void *conn, const uint8_t *challenge, size_t size, const uint32_t calls[4],
		       uint8_t *out, size_t room, size_t *written, uint16_t *spare);

	rxw_code (*check_response)(void *conn, const uint8_t *response, size_t size, uint16_t spare,
				  uint32_t calls[4]);

	rxw_code weak;

	int (*renew)(void *conn, struct rxw_security_packet *packets, size_t count);
};

int rxw_security_create(const struct rxw_security_class *klass, void *data,
			rxw_security **security);

rxw_security *rxw_security_ref(rxw_security *security);
void rxw_security_unref(rxw_security *security);

rxw_security *rxw_security_null(void);

int rxw_call_identity(const rxw_call *call, struct rxw_identity *identity);
int rxw_connection_identity(const rxw_connection *connection, struct rxw_identity *identity);

typedef rxw_code (*rxw_handler_fn)(rxw_call *call, void *context);

#define RXW_SERVICE_INLINE 0x1u

#define RXW_SERVICE_REACH 0x2u

#define RXW_SERVICE_HELD 0x4u

struct rxw_service_options {
	size_t size;
	uint16_t id;
	const char *name;
	rxw_handler_fn handler;
	void *context;
	unsigned flags;
	unsigned workers_max;
	unsigned idle_ms;

	rxw_security *const *security;
	size_t security_count;

	uint8_t level_min;
};

int rxw_service_add(rxw_endpoint *endpoint, const struct rxw_service_options *options,
		    rxw_service **service);

int rxw_service_start(rxw_service *service);

int rxw_service_remove(rxw_service *service, unsigned limit_ms);

enum rxw_counter_kind {
	RXW_COUNTER_TOTAL = 0,
	RXW_COUNTER_CURRENT
};

struct rxw_counter {
	const char *name;
	const char *help;
	enum rxw_counter_kind kind;
};

const struct rxw_counter *rxw_counter_at(size_t index);


int rxw_endpoint_counters(rxw_endpoint *endpoint, uint64_t *values, size_t room);


int rxw_endpoint_counter(rxw_endpoint *endpoint, const char *name, uint64_t *value);

struct rxw_effective {
	size_t size;
	unsigned listeners, batch, window, mtu;
	int gso, gro;

	int steered;
	const char *io;
};

int rxw_endpoint_effective(rxw_endpoint *endpoint, struct rxw_effective *effective);

struct rxw_xdr {
	uint8_t *at;
	uint8_t *end;
	uint8_t *start;

	bool (*more)(struct rxw_xdr *x, size_t size);
	size_t later;
	size_t budget;
	uint8_t depth;
	bool failed;
};

#define RXW_XDR_BLOCK 1024

#define RXW_XDR_DEPTH 64

#define RXW_XDR_LIST 65536

void rxw_xdr_writer(struct rxw_xdr *x, void *memory, size_t size);

void rxw_xdr_reader(struct rxw_xdr *x, const void *memory, size_t size);
size_t rxw_xdr_used(const struct rxw_xdr *x);
size_t rxw_xdr_left(const struct rxw_xdr *x);
bool rxw_xdr_ok(const struct rxw_xdr *x);

bool rxw_xdr_fail(struct rxw_xdr *x);

uint8_t *rxw_xdr_take_more(struct rxw_xdr *x, size_t size);

static inline uint8_t *rxw_xdr_take(struct rxw_xdr *x, size_t size)
{
	uint8_t *p = x->at;

	if (size > (size_t)(x->end - p))
		return rxw_xdr_take_more(x, size);
	x->at = p + size;
	return p;
}

static inline void rxw_xdr_store32(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 24);
	p[1] = (uint8_t)(v >> 16);
	p[2] = (uint8_t)(v >> 8);
	p[3] = (uint8_t)v;
}

static inline void rxw_xdr_store64(uint8_t *p, uint64_t v)
{
	rxw_xdr_store32(p, (uint32_t)(v >> 32));
	rxw_xdr_store32(p + 4, (uint32_t)v);
}

static inline uint32_t rxw_xdr_load32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | (uint32_t)p[3];
}

static inline uint64_t rxw_xdr_load64(const uint8_t *p)
{
	return (uint64_t)rxw_xdr_load32(p) << 32 | rxw_xdr_load32(p + 4);
}

static inline bool rxw_xdr_put_u32(struct rxw_xdr *x, uint32_t v)
{
	uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	rxw_xdr_store32(p, v);
	return true;
}

static inline bool rxw_xdr_put_u64(struct rxw_xdr *x, uint64_t v)
{
	uint8_t *p = rxw_xdr_take(x, 8);

	if (!p)
		return false;
	rxw_xdr_store64(p, v);
	return true;
}

static inline bool rxw_xdr_get_u32(struct rxw_xdr *x, uint32_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = rxw_xdr_load32(p);
	return true;
}

static inline bool rxw_xdr_get_i32(struct rxw_xdr *x, int32_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = (int32_t)rxw_xdr_load32(p);
	return true;
}

static inline bool rxw_xdr_get_u64(struct rxw_xdr *x, uint64_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 8);

	if (!p)
		return false;
	*v = rxw_xdr_load64(p);
	return true;
}

static inline bool rxw_xdr_get_i64(struct rxw_xdr *x, int64_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 8);

	if (!p)
		return false;
	*v = (int64_t)rxw_xdr_load64(p);
	return true;
}

static inline bool rxw_xdr_get_i16(struct rxw_xdr *x, int16_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = (int16_t)(uint16_t)rxw_xdr_load32(p);
	return true;
}

static inline bool rxw_xdr_get_u16(struct rxw_xdr *x, uint16_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = (uint16_t)rxw_xdr_load32(p);
	return true;
}

static inline bool rxw_xdr_get_char(struct rxw_xdr *x, char *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = (char)p[3];
	return true;
}

static inline bool rxw_xdr_get_u8(struct rxw_xdr *x, uint8_t *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = p[3];
	return true;
}

static inline bool rxw_xdr_get_bool(struct rxw_xdr *x, bool *v)
{
	const uint8_t *p = rxw_xdr_take(x, 4);

	if (!p)
		return false;
	*v = rxw_xdr_load32(p) != 0;
	return true;
}

bool rxw_xdr_put_float(struct rxw_xdr *x, float v);
bool rxw_xdr_get_float(struct rxw_xdr *x, float *v);
bool rxw_xdr_put_double(struct rxw_xdr *x, double v);
bool rxw_xdr_get_double(struct rxw_xdr *x, double *v);

struct rxw_uuid {
	uint32_t time_low;
	uint16_t time_mid;
	uint16_t time_hi_and_version;
	int8_t clock_seq_hi_and_reserved;
	int8_t clock_seq_low;
	int8_t node[6];
};
#define RXW_UUID_BYTES 44
bool rxw_xdr_put_uuid(struct rxw_xdr *x, const struct rxw_uuid *v);
bool rxw_xdr_get_uuid(struct rxw_xdr *x, struct rxw_uuid *v);

bool rxw_xdr_put_words(struct rxw_xdr *x, const void *words, size_t count);
bool rxw_xdr_get_words(struct rxw_xdr *x, void *words, size_t count);

bool rxw_xdr_put_opaque(struct rxw_xdr *x, const void *data, size_t length);

bool rxw_xdr_get_opaque(struct rxw_xdr *x, void *data, size_t length);

bool rxw_xdr_skip(struct rxw_xdr *x, size_t length);

bool rxw_xdr_put_bytes(struct rxw_xdr *x, const void *data, size_t length, uint32_t bound);

bool rxw_xdr_put_string(struct rxw_xdr *x, const char *text, uint32_t bound);

bool rxw_xdr_get_bytes(struct rxw_xdr *x, uint32_t bound, char **data, uint32_t *length);

bool rxw_xdr_get_string(struct rxw_xdr *x, uint32_t bound, char **text);

bool rxw_xdr_copy_string(struct rxw_xdr *x, uint32_t bound, char *text);

bool rxw_xdr_lend_bytes(struct rxw_xdr *x, uint32_t bound, const uint8_t **data, size_t *length);

bool rxw_xdr_get_count(struct rxw_xdr *x, uint32_t bound, size_t element, uint32_t *count);

void *rxw_xdr_grow(struct rxw_xdr *x, void *array, size_t *room, uint32_t count, size_t size);

void *rxw_xdr_new(struct rxw_xdr *x, size_t size);

bool rxw_xdr_enter(struct rxw_xdr *x);
void rxw_xdr_leave(struct rxw_xdr *x);

#endif
