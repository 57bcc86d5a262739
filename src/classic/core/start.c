/* SPDX-License-Identifier: BSD-2-Clause */
/* The process: its engine, its ports, and settings. */
#include <errno.h>

#include "core.h"

#define WINDOW_MAX 255

pthread_mutex_t classic_lock = PTHREAD_MUTEX_INITIALIZER;

/* Assigned by programs without a lock: ints of classic Rx. */
int rx_connDeadTime = RX_DEFAULT_DEAD_TIME;
int rx_UdpBufSize = 64 * 1024;
int rx_BusyThreshold = -1;
int rx_BusyError = -1;
int rx_tranquil;
osi_socket rx_socket = OSI_NULLSOCKET;
/* These variables have no effect. */
int RX_IPUDP_SIZE = 28;
int rx_extraPackets = 256, rx_extraQuota, rx_nPackets;
int rx_stackSize = RX_DEFAULT_STACK_SIZE;
int rx_enable_hot_thread;
int rx_minPeerTimeout = 20;
int rxi_callAbortThreshhold = 10, rxi_connAbortThreshhold = 10;
int rxi_callAbortDelay = 3000, rxi_connAbortDelay = 3000;
FILE *rx_debugFile, *rxevent_debugFile;
int (*rxi_syscallp)(afs_uint32 a3, afs_uint32 a4, void *a5);
char rxi_tracename[80];

/* OpenAFS's programs contain the text that they answer to VERSION packets, behind a mark. */
extern char cml_version_number[] __attribute__((weak));

static const char *version_text(void)
{
	static const char mark[] = "@(#)";
	size_t skipped = sizeof(mark) - 1;

	if (!cml_version_number)
		return NULL;
	return cml_version_number + (strncmp(cml_version_number, mark, skipped) ? 0 : skipped);
}

/* classic_lock; engine and main port do not change between rx_Init() and rx_Finalize(). */
static struct {
	rxw_engine *engine;
	struct classic_port *ports; /* the one of rx_Init() is the last */
	struct classic_port *_Atomic main;
	bool serving;
	int receive_window, send_window, mtu; /* 0 = default */
} process;

rxw_engine *classic_engine(void)
{
	return process.engine;
}

struct classic_port *classic_main_port(void)
{
	return process.main;
}

bool classic_serving(void)
{
	assert(mutex_is_held(&classic_lock));
	return process.serving;
}

/* Programs write their own logs, so this one on standard error has failures only. */
static void print_library_line(void *arg, enum rxw_log_level level, const char *line)
{
	(void)arg;
	(void)level;
	fprintf(stderr, "rxwire: %s\n", line);
}

static rxw_engine *create_engine(void)
{
	struct rxw_config config;
	rxw_engine *engine;
	int rc;

	rxw_config_init(&config, sizeof(config));
	config.log = print_library_line;
	config.log_level = RXW_LOG_WARNING;
	config.debug_access = RXW_DEBUG_ANY; /* administrators watch classic Rx from anywhere */
	if (rx_UdpBufSize > rx_GetMinUdpBufSize())
		config.rcvbuf = (size_t)rx_UdpBufSize;
	rc = rxw_engine_create(&config, &engine);
	if (rc) {
		classic_log("cannot start Rx: %s", rxw_strerror(rc));
		return NULL;
	}
	return engine;
}

/* Set a number of one endpoint, with a line in the log if the endpoint refuses it. */
static void set_endpoint_number(rxw_endpoint *endpoint, const char *name, int value)
{
	char text[16];
	int rc;

	snprintf(text, sizeof(text), "%d", value);
	rc = rxw_endpoint_set(endpoint, name, text);
	if (rc)
		classic_log("cannot set %s to %d: %s", name, value, rxw_strerror(rc));
}

static int window_of_process(void)
{
	int larger = process.receive_window > process.send_window ? process.receive_window
								  : process.send_window;

	return larger > WINDOW_MAX ? WINDOW_MAX : larger;
}

static void apply_settings(rxw_endpoint *endpoint)
{
	assert(mutex_is_held(&classic_lock));
	if (window_of_process())
		set_endpoint_number(endpoint, "window", window_of_process());
	if (process.mtu)
		set_endpoint_number(endpoint, "mtu", process.mtu);
}

/* Open a port; its result in *rc. */
static struct classic_port *open_port(afs_uint32 host, u_short number, bool server, int *rc)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = number};
	struct rxw_endpoint_options options = {
		.size = sizeof(options),
		.address = (struct sockaddr *)&address,
		.address_len = sizeof(address),
		.server = server,
		.version_text = version_text(),
	};
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	struct classic_port *port = calloc(1, sizeof(*port));

	*rc = -RXW_ENOMEM;
	if (!port)
		return NULL;
	address.sin_addr.s_addr = host;
	*rc = rxw_endpoint_create(process.engine, &options, &port->endpoint);
	if (*rc) {
		free(port);
		return NULL;
	}
	rxw_endpoint_address(port->endpoint, &bound, &length);
	port->host = host;
	port->port = ((struct sockaddr_in *)&bound)->sin_port;
	apply_settings(port->endpoint);
	port->next = process.ports;
	process.ports = port;
	return port;
}

struct classic_port *classic_open(afs_uint32 host, u_short number)
{
	struct classic_port *main = process.main;
	struct classic_port *port;
	int rc;

	assert(mutex_is_held(&classic_lock));
	if (!main || !number ||
	    (number == main->port && (!host || !main->host || host == main->host)))
		return main;
	for (port = process.ports; port; port = port->next)
		if (port->port == number && port->host == host)
			return port;
	port = open_port(host, number, true, &rc);
	if (!port)
		classic_log("cannot open UDP port %u: %s", ntohs(number),
			    rc == -RXW_ESYS ? strerror(errno) : rxw_strerror(rc));
	return port;
}

