# SPDX-License-Identifier: BSD-2-Clause
# Security objects: the null class and rxkad.

classic_headers += src/classic/rx/fcrypt.h src/classic/rx/rxkad.h src/classic/rx/rxkad_prototypes.h
classic_sources += \
	src/classic/security/class.c src/classic/security/messages.c src/classic/security/rxkad.c \
	src/classic/security/security.h src/classic/security/tickets.c
