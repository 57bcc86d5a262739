/* SPDX-License-Identifier: BSD-2-Clause */
/* XDR on calls, in the way of the stubs that rxgen writes: both sides in one process. */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>

#include <rx/rx.h>
#include <rx/xdr.h>

#include "port.h"
#include "tests/main.h"

#define SERVICE	  5003
#define MOST	  100000
#define UNMARSHAL (-453) /* as rxgen's stubs */

enum {
	ADD = 1, /* two numbers: their sum */
	REVERSE, /* bytes: the same backwards */
	STORE,	 /* a name and a length, then data outside XDR: the name, and the sum of the data */
	UNREADABLE /* a string of at most 3 */
};

static struct {
	struct rx_securityClass *classes[1];
	struct rx_connection *connection;
	u_short port;
	atomic_int freed; /* values that a server's stub has freed */
} bed;

/* Turn a stream from arguments to results, and free them at the end, as stubs do. */
static afs_int32 serve_add(XDR *xdrs)
{
	afs_int32 a, b;

	if (!xdr_afs_int32(xdrs, &a) || !xdr_afs_int32(xdrs, &b))
		return UNMARSHAL;
	a += b;
	xdrs->x_op = XDR_ENCODE;
	return xdr_afs_int32(xdrs, &a) ? 0 : UNMARSHAL;
}

static afs_int32 serve_reverse(XDR *xdrs)
{
	char *bytes = NULL;
	u_int count = 0;
	afs_int32 code = UNMARSHAL;

	if (xdr_bytes(xdrs, &bytes, &count, MOST)) {
		for (u_int i = 0; i < count / 2; i++) {
			char c = bytes[i];

			bytes[i] = bytes[count - 1 - i];
			bytes[count - 1 - i] = c;
		}
		xdrs->x_op = XDR_ENCODE;
		if (xdr_bytes(xdrs, &bytes, &count, MOST))
			code = 0;
	}
	xdrs->x_op = XDR_FREE;
	if (!xdr_bytes(xdrs, &bytes, &count, MOST) || bytes)
		code = -1;
	bed.freed++;
	return code;
}

/* A split call: reading goes on where XDR ended, and XDR goes on where reading ended. */
static afs_int32 serve_store(struct rx_call *call, XDR *xdrs)
{
	afs_int32 code = UNMARSHAL;
	char *name = NULL, bytes[1000];
	afs_uint32 sum = 0, left;

	if (!xdr_string(xdrs, &name, 64) || !xdr_afs_uint32(xdrs, &left))
		goto out;
	while (left) {
		int n = left < sizeof(bytes) ? (int)left : (int)sizeof(bytes);

		if (rx_Read(call, bytes, n) != n)
			goto out;
		for (int i = 0; i < n; i++)
			sum += (unsigned char)bytes[i];
		left -= (afs_uint32)n;
	}
	if (!xdr_afs_uint32(xdrs, &left) || left != 77)
		goto out;
	xdrs->x_op = XDR_ENCODE;
	if (xdr_string(xdrs, &name, 64) && rx_Write(call, "raw", 3) == 3 &&
	    xdr_afs_uint32(xdrs, &sum))
		code = 0;
out:
	xdrs->x_op = XDR_FREE;
	xdr_string(xdrs, &name, 64);
	bed.freed++;
	return code;
}

static afs_int32 procedure(struct rx_call *call)
{
	char *text = NULL;
	int opcode;
	XDR xdrs;

	xdrrx_create(&xdrs, call, XDR_DECODE);
	if (!xdr_int(&xdrs, &opcode))
		return -454;
	switch (opcode) {
	case ADD:
		return serve_add(&xdrs);
	case REVERSE:
		return serve_reverse(&xdrs);
	case STORE:
		return serve_store(call, &xdrs);
	case UNREADABLE:
		ck_assert(!xdr_string(&xdrs, &text, 3));
		ck_assert_ptr_null(text);
		return UNMARSHAL;
	default:
		return -455;
	}
}

static void open_bed(void)
{
	struct rx_service *service;

	bed.freed = 0;
	bed.port = port_start();
	bed.classes[0] = rxnull_NewServerSecurityObject();
	service = rx_NewService(0, SERVICE, "stubs", bed.classes, 1, procedure);
	ck_assert_ptr_nonnull(service);
	rx_SetMaxProcs(service, 2);
	rx_StartServer(0);
	bed.connection = rx_NewConnection(htonl(INADDR_LOOPBACK), bed.port, SERVICE, bed.classes[0],
					  RX_SECIDX_NULL);
}

static void close_bed(void)
{
	rx_DestroyConnection(bed.connection);
	rx_Finalize();
	rxs_Release(bed.classes[0]);
}

static struct rx_call *begin(XDR *xdrs, int opcode)
{
	struct rx_call *call = rx_NewCall(bed.connection);

	xdrrx_create(xdrs, call, XDR_ENCODE);
	ck_assert(xdr_int(xdrs, &opcode));
	return call;
}

START_TEST(numbers)
{
	for (afs_int32 i = -50; i < 50; i++) {
		afs_int32 a = i, b = 1000, sum;
		XDR xdrs;
		struct rx_call *call = begin(&xdrs, ADD);

		ck_assert(xdr_afs_int32(&xdrs, &a) && xdr_afs_int32(&xdrs, &b));
		xdrs.x_op = XDR_DECODE;
		ck_assert(xdr_afs_int32(&xdrs, &sum));
		ck_assert_int_eq(sum, 1000 + i);
		/* the reply has ended */
		ck_assert(!xdr_afs_int32(&xdrs, &sum));
		ck_assert_int_eq(rx_EndCall(call, 0), 0);
	}
}
END_TEST

