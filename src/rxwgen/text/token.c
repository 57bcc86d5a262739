/* SPDX-License-Identifier: BSD-2-Clause */
/* The name table, keywords of the language, tokens as text, and words with other meanings in C. */
#include "rxwgen/text/token.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- tokens ------------------------------------------------------------------------------------ */

static const char *const keywords[TOKEN_KINDS - TOKEN_KEYWORDS] = {
#define WORD(kind, text) [kind - TOKEN_KEYWORDS] = text
	WORD(TOKEN_CONST, "const"),
	WORD(TOKEN_UNION, "union"),
	WORD(TOKEN_SWITCH, "switch"),
	WORD(TOKEN_CASE, "case"),
	WORD(TOKEN_DEFAULT, "default"),
	WORD(TOKEN_STRUCT, "struct"),
	WORD(TOKEN_TYPEDEF, "typedef"),
	WORD(TOKEN_ENUM, "enum"),
	WORD(TOKEN_OPAQUE, "opaque"),
	WORD(TOKEN_BOOL, "bool"),
	WORD(TOKEN_VOID, "void"),
	WORD(TOKEN_CHAR, "char"),
	WORD(TOKEN_INT, "int"),
	WORD(TOKEN_UNSIGNED, "unsigned"),
	WORD(TOKEN_SHORT, "short"),
	WORD(TOKEN_AFS_INT32, "afs_int32"),
	WORD(TOKEN_FLOAT, "float"),
	WORD(TOKEN_DOUBLE, "double"),
	WORD(TOKEN_STRING_TYPE, "string"),
	WORD(TOKEN_PACKAGE, "package"),
	WORD(TOKEN_PREFIX, "prefix"),
	WORD(TOKEN_STATINDEX, "statindex"),
	WORD(TOKEN_SPECIAL, "special"),
	WORD(TOKEN_STARTINGOPCODE, "startingopcode"),
	WORD(TOKEN_CUSTOMIZED, "customized"),
	WORD(TOKEN_PROC, "proc"),
	WORD(TOKEN_SPLITPREFIX, "splitprefix"),
	WORD(TOKEN_SPLIT, "split"),
	WORD(TOKEN_MULTI, "multi"),
	WORD(TOKEN_IN, "IN"),
	WORD(TOKEN_OUT, "OUT"),
	WORD(TOKEN_INOUT, "INOUT"),
	WORD(TOKEN_AFSUUID, "afsUUID"),
};

static const char *token_keyword(int kind)
{
	assert(kind >= TOKEN_KEYWORDS && kind < TOKEN_KINDS);
	return keywords[kind - TOKEN_KEYWORDS];
}

const char *token_kind_text(int kind, char *room, size_t size)
{
	switch (kind) {
	case TOKEN_END:
		return "end of file";
	case TOKEN_NAME:
		return "a name";
	case TOKEN_NUMBER:
		return "a number";
	case TOKEN_STRING:
		return "a string";
	case TOKEN_SHIFT_LEFT:
		return "'<<'";
	case TOKEN_SHIFT_RIGHT:
		return "'>>'";
	default:
		if (kind >= TOKEN_KEYWORDS)
			snprintf(room, size, "'%s'", token_keyword(kind));
		else
			snprintf(room, size, "'%c'", kind);
		return room;
	}
}

const char *token_text(const struct token *token, char *room, size_t size)
{
	switch (token->kind) {
	case TOKEN_NAME:
	case TOKEN_NUMBER:
		snprintf(room, size, "'%s'", token->text);
		return room;
	case TOKEN_STRING:
		snprintf(room, size, "\"%s\"", token->text);
		return room;
	default:
		return token_kind_text(token->kind, room, size);
	}
}

/* -- the name table ---------------------------------------------------------------------------- */

