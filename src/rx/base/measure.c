/* SPDX-License-Identifier: BSD-2-Clause */
/* Names for reports and documents: the version, causes of drops, locks, packet types. */
#include "base/measure.h"

/* Declared in rxwire/engine.h, which also declares objects. */
const char *rxw_version(void);

const char *rxw_version(void)
{
	return PACKAGE_VERSION;
}

const char *const rxw_drop_names[RXW_DROP_COUNT] = {
	[RXW_DROP_SHORT] = "short",
	[RXW_DROP_TRUNCATED] = "truncated",
	[RXW_DROP_TYPE] = "type",
	[RXW_DROP_NO_CONNECTION] = "no-connection",
	[RXW_DROP_SECURITY_INDEX] = "security-index",
	[RXW_DROP_SERVICE] = "service",
	[RXW_DROP_ADDRESS] = "address",
	[RXW_DROP_CALL_NUMBER] = "call-number",
	[RXW_DROP_SEQ_ZERO] = "seq-zero",
	[RXW_DROP_WINDOW] = "window",
	[RXW_DROP_DUPLICATE] = "duplicate",
	[RXW_DROP_BAD_ACK] = "bad-ack",
	[RXW_DROP_BAD_ABORT] = "bad-abort",
	[RXW_DROP_JUMBO] = "jumbo",
	[RXW_DROP_DIRECTION] = "direction",
	[RXW_DROP_VERIFY] = "verify",
	[RXW_DROP_MEMORY] = "memory",
	[RXW_DROP_LIMIT] = "limit",
	[RXW_DROP_RATE] = "rate",
	[RXW_DROP_ACCESS] = "access",
	[RXW_DROP_STATE] = "state",
};

const char *const rxw_lock_names[RXW_LOCK_COUNT] = {
	[RXW_LOCK_TABLE] = "table",
	[RXW_LOCK_CONNECTION] = "connection",
	[RXW_LOCK_WORKERS] = "workers",
	[RXW_LOCK_SEND_QUEUE] = "send-queue",
	[RXW_LOCK_RECEIVE_ROLE] = "receive-role",
	[RXW_LOCK_PEERS] = "peers",
	[RXW_LOCK_UNVALIDATED] = "unvalidated",
	[RXW_LOCK_VERIFIER] = "verifier",
	[RXW_LOCK_BUFFERS] = "buffers",
	[RXW_LOCK_SOCKET] = "socket",
};

const char *const rxw_packet_names[RXW_PACKET_NAMES] = {
	"data",	     "ack",	 "busy",  "abort",   "ackall",
	"challenge", "response", "debug", "version", "other",
};
const unsigned char rxw_packet_class[RXW_PACKET_TYPES] = {9, 0, 1, 2, 3, 4, 5, 6, 7, 9, 9, 9, 9, 8};
