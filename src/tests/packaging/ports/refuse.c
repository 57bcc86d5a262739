/* SPDX-License-Identifier: BSD-2-Clause */
/* A kernel without certain features: refuses system calls to this process and its children. */
#include "refuse.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define UDP_LEVEL     17
#define SEGMENT	      103
#define GRO	      104
#define ATTACH_CBPF   51
#define ATTACH_EBPF   52
#define MOST	      96

#if defined(__x86_64__)
#	define MACHINE AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#	define MACHINE AUDIT_ARCH_AARCH64
#elif defined(__s390x__)
#	define MACHINE AUDIT_ARCH_S390X
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#	define MACHINE AUDIT_ARCH_PPC64LE
#elif defined(__riscv) && __riscv_xlen == 64
#	define MACHINE AUDIT_ARCH_RISCV64
#else
#	define MACHINE 0u /* no way to distinguish its calls */
#endif

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#	define LOW_WORD 4
#else
#	define LOW_WORD 0
#endif

struct program {
	unsigned length;
	struct sock_filter code[MOST];
};

static void add(struct program *p, struct sock_filter s)
{
	p->code[p->length++] = s;
}

static void load(struct program *p, size_t offset)
{
	add(p, (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset));
}

static void answer(struct program *p, int error)
{
	add(p, (struct sock_filter)BPF_STMT(
		       BPF_RET | BPF_K,
		       error ? SECCOMP_RET_ERRNO | (uint32_t)error : SECCOMP_RET_ALLOW));
}

/* Continues if the loaded value is `value`, else skips the next `otherwise` instructions. */
static void is(struct program *p, uint32_t value, uint8_t otherwise)
{
	add(p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, otherwise));
}

static void no_call(struct program *p, long call, int error)
{
	load(p, offsetof(struct seccomp_data, nr));
	is(p, (uint32_t)call, 1);
	answer(p, error);
}

static void no_option(struct program *p, int level, int name)
{
	load(p, offsetof(struct seccomp_data, nr));
	is(p, (uint32_t)SYS_setsockopt, 5);
	load(p, offsetof(struct seccomp_data, args[1]) + LOW_WORD);
	is(p, (uint32_t)level, 3);
	load(p, offsetof(struct seccomp_data, args[2]) + LOW_WORD);
	is(p, (uint32_t)name, 1);
	answer(p, ENOPROTOOPT);
}

static bool named(const char *what, size_t length, const char *name)
{
	return (strlen(name) == length && !strncmp(what, name, length)) ||
	       (length == 3 && !strncmp(what, "all", 3) && strcmp(name, "mmsg-filtered") != 0);
}

/* Appends the rules for one word. False: unknown word. */
static bool rules(struct program *p, const char *what, size_t length)
{
	unsigned before = p->length;

	if (named(what, length, "gso"))
		no_option(p, UDP_LEVEL, SEGMENT);
	if (named(what, length, "gro"))
		no_option(p, UDP_LEVEL, GRO);
	if (named(what, length, "steer")) {
		no_option(p, SOL_SOCKET, ATTACH_CBPF);
		no_option(p, SOL_SOCKET, ATTACH_EBPF);
	}
	if (named(what, length, "reuseport"))
		no_option(p, SOL_SOCKET, SO_REUSEPORT);
	if (named(what, length, "mmsg") || named(what, length, "mmsg-filtered")) {
		int error = named(what, length, "mmsg") ? ENOSYS : EPERM;

		no_call(p, SYS_sendmmsg, error);
		no_call(p, SYS_recvmmsg, error);
	}
	return p->length > before;
}

int refuse(const char *what)
{
	struct program p = { 0 };
	struct sock_fprog program = { .filter = p.code };

	load(&p, offsetof(struct seccomp_data, arch));
	is(&p, MACHINE, 1);
	add(&p, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
	answer(&p, 0);
	for (size_t n; *what; what += n + (what[n] == ',')) {
		n = strcspn(what, ",");
		if (p.length > MOST / 2 || !rules(&p, what, n))
			return -EINVAL;
	}
	if (!MACHINE)
		return -ENOTSUP;
	answer(&p, 0);
	program.len = (unsigned short)p.length;
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return errno == EINVAL || errno == ENOSYS ? -ENOTSUP : -errno;
	return 0;
}
