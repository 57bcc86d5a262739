/* SPDX-License-Identifier: BSD-2-Clause */
/* Messages for results and call codes; portable errno codes (rx-protocol 9.4, 9.5). */

#include <rxwire/error.h>

#include <errno.h>
#include <stddef.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

#define UAE_BASE   49733376
#define RXKAD_BASE 19270400
#define RXGK_BASE  1233242880
#define VL_BASE    363520
#define PT_BASE    267264
#define VOLS_BASE	1492325120
#define UBIK_BASE  5376

#define CODE_VDISKFULL	108
#define CODE_VOVERQUOTA 109

/* Portable errno codes (UAE, rx-protocol 9.4) in the order of their offsets. */
#define UAE_CODES(UAE)                                             \
	UAE(PERM, "operation not permitted")                       \
	UAE(NOENT, "no such file or directory")                    \
	UAE(SRCH, "no such process")                               \
	UAE(INTR, "interrupted")                                   \
	UAE(IO, "input or output error")                           \
	UAE(NXIO, "no such device or address")                     \
	UAE(2BIG, "argument list too long")                        \
	UAE(NOEXEC, "not an executable format")                    \
	UAE(BADF, "bad file descriptor")                           \
	UAE(CHILD, "no child process")                             \
	UAE(AGAIN, "try again later")                              \
	UAE(NOMEM, "out of memory")                                \
	UAE(ACCES, "permission denied")                            \
	UAE(FAULT, "bad memory address")                           \
	UAE(NOTBLK, "not a block device")                          \
	UAE(BUSY, "device or resource busy")                       \
	UAE(EXIST, "file exists")                                  \
	UAE(XDEV, "link to another file system")                   \
	UAE(NODEV, "no such device")                               \
	UAE(NOTDIR, "not a directory")                             \
	UAE(ISDIR, "is a directory")                               \
	UAE(INVAL, "invalid argument")                             \
	UAE(NFILE, "too many open files in the system")            \
	UAE(MFILE, "too many open files")                          \
	UAE(NOTTY, "not a terminal")                               \
	UAE(TXTBSY, "program file is in use")                      \
	UAE(FBIG, "file too large")                                \
	UAE(NOSPC, "no space left on the device")                  \
	UAE(SPIPE, "cannot seek")                                  \
	UAE(ROFS, "read-only file system")                         \
	UAE(MLINK, "too many links")                               \
	UAE(PIPE, "broken pipe")                                   \
	UAE(DOM, "argument outside of the function's domain")      \
	UAE(RANGE, "result out of range")                          \
	UAE(DEADLK, "deadlock avoided")                            \
	UAE(NAMETOOLONG, "name too long")                          \
	UAE(NOLCK, "no locks left")                                \
	UAE(NOSYS, "function not implemented")                     \
	UAE(NOTEMPTY, "directory not empty")                       \
	UAE(LOOP, "too many symbolic links")                       \
	UAE(WOULDBLOCK, "would block")                             \
	UAE(NOMSG, "no message of that type")                      \
	UAE(IDRM, "identifier removed")                            \
	UAE(CHRNG, "channel number out of range")                  \
	UAE(L2NSYNC, "level 2 not synchronised")                   \
	UAE(L3HLT, "level 3 halted")                               \
	UAE(L3RST, "level 3 reset")                                \
	UAE(LNRNG, "link number out of range")                     \
	UAE(UNATCH, "protocol driver not attached")                \
	UAE(NOCSI, "no CSI structure left")                        \
	UAE(L2HLT, "level 2 halted")                               \
	UAE(BADE, "bad exchange")                                  \
	UAE(BADR, "bad request descriptor")                        \
	UAE(XFULL, "exchange full")                                \
	UAE(NOANO, "no anode")                                     \
	UAE(BADRQC, "bad request code")                            \
	UAE(BADSLT, "bad slot")                                    \
	UAE(BFONT, "bad font file")                                \
	UAE(NOSTR, "not a stream")                                 \
	UAE(NODATA, "no data available")                           \
	UAE(TIME, "timer expired")                                 \
	UAE(NOSR, "no stream resources left")                      \
	UAE(NONET, "machine is not on the network")                \
	UAE(NOPKG, "package not installed")                        \
	UAE(REMOTE, "object is remote")                            \
	UAE(NOLINK, "link severed")                                \
	UAE(ADV, "advertise error")                                \
	UAE(SRMNT, "srmount error")                                \
	UAE(COMM, "communication error while sending")             \
	UAE(PROTO, "protocol error")                               \
	UAE(MULTIHOP, "multihop attempted")                        \
	UAE(DOTDOT, "RFS specific error")                          \
	UAE(BADMSG, "bad message")                                 \
	UAE(OVERFLOW, "value too large for its type")              \
	UAE(NOTUNIQ, "name not unique on the network")             \
	UAE(BADFD, "descriptor in a bad state")                    \
	UAE(REMCHG, "remote address changed")                      \
	UAE(LIBACC, "cannot reach a shared library")               \
	UAE(LIBBAD, "damaged shared library")                      \
	UAE(LIBSCN, "damaged .lib section")                        \
	UAE(LIBMAX, "too many shared libraries")                   \
	UAE(LIBEXEC, "a shared library cannot be executed")        \
	UAE(ILSEQ, "invalid byte sequence")                        \
	UAE(RESTART, "interrupted system call is to be restarted") \
	UAE(STRPIPE, "streams pipe error")                         \
	UAE(USERS, "too many users")                               \
	UAE(NOTSOCK, "not a socket")                               \
	UAE(DESTADDRREQ, "destination address needed")             \
	UAE(MSGSIZE, "message too long")                           \
	UAE(PROTOTYPE, "wrong protocol for the socket")            \
	UAE(NOPROTOOPT, "protocol option not available")           \
	UAE(PROTONOSUPPORT, "protocol not supported")              \
	UAE(SOCKTNOSUPPORT, "socket type not supported")           \
	UAE(OPNOTSUPP, "operation not supported")                  \
	UAE(PFNOSUPPORT, "protocol family not supported")          \
	UAE(AFNOSUPPORT, "address family not supported")           \
	UAE(ADDRINUSE, "address in use")                           \
	UAE(ADDRNOTAVAIL, "address not available")                 \
	UAE(NETDOWN, "network is down")                            \
	UAE(NETUNREACH, "network unreachable")                     \
	UAE(NETRESET, "connection dropped by the network")         \
	UAE(CONNABORTED, "connection aborted")                     \
	UAE(CONNRESET, "connection reset by the peer")             \
	UAE(NOBUFS, "no buffer space left")                        \
	UAE(ISCONN, "already connected")                           \
	UAE(NOTCONN, "not connected")                              \
	UAE(SHUTDOWN, "endpoint was shut down")                    \
	UAE(TOOMANYREFS, "too many references")                    \
	UAE(TIMEDOUT, "timed out")                                 \
	UAE(CONNREFUSED, "connection refused")                     \
	UAE(HOSTDOWN, "host is down")                              \
	UAE(HOSTUNREACH, "no route to the host")                   \
	UAE(ALREADY, "already in progress")                        \
	UAE(INPROGRESS, "in progress now")                         \
	UAE(STALE, "stale file handle")                            \
	UAE(UCLEAN, "structure needs cleaning")                    \
	UAE(NOTNAM, "not a named type file")                       \
	UAE(NAVAIL, "no semaphores available")                     \
	UAE(ISNAM, "is a named type file")                         \
	UAE(REMOTEIO, "remote input or output error")              \
	UAE(DQUOT, "quota exceeded")                               \
	UAE(NOMEDIUM, "no medium")                                 \
	UAE(MEDIUMTYPE, "wrong medium type")                       \
	UAE(CANCELED, "cancelled")                                 \
	UAE(NOTRECOVERABLE, "state not recoverable")               \
	UAE(NOTSUP, "not supported")                               \
	UAE(OTHER, "another error, without an errno of its own")   \
	UAE(OWNERDEAD, "owner died")                               \
	UAE(PROCLIM, "too many processes")                         \
	UAE(DISCON, "disconnected")

