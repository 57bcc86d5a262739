# SPDX-License-Identifier: BSD-2-Clause
# Security objects: the null class and rxkad.

classic_sources += src/classic/security/class.c src/classic/security/security.h