void classic_each_endpoint(void (*fn)(rxw_endpoint *endpoint, void *arg), void *arg)
{
	pthread_mutex_lock(&classic_lock);
	if (process.main)
		fn(process.main->endpoint, arg);
	for (struct classic_port *p = process.ports; p; p = p->next)
		if (p != process.main)
			fn(p->endpoint, arg);
	pthread_mutex_unlock(&classic_lock);
}

/* -- Start ---------------------------------------------------------------------------------------- */

static int init_process(afs_uint32 host, u_short number)
{
	int rc;

	assert(mutex_is_held(&classic_lock));
	if (process.main)
		return 0;
	rx_connDeadTime = RX_DEFAULT_DEAD_TIME;
	if (!process.engine)
		process.engine = create_engine();
	if (!process.engine)
		return RX_CALL_DEAD;
	/* A program that asks for a port serves it. Others need one listener. */
	process.main = open_port(host, number, number != 0, &rc);
	if (!process.main)
		return rc == -RXW_EADDRINUSE ? RX_ADDRINUSE : RX_CALL_DEAD;
	return 0;
}

int rx_InitHost(u_int host, u_int port)
{
	int rc;

	pthread_mutex_lock(&classic_lock);
	rc = init_process(host, (u_short)port);
	pthread_mutex_unlock(&classic_lock);
	return rc;
}

int rx_Init(u_int port)
{
	return rx_InitHost(htonl(INADDR_ANY), port);
}

/* Log the settings that a program has changed without effect. */
static void log_ignored_settings(void)
{
	static const char packets[] = "packet memory is limited in bytes";
	static const char aborts[] = "ABORTs are limited by the library's own rule";

	if (rx_extraPackets != 256)
		classic_ignored("rx_extraPackets", packets);
	if (rx_extraQuota)
		classic_ignored("rx_extraQuota", packets);
	if (rx_nPackets)
		classic_ignored("rx_nPackets", packets);
	if (rx_stackSize != RX_DEFAULT_STACK_SIZE)
		classic_ignored("rx_stackSize", "threads have the system's default stack");
	if (rxi_callAbortThreshhold != 10)
		classic_ignored("rx_SetCallAbortThreshold", aborts);
	if (rxi_connAbortThreshhold != 10)
		classic_ignored("rx_SetConnAbortThreshold", aborts);
	if (rx_enable_hot_thread)
		classic_ignored("rx_EnableHotThread",
				"the library decides which thread serves a call");
	if (rx_debugFile)
		classic_ignored("rx_debugFile", "rxwire has traces of its own");
}

void classic_serve(void)
{
	assert(mutex_is_held(&classic_lock));
	process.serving = true;
	log_ignored_settings();
}

struct classic_port *classic_leave(rxw_engine **engine)
{
	struct classic_port *ports = process.ports;

	assert(mutex_is_held(&classic_lock));
	*engine = process.engine;
	process.ports = NULL;
	process.main = NULL;
	process.engine = NULL;
	process.serving = false;
	process.receive_window = process.send_window = process.mtu = 0;
	return ports;
}

/* -- Settings ------------------------------------------------------------------------------------- */

static void apply_settings_to_all(void)
{
	for (struct classic_port *p = process.ports; p; p = p->next)
		apply_settings(p->endpoint);
}

static void set_packet_window(int *which, int packets)
{
	pthread_mutex_lock(&classic_lock);
	*which = packets < 1 ? 1 : packets;
	apply_settings_to_all();
	pthread_mutex_unlock(&classic_lock);
}

void rx_SetMaxReceiveWindow(int packets)
{
	set_packet_window(&process.receive_window, packets);
}

void rx_SetMaxSendWindow(int packets)
{
	set_packet_window(&process.send_window, packets);
}

int rx_GetMaxReceiveWindow(void)
{
	int packets;

	pthread_mutex_lock(&classic_lock);
	packets = window_of_process();
	pthread_mutex_unlock(&classic_lock);
	return packets ? packets : WINDOW_MAX;
}

int rx_GetMaxSendWindow(void)
{
	return rx_GetMaxReceiveWindow();
}

int rx_SetMaxMTU(int mtu)
{
	if (mtu < 548 || mtu > 9000)
		return EINVAL;
	pthread_mutex_lock(&classic_lock);
	process.mtu = mtu;
	apply_settings_to_all();
	pthread_mutex_unlock(&classic_lock);
	return 0;
}

void rx_SetNoJumbo(void)
{
}

void rx_GetIFInfo(void)
{
}

void rx_SetMinPeerTimeout(int ms)
{
	rx_minPeerTimeout = ms;
	classic_ignored("rx_SetMinPeerTimeout", "retransmission timeouts follow RFC 6298");
}

int rx_GetMinPeerTimeout(void)
{
	return rx_minPeerTimeout;
}

void rx_StatsOnOff(int on)
{
	if (!on)
		classic_ignored("rx_StatsOnOff", "counters are always kept");
}

void rx_DebugOnOff(int on)
{
	if (on)
		classic_ignored("rx_DebugOnOff", "rxwire has traces of its own");
}

void rxc_tranquil(int on)
{
	pthread_mutex_lock(&classic_lock);
	rx_tranquil = on;
	for (struct classic_port *p = process.ports; p; p = p->next)
		(void)rxw_endpoint_refuse(p->endpoint, on ? RX_RESTARTING : 0);
	pthread_mutex_unlock(&classic_lock);
}