/*
 * Offsets in the portable table. An errno that this system lacks is defined as -1, which is never
 * an errno.
 */
enum uae_offset {
#define UAE_OFFSET(name, text) UAE_##name,
	UAE_CODES(UAE_OFFSET) UAE_COUNT
};

#ifndef EOTHER
#define EOTHER (-1)
#endif
#ifndef EPROCLIM
#define EPROCLIM (-1)
#endif
#ifndef EDISCON
#define EDISCON (-1)
#endif

static const struct uae {
	int err;
	const char *text;
} uae_table[UAE_COUNT] = {
#define UAE_TEXT(name, text) [UAE_##name] = {E##name, text " (E" #name ")"},
	UAE_CODES(UAE_TEXT)};

struct code_text {
	int32_t code;
	const char *text;
};

/* Texts for codes of the library that the peer sent. */
static const struct code_text sent[] = {
	{ RXW_CALL_DEAD, "the peer heard nothing of this side for too long, or returned -1" },
	{ RXW_CALL_TIMEOUT, "call timed out at the peer" },
	{ RXW_CALL_EOF, "the peer found the end of the stream where it expected data" },
	{ RXW_PROTOCOL_ERROR, "the peer reports a protocol error" },
	{ RXW_USER_ABORT, "aborted by the peer's application" },
	{ RXW_CALL_ADDRINUSE, "the peer ended the call with -7, for a reason of its own" },
	{ RXW_CALL_MSGSIZE, "the peer's packets are too large for the path, or it returned -8" },
	{ RXW_NETWORK_RESET, "the peer ended the call with -101, for a reason of its own" },
};