START_TEST(bytes)
{
	const u_int lengths[] = {0, 1, 3, 4, 5, 1400, 65536, 65537, MOST};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		u_int count = lengths[i], got = 0;
		char *out = malloc(MOST), *in = NULL;
		XDR xdrs;
		struct rx_call *call = begin(&xdrs, REVERSE);

		for (u_int n = 0; n < count; n++)
			out[n] = (char)(n * 7 + n / 256);
		ck_assert(xdr_bytes(&xdrs, &out, &count, MOST));
		xdrs.x_op = XDR_DECODE;
		ck_assert(xdr_bytes(&xdrs, &in, &got, MOST));
		ck_assert_int_eq(rx_EndCall(call, 0), 0);
		ck_assert_uint_eq(got, count);
		for (u_int n = 0; n < count; n++)
			ck_assert_int_eq(in[n], out[count - 1 - n]);
		xdr_free((xdrproc_t)xdr_wrapstring, &in);
		free(out);
	}
	ck_assert_int_eq(bed.freed, sizeof(lengths) / sizeof(lengths[0]));
}
END_TEST

/* Data of no multiple of a word between values, in both directions. */
START_TEST(split)
{
	const u_int lengths[] = {0, 1, 2, 3, 1399, 50001};

	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		afs_uint32 length = lengths[i], mark = 77, sum = 0, want = 0;
		char *name = "a name", *back = NULL, raw[4] = "", *data = malloc(length + 1);
		XDR xdrs;
		struct rx_call *call = begin(&xdrs, STORE);

		for (u_int n = 0; n < length; n++)
			want += (unsigned char)(data[n] = (char)(n * 3));
		ck_assert(xdr_string(&xdrs, &name, 64) && xdr_afs_uint32(&xdrs, &length));
		ck_assert_int_eq(rx_Write(call, data, (int)length), (int)length);
		ck_assert(xdr_afs_uint32(&xdrs, &mark));
		xdrs.x_op = XDR_DECODE;
		ck_assert(xdr_string(&xdrs, &back, 64));
		ck_assert_str_eq(back, name);
		ck_assert_int_eq(rx_Read(call, raw, 3), 3);
		ck_assert_str_eq(raw, "raw");
		ck_assert(xdr_afs_uint32(&xdrs, &sum));
		ck_assert_uint_eq(sum, want);
		ck_assert_int_eq(rx_EndCall(call, 0), 0);
		xdrfree_string(&back);
		free(data);
	}
}
END_TEST

/* A request that ends early, or that announces more than it has: the server's stub frees and fails. */
START_TEST(malformed)
{
	const afs_uint32 announced[] = {1, 99999, 100001, 0xffffffff};
	struct rx_call *call;
	afs_int32 v = 5;
	char *text = "four";
	XDR xdrs;

	for (size_t i = 0; i < sizeof(announced) / sizeof(announced[0]); i++) {
		afs_uint32 count = announced[i];

		call = begin(&xdrs, REVERSE);
		ck_assert(xdr_afs_uint32(&xdrs, &count));
		xdrs.x_op = XDR_DECODE;
		ck_assert(!xdr_afs_int32(&xdrs, &v));
		ck_assert_int_eq(rx_EndCall(call, 0), UNMARSHAL);
	}
	ck_assert_int_eq(bed.freed, sizeof(announced) / sizeof(announced[0]));
	call = begin(&xdrs, ADD);
	ck_assert(xdr_afs_int32(&xdrs, &v));
	ck_assert_int_eq(rx_EndCall(call, 0), UNMARSHAL);
	call = begin(&xdrs, UNREADABLE);
	ck_assert(xdr_string(&xdrs, &text, 10));
	ck_assert_int_eq(rx_EndCall(call, 0), UNMARSHAL);
	ck_assert_int_eq(rx_EndCall(begin(&xdrs, 999), 0), -455);
	ck_assert_int_eq(rx_EndCall(rx_NewCall(bed.connection), 0), -454);
	/* the connection has not suffered */
	ck_assert_int_eq(rx_ConnError(bed.connection), 0);
}
END_TEST

/* What a stream on a call cannot do. */
START_TEST(no_positions)
{
	XDR xdrs;
	struct rx_call *call = begin(&xdrs, ADD);

	ck_assert_uint_eq(xdr_getpos(&xdrs), 0);
	ck_assert(!xdr_setpos(&xdrs, 0));
	ck_assert_ptr_null(xdr_inline(&xdrs, 4));
	ck_assert(!xdr_putbytes(&xdrs, "", 0x80000000));
	ck_assert(!xdr_getbytes(&xdrs, NULL, 0x80000000));
	xdr_destroy(&xdrs);
	ck_assert_int_eq(rx_EndCall(call, 4711), 4711);
}
END_TEST

int main(void)
{
	const TTest *const tests[] = {numbers, bytes, split, malformed, no_positions};
	Suite *suite = suite_create("classic/stubs");
	TCase *tcase = tcase_create("classic/stubs");
	SRunner *runner;
	int failed;

	tcase_add_checked_fixture(tcase, open_bed, close_bed);
	for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
		tcase_add_test(tcase, tests[i]);
	suite_add_tcase(suite, tcase);
	runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
