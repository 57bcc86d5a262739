/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Constants of the kernel's interface that older C libraries lack; support is detected at run time.
 */
#ifndef RXW_IO_IO_LINUX_H
#define RXW_IO_IO_LINUX_H

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif
#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif
#ifndef IP_PMTUDISC_PROBE
#define IP_PMTUDISC_PROBE 3
#endif
#ifndef IPV6_PMTUDISC_PROBE
#define IPV6_PMTUDISC_PROBE 3
#endif
#ifndef IPV6_DONTFRAG
#define IPV6_DONTFRAG 62
#endif

#endif