/* The same, raised by this side. */
static const struct code_text raised[] = {
	{ RXW_CALL_DEAD, "call dead: no answer from the peer" },
	{ RXW_RESTARTING, "this endpoint is stopping" },
};

static const struct code_text single[] = {
	/* Rx */
	{ RXW_CALL_DEAD, "call dead: no answer from the peer, or the peer returned -1" },
	{ RXW_INVALID_OPERATION, "unknown service or security class" },
	{ RXW_CALL_TIMEOUT, "call timed out" },
	{ RXW_CALL_EOF, "end of stream where data was expected" },
	{ RXW_PROTOCOL_ERROR, "protocol error" },
	{ RXW_USER_ABORT, "aborted by the application" },
	{ RXW_CALL_ADDRINUSE, "port in use" },
	{ RXW_CALL_MSGSIZE, "packet too large for the path" },
	{ RXW_RESTARTING, "server is stopping or restarting" },
	{ RXW_NETWORK_RESET, "network address mapping was lost" },
	/* RPC layer */
	{ RXW_RPC_CC_MARSHAL, "client could not encode the arguments" },
	{ RXW_RPC_CC_UNMARSHAL, "client could not decode the results" },
	{ RXW_RPC_SS_MARSHAL, "server could not encode the results" },
	{ RXW_RPC_SS_UNMARSHAL, "server could not decode the arguments" },
	{ RXW_RPC_DECODE, "server could not read the operation code" },
	{ RXW_RPC_OPCODE, "server does not know the operation" },
	{ -456, "server could not free the arguments" },
	{ -457, "client could not free the results" },
	/*
	 * Volumes: they take precedence over errno, whose values 101 to 120 must not be sent
	 * (afs-fileserver 5.2)
	 */
	{ 101, "volume needs salvage (VSALVAGE)" },
	{ 102, "no such vnode (VNOVNODE)" },
	{ 103, "no such volume on this server (VNOVOL)" },
	{ 104, "volume exists already (VVOLEXISTS)" },
	{ 105, "volume is not in service (VNOSERVICE)" },
	{ 106, "volume is off-line (VOFFLINE)" },
	{ 107, "volume is on-line already (VONLINE)" },
	{ 108, "partition is full (VDISKFULL)" },
	{ 109, "volume quota exceeded (VOVERQUOTA)" },
	{ 110, "volume is busy (VBUSY)" },
	{ 111, "volume has moved (VMOVED)" },
	{ 112, "input or output error in the volume (VIO)" },
	{ 113, "volume is being salvaged (VSALVAGING)" },
	{ 120, "volume is restricted (VRESTRICTED)" },
	{ 1234, "callback connection is bad (VICECONNBAD)" },
	{ 1235, "token is dead (VICETOKENDEAD)" },
};