void names_init(struct names *names, struct arena *arena)
{
	names->arena = arena;
	names->count = 0;
	names->slot_count = 1024;
	names->slots = arena_alloc(arena, names->slot_count * sizeof(struct name *));
	for (int kind = TOKEN_KEYWORDS; kind < TOKEN_KINDS; kind++) {
		const char *text = token_keyword(kind);

		names_get(names, text, strlen(text))->keyword = kind;
	}
}

/* FNV-1a. */
static uint32_t hash_name_text(const char *text, size_t length)
{
	uint32_t hash = 2166136261u;

	for (size_t i = 0; i < length; i++)
		hash = (hash ^ (unsigned char)text[i]) * 16777619u;
	return hash;
}

static void grow_name_slots(struct names *names)
{
	size_t count = names->slot_count * 4;
	struct name **slots = arena_alloc(names->arena, count * sizeof(struct name *)), *name;

	for (size_t i = 0; i < names->slot_count; i++)
		while ((name = names->slots[i])) {
			names->slots[i] = name->next;
			name->next = slots[name->hash % count];
			slots[name->hash % count] = name;
		}
	names->slots = slots;
	names->slot_count = count;
}

struct name *names_get(struct names *names, const char *text, size_t length)
{
	uint32_t hash = hash_name_text(text, length);
	struct name *name;

	for (name = names->slots[hash % names->slot_count]; name; name = name->next)
		if (name->hash == hash && name->length == length &&
		    !memcmp(name->text, text, length))
			return name;
	if (names->count++ > names->slot_count)
		grow_name_slots(names);
	name = arena_alloc(names->arena, sizeof(*name) + length + 1);
	name->hash = hash;
	name->length = (uint32_t)length;
	memcpy(name->text, text, length);
	name->next = names->slots[hash % names->slot_count];
	names->slots[hash % names->slot_count] = name;
	return name;
}

/* -- reserved words: all tables are sorted ------------------------------------------------------ */

#define COUNT(table)	  (sizeof(table) / sizeof((table)[0]))
#define FIND(table, name) bsearch(name, table, COUNT(table), sizeof((table)[0]), compare_words)

static int compare_words(const void *key, const void *word)
{
	return strcmp(key, *(const char *const *)word);
}

bool name_is_c_word(const char *text)
{
	/* Keywords of the interface language are excluded: they are no names. */
	static const char *const words[] = {
		"_Alignas",	 "_Alignof",  "_Atomic",
		"_Bool",	 "_Complex",  "_Generic",
		"_Imaginary",	 "_Noreturn", "_Static_assert",
		"_Thread_local", "asm",	      "auto",
		"break",	 "continue",  "do",
		"else",		 "extern",    "false",
		"for",		 "goto",      "if",
		"inline",	 "int16_t",   "int32_t",
		"int64_t",	 "int8_t",    "register",
		"restrict",	 "return",    "signed",
		"sizeof",	 "static",    "true",
		"typeof",	 "uint16_t",  "uint32_t",
		"uint64_t",	 "uint8_t",   "volatile",
		"while",
	};

	return FIND(words, text);
}

bool name_is_generated(const char *text)
{
	static const char *const words[] = {
		"base",	      "call",	    "code",	 "context", "entries", "from",
		"functions",  "handlers",   "interface", "len",	    "name",    "service",
		"stat_index", "swap_errno", "to",	 "u",	    "xdr",
	};

	return FIND(words, text);
}

bool name_is_local(const char *text)
{
	static const char *const words[] = {
		"at", "count", "i", "next", "opcode", "p", "room", "there", "v", "val", "x",
	};

	return FIND(words, text);
}

