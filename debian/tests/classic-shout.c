/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program for classic Rx, which compiles with OpenAFS's headers and with those of
 * librxwire-classic: a service that sends back what it gets in capitals, and its client.
 *
 *	classic serve PORT		until SIGTERM
 *	classic ask PORT TEXT		prints the answer of the server on 127.0.0.1
 */
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if __has_include(<afs/param.h>)
#	include <afs/param.h>
#	include <afs/stds.h>
#endif
#include <rx/rx.h>
#include <rx/rx_null.h>
#include <rx/xdr.h>

#define SERVICE 4711
#define TEXT	1000

static afs_int32 shout(struct rx_call *call)
{
	char *text = NULL;
	bool_t done;
	XDR xdrs;

	xdrrx_create(&xdrs, call, XDR_DECODE);
	if (!xdr_string(&xdrs, &text, TEXT))
		return RX_PROTOCOL_ERROR;
	for (char *p = text; *p; p++)
		if (*p >= 'a' && *p <= 'z')
			*p -= 'a' - 'A';
	xdrs.x_op = XDR_ENCODE;
	done = xdr_string(&xdrs, &text, TEXT);
	free(text);
	return done ? 0 : RX_PROTOCOL_ERROR;
}

static int serve(u_short port)
{
	struct rx_securityClass *classes[] = {rxnull_NewServerSecurityObject()};
	static char name[] = "shout";
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	if (rx_Init(port) || !rx_NewService(0, SERVICE, name, classes, 1, shout))
		return 1;
	rx_StartServer(0);
	puts("serving");
	fflush(stdout);
	return sigwait(&set, &number) != 0;
}

static int ask(u_short port, char *text)
{
	char *answer = NULL;
	struct rx_connection *connection;
	struct rx_call *call;
	afs_int32 code;
	XDR xdrs;

	if (rx_Init(0))
		return 1;
	connection = rx_NewConnection(htonl(INADDR_LOOPBACK), port, SERVICE,
				      rxnull_NewClientSecurityObject(), RX_SECIDX_NULL);
	rx_SetConnDeadTime(connection, 20);
	call = rx_NewCall(connection);
	xdrrx_create(&xdrs, call, XDR_ENCODE);
	code = xdr_string(&xdrs, &text, TEXT) ? 0 : RX_PROTOCOL_ERROR;
	xdrs.x_op = XDR_DECODE;
	if (!code && !xdr_string(&xdrs, &answer, TEXT))
		code = RX_PROTOCOL_ERROR;
	code = rx_EndCall(call, code);
	rx_DestroyConnection(connection);
	if (code)
		fprintf(stderr, "classic: the call failed with code %d\n", (int)code);
	else
		puts(answer);
	free(answer);
	rx_Finalize();
	return code != 0;
}

int main(int argc, char **argv)
{
	u_short port = argc > 2 ? htons((u_short)atoi(argv[2])) : 0;

	if (argc == 3 && !strcmp(argv[1], "serve"))
		return serve(port);
	if (argc == 4 && !strcmp(argv[1], "ask"))
		return ask(port, argv[3]);
	fprintf(stderr, "usage: classic serve PORT, or classic ask PORT TEXT\n");
	return 2;
}