static const char *const rxkad_texts[] = {
	"rxkad: inconsistent state",
	"rxkad: message too short",
	"rxkad: security level refused, the server asks for more protection",
	"rxkad: ticket length out of range",
	"rxkad: wrong nonce",
	"rxkad: not authorised, or the ticket is not valid yet: do the clocks agree?",
	"rxkad: bad key",
	"rxkad: bad ticket; is it for the cell and realm of this server?",
	"rxkad: unknown service key; kinit again, or give the server the key of the ticket",
	"rxkad: ticket expired; get another one with kinit",
	"rxkad: sealed data is inconsistent",
	"rxkad: length field exceeds the packet",
	"rxkad: security level not allowed",
};

static const char *const rxgk_texts[] = {
	"rxgk: inconsistent state",
	"rxgk: message too short",
	"rxgk: bad challenge",
	"rxgk: encryption type not supported",
	"rxgk: security level refused, the server asks for more protection",
	"rxgk: unknown key version; the server has other keys now: get another token",
	"rxgk: token expired; get another one (kinit)",
	"rxgk: not authorised, or the token is not valid yet: do the clocks agree?",
	"rxgk: bad token",
	"rxgk: sealed data is inconsistent",
	"rxgk: length field exceeds the packet",
	"rxgk: quality of protection refused",
};

static const char *const vl_texts[] = {
	"VL: volume id exists",
	"VL: input or output error",
	"VL: volume name exists",
	"VL: entry could not be created",
	"VL: no such entry",
	"VL: database is empty",
	"VL: entry was deleted",
	"VL: bad volume name",
	"VL: bad index",
	"VL: bad volume type",
	"VL: bad server number",
	"VL: bad partition number",
	"VL: no room for another site",
	"VL: no such site",
	"VL: site exists already",
	"VL: read-write volume not found",
	"VL: bad reference count",
	"VL: size exceeded",
	"VL: bad entry",
	"VL: bad step of the volume id",
	"VL: volume id is in the table already",
	"VL: entry is locked",
	"VL: bad volume operation",
	"VL: bad lock release",
	"VL: release is interrupted",
	"VL: bad server flag",
	"VL: permission denied",
	"VL: out of memory",
	"VL: bad version",
	"VL: index out of range",
	"VL: address belongs to several servers",
	"VL: bad mask",
	"VL: database is damaged",
};

static const char *const pt_texts[] = {
	"PT: name exists",
	"PT: id exists",
	"PT: ids are used up",
	"PT: database failure",
	"PT: no such user or group",
	"PT: permission denied",
	"PT: not a group",
	"PT: not a user",
	"PT: bad name",
	"PT: bad argument",
	"PT: no more entries",
	"PT: database is damaged",
	"PT: group is empty",
	"PT: inconsistent database",
	"PT: bad database address",
	"PT: too many entries",
	"PT: out of memory",
	"PT: internal error",
	"PT: name too long",
};

static const char *const vols_texts[] = {
	"volume service: general error",
	"volume service: operation is not offered",
	"volume service: the dump cannot be read",
	"volume service: the dump cannot be made",
	"volume service: the volume cannot be attached",
	"volume service: no such partition",
	"volume service: the volume cannot be detached",
	"volume service: permission denied",
	"volume service: location database failure",
	"volume service: bad volume name",
	"volume service: the volume has moved",
	"volume service: bad operation",
	"volume service: the release failed",
	"volume service: the volume is in use by another transaction",
	"volume service: out of memory",
	"volume service: no such volume",
	"volume service: several read-write volumes",
	"volume service: the operation failed",
};

static const char *const ubik_texts[] = {
	"ubik: no quorum",
	"ubik: not the sync site",
};