/* Keywords of C++ and of C23. */
static const char *const c_keywords[] = {
	"alignas",	 "alignof",	  "and",	  "and_eq",    "bitand",
	"bitor",	 "catch",	  "char16_t",	  "char32_t",  "char8_t",
	"class",	 "co_await",	  "co_return",	  "co_yield",  "compl",
	"concept",	 "const_cast",	  "consteval",	  "constexpr", "constinit",
	"decltype",	 "delete",	  "dynamic_cast", "explicit",  "export",
	"friend",	 "mutable",	  "namespace",	  "new",       "noexcept",
	"not",		 "not_eq",	  "nullptr",	  "operator",  "or",
	"or_eq",	 "private",	  "protected",	  "public",    "reinterpret_cast",
	"requires",	 "static_assert", "static_cast",  "template",  "this",
	"thread_local",	 "throw",	  "try",	  "typeid",    "typename",
	"typeof_unqual", "using",	  "virtual",	  "wchar_t",   "xor",
	"xor_eq",
};

/* Macros of <errno.h>, <limits.h>, <stdint.h>, <stdio.h>, <stdlib.h> and <sys/socket.h>. */
/* clang-format off */
static const char *const macros[] = {
	"AF_ALG", "AF_APPLETALK", "AF_ASH", "AF_ATMPVC", "AF_ATMSVC", "AF_AX25", "AF_BLUETOOTH",
	"AF_BRIDGE", "AF_CAIF", "AF_CAN", "AF_DECnet", "AF_ECONET", "AF_FILE", "AF_IB",
	"AF_IEEE802154", "AF_INET", "AF_INET6", "AF_IPX", "AF_IRDA", "AF_ISDN", "AF_IUCV",
	"AF_KCM", "AF_KEY", "AF_LLC", "AF_LOCAL", "AF_MAX", "AF_MCTP", "AF_MPLS", "AF_NETBEUI",
	"AF_NETLINK", "AF_NETROM", "AF_NFC", "AF_PACKET", "AF_PHONET", "AF_PPPOX", "AF_QIPCRTR",
	"AF_RDS", "AF_ROSE", "AF_ROUTE", "AF_RXRPC", "AF_SECURITY", "AF_SMC", "AF_SNA",
	"AF_TIPC", "AF_UNIX", "AF_UNSPEC", "AF_VSOCK", "AF_WANPIPE", "AF_X25", "AF_XDP",
	"AIO_PRIO_DELTA_MAX", "BC_BASE_MAX", "BC_DIM_MAX", "BC_SCALE_MAX", "BC_STRING_MAX",
	"BIG_ENDIAN", "BOOL_MAX", "BOOL_WIDTH", "BUFSIZ", "BYTE_ORDER", "CHARCLASS_NAME_MAX",
	"CHAR_BIT", "CHAR_MAX", "CHAR_MIN", "CHAR_WIDTH", "CMSG_ALIGN", "CMSG_DATA",
	"CMSG_FIRSTHDR", "CMSG_LEN", "CMSG_NXTHDR", "CMSG_SPACE", "COLL_WEIGHTS_MAX",
	"DELAYTIMER_MAX", "E2BIG", "EACCES", "EADDRINUSE", "EADDRNOTAVAIL", "EADV",
	"EAFNOSUPPORT", "EAGAIN", "EALREADY", "EBADE", "EBADF", "EBADFD", "EBADMSG", "EBADR",
	"EBADRQC", "EBADSLT", "EBFONT", "EBUSY", "ECANCELED", "ECHILD", "ECHRNG", "ECOMM",
	"ECONNABORTED", "ECONNREFUSED", "ECONNRESET", "EDEADLK", "EDEADLOCK", "EDESTADDRREQ",
	"EDOM", "EDOTDOT", "EDQUOT", "EEXIST", "EFAULT", "EFBIG", "EHOSTDOWN", "EHOSTUNREACH",
	"EHWPOISON", "EIDRM", "EILSEQ", "EINPROGRESS", "EINTR", "EINVAL", "EIO", "EISCONN",
	"EISDIR", "EISNAM", "EKEYEXPIRED", "EKEYREJECTED", "EKEYREVOKED", "EL2HLT", "EL2NSYNC",
	"EL3HLT", "EL3RST", "ELIBACC", "ELIBBAD", "ELIBEXEC", "ELIBMAX", "ELIBSCN", "ELNRNG",
	"ELOOP", "EMEDIUMTYPE", "EMFILE", "EMLINK", "EMSGSIZE", "EMULTIHOP", "ENAMETOOLONG",
	"ENAVAIL", "ENETDOWN", "ENETRESET", "ENETUNREACH", "ENFILE", "ENOANO", "ENOBUFS",
	"ENOCSI", "ENODATA", "ENODEV", "ENOENT", "ENOEXEC", "ENOKEY", "ENOLCK", "ENOLINK",
	"ENOMEDIUM", "ENOMEM", "ENOMSG", "ENONET", "ENOPKG", "ENOPROTOOPT", "ENOSPC", "ENOSR",
	"ENOSTR", "ENOSYS", "ENOTBLK", "ENOTCONN", "ENOTDIR", "ENOTEMPTY", "ENOTNAM",
	"ENOTRECOVERABLE", "ENOTSOCK", "ENOTSUP", "ENOTTY", "ENOTUNIQ", "ENXIO", "EOF",
	"EOPNOTSUPP", "EOVERFLOW", "EOWNERDEAD", "EPERM", "EPFNOSUPPORT", "EPIPE", "EPROTO",
	"EPROTONOSUPPORT", "EPROTOTYPE", "ERANGE", "EREMCHG", "EREMOTE", "EREMOTEIO", "ERESTART",
	"ERFKILL", "EROFS", "ESHUTDOWN", "ESOCKTNOSUPPORT", "ESPIPE", "ESRCH", "ESRMNT",
	"ESTALE", "ESTRPIPE", "ETIME", "ETIMEDOUT", "ETOOMANYREFS", "ETXTBSY", "EUCLEAN",
	"EUNATCH", "EUSERS", "EWOULDBLOCK", "EXDEV", "EXFULL", "EXIT_FAILURE", "EXIT_SUCCESS",
	"EXPR_NEST_MAX", "FD_CLR", "FD_ISSET", "FD_SET", "FD_SETSIZE", "FD_ZERO", "FILENAME_MAX",
	"FIOGETOWN", "FIOSETOWN", "FOPEN_MAX", "HOST_NAME_MAX", "INT16_C", "INT16_MAX",
	"INT16_MIN", "INT16_WIDTH", "INT32_C", "INT32_MAX", "INT32_MIN", "INT32_WIDTH",
	"INT64_C", "INT64_MAX", "INT64_MIN", "INT64_WIDTH", "INT8_C", "INT8_MAX", "INT8_MIN",
	"INT8_WIDTH", "INTMAX_C", "INTMAX_MAX", "INTMAX_MIN", "INTMAX_WIDTH", "INTPTR_MAX",
	"INTPTR_MIN", "INTPTR_WIDTH", "INT_FAST16_MAX", "INT_FAST16_MIN", "INT_FAST16_WIDTH",
	"INT_FAST32_MAX", "INT_FAST32_MIN", "INT_FAST32_WIDTH", "INT_FAST64_MAX",
	"INT_FAST64_MIN", "INT_FAST64_WIDTH", "INT_FAST8_MAX", "INT_FAST8_MIN",
	"INT_FAST8_WIDTH", "INT_LEAST16_MAX", "INT_LEAST16_MIN", "INT_LEAST16_WIDTH",
	"INT_LEAST32_MAX", "INT_LEAST32_MIN", "INT_LEAST32_WIDTH", "INT_LEAST64_MAX",
	"INT_LEAST64_MIN", "INT_LEAST64_WIDTH", "INT_LEAST8_MAX", "INT_LEAST8_MIN",
	"INT_LEAST8_WIDTH", "INT_MAX", "INT_MIN", "INT_WIDTH", "IOV_MAX", "LINE_MAX",
	"LITTLE_ENDIAN", "LLONG_MAX", "LLONG_MIN", "LLONG_WIDTH", "LOGIN_NAME_MAX", "LONG_BIT",
	"LONG_LONG_MAX", "LONG_LONG_MIN", "LONG_MAX", "LONG_MIN", "LONG_WIDTH", "L_ctermid",
	"L_cuserid", "L_tmpnam", "MAX_CANON", "MAX_INPUT", "MB_CUR_MAX", "MB_LEN_MAX",
	"MQ_PRIO_MAX", "MSG_BATCH", "MSG_CMSG_CLOEXEC", "MSG_CONFIRM", "MSG_CTRUNC",
	"MSG_DONTROUTE", "MSG_DONTWAIT", "MSG_EOR", "MSG_ERRQUEUE", "MSG_FASTOPEN", "MSG_FIN",
	"MSG_MORE", "MSG_NOSIGNAL", "MSG_OOB", "MSG_PEEK", "MSG_PROXY", "MSG_RST", "MSG_SYN",
	"MSG_TRUNC", "MSG_TRYHARD", "MSG_WAITALL", "MSG_WAITFORONE", "MSG_ZEROCOPY", "NAME_MAX",
	"NFDBITS", "NGROUPS_MAX", "NL_ARGMAX", "NL_LANGMAX", "NL_MSGMAX", "NL_NMAX", "NL_SETMAX",
	"NL_TEXTMAX", "NULL", "NZERO", "PATH_MAX", "PDP_ENDIAN", "PF_ALG", "PF_APPLETALK",
	"PF_ASH", "PF_ATMPVC", "PF_ATMSVC", "PF_AX25", "PF_BLUETOOTH", "PF_BRIDGE", "PF_CAIF",
	"PF_CAN", "PF_DECnet", "PF_ECONET", "PF_FILE", "PF_IB", "PF_IEEE802154", "PF_INET",
	"PF_INET6", "PF_IPX", "PF_IRDA", "PF_ISDN", "PF_IUCV", "PF_KCM", "PF_KEY", "PF_LLC",
	"PF_LOCAL", "PF_MAX", "PF_MCTP", "PF_MPLS", "PF_NETBEUI", "PF_NETLINK", "PF_NETROM",
	"PF_NFC", "PF_PACKET", "PF_PHONET", "PF_PPPOX", "PF_QIPCRTR", "PF_RDS", "PF_ROSE",
	"PF_ROUTE", "PF_RXRPC", "PF_SECURITY", "PF_SMC", "PF_SNA", "PF_TIPC", "PF_UNIX",
	"PF_UNSPEC", "PF_VSOCK", "PF_WANPIPE", "PF_X25", "PF_XDP", "PIPE_BUF",
	"PTHREAD_DESTRUCTOR_ITERATIONS", "PTHREAD_KEYS_MAX", "PTHREAD_STACK_MIN", "PTRDIFF_MAX",
	"PTRDIFF_MIN", "PTRDIFF_WIDTH", "P_tmpdir", "RAND_MAX", "RENAME_EXCHANGE",
	"RENAME_NOREPLACE", "RENAME_WHITEOUT", "RE_DUP_MAX", "RTSIG_MAX", "RWF_APPEND",
	"RWF_DSYNC", "RWF_HIPRI", "RWF_NOAPPEND", "RWF_NOWAIT", "RWF_SYNC", "SCHAR_MAX",
	"SCHAR_MIN", "SCHAR_WIDTH", "SCM_CREDENTIALS", "SCM_RIGHTS", "SCM_TIMESTAMP",
	"SCM_TIMESTAMPING", "SCM_TIMESTAMPING_OPT_STATS", "SCM_TIMESTAMPING_PKTINFO",
	"SCM_TIMESTAMPNS", "SCM_TXTIME", "SCM_WIFI_STATUS", "SEEK_CUR", "SEEK_DATA", "SEEK_END",
	"SEEK_HOLE", "SEEK_SET", "SEM_VALUE_MAX", "SHRT_MAX", "SHRT_MIN", "SHRT_WIDTH",
	"SHUT_RD", "SHUT_RDWR", "SHUT_WR", "SIG_ATOMIC_MAX", "SIG_ATOMIC_MIN",
	"SIG_ATOMIC_WIDTH", "SIOCATMARK", "SIOCGPGRP", "SIOCGSTAMPNS_OLD", "SIOCGSTAMP_OLD",
	"SIOCSPGRP", "SIZE_MAX", "SIZE_WIDTH", "SOCK_CLOEXEC", "SOCK_DCCP", "SOCK_DGRAM",
	"SOCK_NONBLOCK", "SOCK_PACKET", "SOCK_RAW", "SOCK_RDM", "SOCK_SEQPACKET", "SOCK_STREAM",
	"SOL_AAL", "SOL_ALG", "SOL_ATM", "SOL_BLUETOOTH", "SOL_CAIF", "SOL_DCCP", "SOL_DECNET",
	"SOL_IRDA", "SOL_IUCV", "SOL_KCM", "SOL_LLC", "SOL_MCTP", "SOL_MPTCP", "SOL_NETBEUI",
	"SOL_NETLINK", "SOL_NFC", "SOL_PACKET", "SOL_PNPIPE", "SOL_PPPOL2TP", "SOL_RAW",
	"SOL_RDS", "SOL_RXRPC", "SOL_SMC", "SOL_SOCKET", "SOL_TIPC", "SOL_TLS", "SOL_X25",
	"SOL_XDP", "SOMAXCONN", "SO_ACCEPTCONN", "SO_ATTACH_BPF", "SO_ATTACH_FILTER",
	"SO_ATTACH_REUSEPORT_CBPF", "SO_ATTACH_REUSEPORT_EBPF", "SO_BINDTODEVICE",
	"SO_BINDTOIFINDEX", "SO_BPF_EXTENSIONS", "SO_BROADCAST", "SO_BSDCOMPAT", "SO_BUF_LOCK",
	"SO_BUSY_POLL", "SO_BUSY_POLL_BUDGET", "SO_CNX_ADVICE", "SO_COOKIE", "SO_DEBUG",
	"SO_DETACH_BPF", "SO_DETACH_FILTER", "SO_DETACH_REUSEPORT_BPF", "SO_DOMAIN",
	"SO_DONTROUTE", "SO_ERROR", "SO_GET_FILTER", "SO_INCOMING_CPU", "SO_INCOMING_NAPI_ID",
	"SO_KEEPALIVE", "SO_LINGER", "SO_LOCK_FILTER", "SO_MARK", "SO_MAX_PACING_RATE",
	"SO_MEMINFO", "SO_NETNS_COOKIE", "SO_NOFCS", "SO_NO_CHECK", "SO_OOBINLINE",
	"SO_PASSCRED", "SO_PASSSEC", "SO_PEEK_OFF", "SO_PEERCRED", "SO_PEERGROUPS",
	"SO_PEERNAME", "SO_PEERSEC", "SO_PREFER_BUSY_POLL", "SO_PRIORITY", "SO_PROTOCOL",
	"SO_RCVBUF", "SO_RCVBUFFORCE", "SO_RCVLOWAT", "SO_RCVMARK", "SO_RCVTIMEO",
	"SO_RCVTIMEO_NEW", "SO_RCVTIMEO_OLD", "SO_RESERVE_MEM", "SO_REUSEADDR", "SO_REUSEPORT",
	"SO_RXQ_OVFL", "SO_SECURITY_AUTHENTICATION", "SO_SECURITY_ENCRYPTION_NETWORK",
	"SO_SECURITY_ENCRYPTION_TRANSPORT", "SO_SELECT_ERR_QUEUE", "SO_SNDBUF", "SO_SNDBUFFORCE",
	"SO_SNDLOWAT", "SO_SNDTIMEO", "SO_SNDTIMEO_NEW", "SO_SNDTIMEO_OLD", "SO_TIMESTAMP",
	"SO_TIMESTAMPING", "SO_TIMESTAMPING_NEW", "SO_TIMESTAMPING_OLD", "SO_TIMESTAMPNS",
	"SO_TIMESTAMPNS_NEW", "SO_TIMESTAMPNS_OLD", "SO_TIMESTAMP_NEW", "SO_TIMESTAMP_OLD",
	"SO_TXREHASH", "SO_TXTIME", "SO_TYPE", "SO_WIFI_STATUS", "SO_ZEROCOPY", "SSIZE_MAX",
	"TMP_MAX", "TTY_NAME_MAX", "UCHAR_MAX", "UCHAR_WIDTH", "UINT16_C", "UINT16_MAX",
	"UINT16_WIDTH", "UINT32_C", "UINT32_MAX", "UINT32_WIDTH", "UINT64_C", "UINT64_MAX",
	"UINT64_WIDTH", "UINT8_C", "UINT8_MAX", "UINT8_WIDTH", "UINTMAX_C", "UINTMAX_MAX",
	"UINTMAX_WIDTH", "UINTPTR_MAX", "UINTPTR_WIDTH", "UINT_FAST16_MAX", "UINT_FAST16_WIDTH",
	"UINT_FAST32_MAX", "UINT_FAST32_WIDTH", "UINT_FAST64_MAX", "UINT_FAST64_WIDTH",
	"UINT_FAST8_MAX", "UINT_FAST8_WIDTH", "UINT_LEAST16_MAX", "UINT_LEAST16_WIDTH",
	"UINT_LEAST32_MAX", "UINT_LEAST32_WIDTH", "UINT_LEAST64_MAX", "UINT_LEAST64_WIDTH",
	"UINT_LEAST8_MAX", "UINT_LEAST8_WIDTH", "UINT_MAX", "UINT_WIDTH", "UIO_MAXIOV",
	"ULLONG_MAX", "ULLONG_WIDTH", "ULONG_LONG_MAX", "ULONG_MAX", "ULONG_WIDTH", "USHRT_MAX",
	"USHRT_WIDTH", "WCHAR_MAX", "WCHAR_MIN", "WCHAR_WIDTH", "WCONTINUED", "WEXITED",
	"WEXITSTATUS", "WIFCONTINUED", "WIFEXITED", "WIFSIGNALED", "WIFSTOPPED", "WINT_MAX",
	"WINT_MIN", "WINT_WIDTH", "WNOHANG", "WNOWAIT", "WORD_BIT", "WSTOPPED", "WSTOPSIG",
	"WTERMSIG", "WUNTRACED", "XATTR_LIST_MAX", "XATTR_NAME_MAX", "XATTR_SIZE_MAX", "alloca",
	"assert", "assert_perror", "be16toh", "be32toh", "be64toh", "errno", "htobe16",
	"htobe32", "htobe64", "htole16", "htole32", "htole64", "le16toh", "le32toh", "le64toh",
	"linux", "offsetof", "stderr", "stdin", "stdout", "strdupa", "strndupa", "unix",
	"unreachable",
};
/* clang-format on */

static const char *const library[] = {
	"free", "index", "memcpy", "memset", "size_t", "ssize_t",
};

enum xg_reserved xg_reserved_kind(const char *name)
{
	if (FIND(c_keywords, name))
		return XG_RESERVED_KEYWORD;
	if (FIND(macros, name))
		return XG_RESERVED_MACRO;
	if (FIND(library, name))
		return XG_RESERVED_LIBRARY;
	return XG_RESERVED_NOT;
}

const char *xg_reserved_text(enum xg_reserved kind)
{
	static const char *const texts[] = {"not reserved", "a keyword of C++ or C23",
					    "a macro of the C library", "a name of the C library"};

	return texts[kind];
}

const char *xg_reserved_name(size_t number)
{
	if (number < COUNT(c_keywords))
		return c_keywords[number];
	number -= COUNT(c_keywords);
	if (number < COUNT(macros))
		return macros[number];
	number -= COUNT(macros);
	return number < COUNT(library) ? library[number] : NULL;
}
