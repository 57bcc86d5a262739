# SPDX-License-Identifier: BSD-2-Clause
# The I/O layer of librxwire: the socket system calls. Each source with its private header.

rx_transport_sources += src/rx/io/faults.h src/rx/io/io.h src/rx/io/io_sock.h src/rx/io/io_linux.h
rx_transport_sources += src/rx/io/io_common.c
rx_transport_sources += src/rx/io/io_control.c
rx_transport_sources += src/rx/io/io_recv.c
rx_transport_sources += src/rx/io/io_send.c
rx_transport_sources += src/rx/io/io_set.c
rx_transport_sources += src/rx/io/io_sock.c
