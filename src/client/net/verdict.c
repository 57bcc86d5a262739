/* SPDX-License-Identifier: BSD-2-Clause */
/* Codes of failed calls: what to do, and what the user sees in the end (K-113, K-135). */
#include <errno.h>

#include <rxwire/rxgk.h>
#include <rxwire/rxkad.h>

#include "client/net/tries.h"

#define ERRNO_END 134 /* above the errno values that servers translate */

struct rule {
	rxw_code first, last;
	enum cl_verdict verdict;
	int number;
};

/* Codes of a server. */
static const struct rule of_server[] = {
	{RXW_CALL_DEAD, RXW_CALL_DEAD, CL_VERDICT_ELSEWHERE, ETIMEDOUT},
	{RXW_CALL_TIMEOUT, RXW_CALL_TIMEOUT, CL_VERDICT_ELSEWHERE, ETIMEDOUT},
	{AFS_VNOSERVICE, AFS_VNOSERVICE, CL_VERDICT_ELSEWHERE, ETIMEDOUT},
	{AFS_VBUSY, AFS_VBUSY, CL_VERDICT_BUSY, EBUSY},
	{RXW_RESTARTING, RXW_RESTARTING, CL_VERDICT_BUSY, EBUSY},
	{AFS_VOFFLINE, AFS_VOFFLINE, CL_VERDICT_OFFLINE, EIO},
	{AFS_VSALVAGE, AFS_VSALVAGE, CL_VERDICT_OFFLINE, EIO},
	{AFS_VSALVAGING, AFS_VSALVAGING, CL_VERDICT_OFFLINE, EIO},
	{AFS_VNOVOL, AFS_VNOVOL, CL_VERDICT_GONE, ENODEV},
	{AFS_VMOVED, AFS_VMOVED, CL_VERDICT_MOVED, EIO},
	{AFS_VNOVNODE, AFS_VNOVNODE, CL_VERDICT_FINAL, ESTALE},
	{AFS_VIO, AFS_VIO, CL_VERDICT_DAMAGED, EIO},
	{RXW_RPC_OPCODE, RXW_RPC_OPCODE, CL_VERDICT_MISSING, ENOSYS},
	{RXW_RXKAD_EXPIRED, RXW_RXKAD_EXPIRED, CL_VERDICT_EXPIRED, EKEYEXPIRED},
	{RXW_RXGK_EXPIRED, RXW_RXGK_EXPIRED, CL_VERDICT_EXPIRED, EKEYEXPIRED},
	{1234, 1235, CL_VERDICT_EXPIRED, EKEYEXPIRED},
	{RXW_RXKAD_INCONSISTENCY, RXW_RXKAD_ILLEGALLEVEL, CL_VERDICT_EXPIRED, EACCES},
	{1233242880, 1233242880 + 255, CL_VERDICT_EXPIRED, EACCES},
	{RXW_CALL_MSGSIZE, RXW_CALL_MSGSIZE, CL_VERDICT_ELSEWHERE, EIO},
	{RXW_RPC_DECODE, RXW_RPC_CC_MARSHAL, CL_VERDICT_GARBLED, EIO},
	{RXW_USER_ABORT, RXW_INVALID_OPERATION, CL_VERDICT_GARBLED, EIO},
};

/* Codes that this side found. */
static const struct rule of_this_side[] = {
	{RXW_CALL_DEAD, RXW_CALL_DEAD, CL_VERDICT_SILENT, ETIMEDOUT},
	{RXW_CALL_TIMEOUT, RXW_CALL_TIMEOUT, CL_VERDICT_ELSEWHERE, ETIMEDOUT},
	{RXW_NETWORK_RESET, RXW_NETWORK_RESET, CL_VERDICT_ELSEWHERE, ETIMEDOUT},
	{RXW_CALL_MSGSIZE, RXW_CALL_MSGSIZE, CL_VERDICT_ELSEWHERE, EIO},
	{RXW_RXKAD_EXPIRED, RXW_RXKAD_EXPIRED, CL_VERDICT_EXPIRED, EKEYEXPIRED},
	{RXW_RXGK_EXPIRED, RXW_RXGK_EXPIRED, CL_VERDICT_EXPIRED, EKEYEXPIRED},
	{RXW_RXKAD_INCONSISTENCY, RXW_RXKAD_ILLEGALLEVEL, CL_VERDICT_EXPIRED, EACCES},
	{1233242880, 1233242880 + 255, CL_VERDICT_EXPIRED, EACCES},
};

static enum cl_verdict find_rule(const struct rule *rules, size_t count, rxw_code code, int *number)
{
	for (size_t i = 0; i < count; i++)
		if (code >= rules[i].first && code <= rules[i].last) {
			*number = rules[i].number;
			return rules[i].verdict;
		}
	return CL_VERDICT_FINAL;
}

enum cl_verdict cl_verdict_of(rxw_code code, enum rxw_origin origin, int *number)
{
	enum cl_verdict verdict;

	*number = 0;
	if (origin != RXW_ORIGIN_PEER) {
		verdict = find_rule(of_this_side, sizeof(of_this_side) / sizeof(of_this_side[0]),
				    code, number);
		if (*number)
			return verdict;
		*number = EIO;
		return CL_VERDICT_GARBLED;
	}
	verdict = find_rule(of_server, sizeof(of_server) / sizeof(of_server[0]), code, number);
	if (*number)
		return verdict;
	*number = rxw_code_to_errno(code);
	/* Numbers from 100 on that were not translated are codes of volumes. */
	if (*number <= 0 || *number >= ERRNO_END || (*number == code && code >= 100))
		*number = EIO;
	return *number == EIO ? CL_VERDICT_DAMAGED : CL_VERDICT_FINAL;
}

int cl_net_result_of_code(int32_t code)
{
	int number = 0;

	if (code)
		cl_verdict_of(code, RXW_ORIGIN_PEER, &number);
	return -number;
}

bool cl_verdict_unknown(rxw_code code, enum rxw_origin origin)
{
	if (code == 0)
		return false;
	if (origin != RXW_ORIGIN_PEER)
		return true;
	/*
	 * A server that starts or stops also refuses the rest of calls that the one before it has
	 * served.
	 */
	return code < 0 && code >= RXW_RESTARTING;
}