static const struct family {
	int32_t base;
	size_t count;
	const char *const *texts;
} families[] = {
	{RXKAD_BASE, COUNT(rxkad_texts), rxkad_texts}, {RXGK_BASE, COUNT(rxgk_texts), rxgk_texts},
	{VL_BASE, COUNT(vl_texts), vl_texts},	       {PT_BASE, COUNT(pt_texts), pt_texts},
	{VOLS_BASE, COUNT(vols_texts), vols_texts},    {UBIK_BASE, COUNT(ubik_texts), ubik_texts},
};

const char *rxw_strerror(int result)
{
	static const char *const texts[] = {
		[0] = "success",
		[RXW_EINVAL] = "invalid argument",
		[RXW_ENOMEM] = "out of memory, or a memory limit is reached",
		[RXW_EADDRINUSE] = "port is in use by another program",
		[RXW_ESYS] = "system call failed",
		[RXW_ECALL] = "the call has ended with an error",
		[RXW_EAGAIN] = "cannot go on now without waiting",
		[RXW_EEOF] = "the stream ended early",
		[RXW_ESTATE] = "not allowed in this state",
		[RXW_EDEADLK] = "a callback or handler would have to wait here",
		[RXW_ESTOPPED] = "stopping",
		[RXW_ETIMEDOUT] = "timed out",
		[RXW_ENOTSUP] = "not supported here",
		[RXW_ELIMIT] = "a limit on the number of objects is reached",
		[RXW_ENAME] = "no option of that name",
		[RXW_EVALUE] = "value is malformed or out of range",
		[RXW_EDECODE] = "received bytes are no valid encoding",
		[RXW_ENOKEY] = "no such key, ticket or token",
	};
	/* Unsigned, since INT_MIN cannot be negated. */
	unsigned n = result < 0 ? 0u - (unsigned)result : (unsigned)result;

	return n < COUNT(texts) ? texts[n] : "unknown result";
}

static const char *find_error_text(const struct code_text *texts, size_t count, int32_t code)
{
	for (size_t i = 0; i < count; i++)
		if (texts[i].code == code)
			return texts[i].text;
	return NULL;
}

const char *rxw_code_text_from(rxw_code code, enum rxw_origin origin)
{
	const char *text = NULL;

	if (origin == RXW_ORIGIN_PEER)
		text = find_error_text(sent, COUNT(sent), code);
	else if (origin == RXW_ORIGIN_LOCAL)
		text = find_error_text(raised, COUNT(raised), code);
	return text ? text : rxw_code_text(code);
}

const char *rxw_code_text(rxw_code code)
{
	const char *text = find_error_text(single, COUNT(single), code);

	if (code == 0)
		return "success";
	if (text)
		return text;
	for (size_t i = 0; i < COUNT(families); i++)
		if (code >= families[i].base &&
		    code - families[i].base < (int32_t)families[i].count)
			return families[i].texts[code - families[i].base];
	if (code >= UAE_BASE && code - UAE_BASE < UAE_COUNT)
		return uae_table[code - UAE_BASE].text;
	if (code > 0)
		for (size_t i = 0; i < UAE_COUNT; i++)
			if (uae_table[i].err == code)
				return uae_table[i].text;
	return "unknown code";
}

int32_t rxw_code_from_errno(int err)
{
	if (err <= 0)
		return err;
	/* Search from the front: EAGAIN and EOPNOTSUPP precede their duplicates. */
	for (int32_t i = 0; i < UAE_COUNT; i++)
		if (uae_table[i].err == err)
			return UAE_BASE + i;
	return err;
}

int rxw_code_to_errno(int32_t code)
{
	/* Codes that servers send instead of ENOSPC and EDQUOT (rx-protocol 9.4). */
	if (code == CODE_VDISKFULL)
		return ENOSPC;
	if (code == CODE_VOVERQUOTA)
		return EDQUOT;
	if (code < UAE_BASE || code - UAE_BASE >= UAE_COUNT || uae_table[code - UAE_BASE].err < 0)
		return code;
	return uae_table[code - UAE_BASE].err;
}
