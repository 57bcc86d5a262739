/* SPDX-License-Identifier: BSD-2-Clause */
/* Parameters of procedures: declaring, passing and coding them (rxgen.md 5.1). */
#include "rxwgen/emit/emit.h"

/* Typedefs of bytes and arrays are coded by a call, which keeps stubs short. */
static struct emit_view make_param_view(const struct xg_param *param)
{
	struct emit_view view = emit_param_view(param);

	if (param->decl.kind == XG_NAMED && param->decl.shape != XG_FIXED &&
	    (view.form == EMIT_BYTES || view.form == EMIT_OPAQUE || view.form == EMIT_ARRAY))
		return (struct emit_view){
			.form = EMIT_CALL, .type = param->decl.type, .decl = &param->decl};
	return view;
}

/* The directions of the parameters that a function of the role has. */
static int role_directions(enum emit_role role)
{
	if (role == EMIT_START || role == EMIT_MULTI)
		return XG_IN;
	return role == EMIT_END || role == EMIT_REPLY || role == EMIT_ANSWER ? XG_OUT : XG_INOUT;
}

static const char *format_parameter(struct emit *e, const struct xg_param *param,
				    enum emit_role role)
{
	const struct xg_decl *decl = &param->decl;
	struct emit_view view = make_param_view(param);
	const char *name = emit_param_name(e, param);
	const char *type = emit_c_type(decl);
	bool in = param->direction == XG_IN || role == EMIT_ANSWER;
	bool constant = in || role == EMIT_START || role == EMIT_MULTI;
	const char *qualifier = constant ? "const " : "";

	if (decl->shape == XG_FIXED)
		return emit_format(e, "%s%s %s[%s]", qualifier, type, name, emit_bound(e, decl));
	if (view.form == EMIT_STRING && in)
		return emit_format(e, "const char *%s", name);
	if (view.form == EMIT_STRING)
		return emit_format(e, "char *%s*%s", qualifier, name);
	if (in && !emit_aggregate(&view))
		return emit_format(e, "%s %s", type, name);
	return emit_format(e, "%s%s *%s", qualifier, type, name);
}

const char *emit_params(struct emit *e, const struct xg_proc *proc, enum emit_role role)
{
	struct emit_list list = {.e = e};

	xg_for_params(param, proc, role_directions(role))
		emit_list_add(&list, "", format_parameter(e, param, role));
	return emit_list_end(&list);
}

const char *emit_arguments(struct emit *e, const struct xg_proc *proc, enum emit_role role)
{
	struct emit_list list = {.e = e};

	xg_for_params(param, proc, role_directions(role))
		emit_list_add(&list, "", emit_param_name(e, param));
	return emit_list_end(&list);
}

const char *emit_const_address(struct emit *e, const struct xg_param *param)
{
	struct emit_view view = emit_param_view(param);

	if (param->decl.shape == XG_FIXED)
		return "";
	/* Before C23 a pointer to an array of const needs a cast. */
	if (emit_is_array(&view))
		return emit_format(e, "(const %s *)&", emit_c_type(&param->decl));
	return "&";
}

const char *emit_variable(struct emit *e, const struct xg_param *param, const char *name)
{
	const struct xg_decl *decl = &param->decl;
	struct emit_view view = make_param_view(param);
	const char *type = emit_c_type(decl);

	if (decl->shape == XG_FIXED)
		return emit_format(e, "%s %s[%s]", type, name, emit_bound(e, decl));
	if (view.form == EMIT_STRING)
		return emit_format(e, "char *%s", name);
	return emit_format(e, "%s %s", type, name);
}

/* `format` is emit_put_call() or emit_get_call(). */
static void emit_param_coding(struct emit *e, const struct xg_param *param, const char *x,
			      const char *value,
			      const char *(*format)(struct emit *e, const struct emit_view *view,
						    const char *x, const char *value))
{
	struct emit_view view = make_param_view(param), element;
	const char *i = emit_loop(e);

	if (emit_is_call(&view)) {
		emit_line(e, "%s;", format(e, &view, x, value));
		return;
	}
	element = emit_element_view(view.decl);
	emit_line(e, "for (unsigned %s = 0; %s < %s; %s++)\n\t%s;", i, i, emit_bound(e, view.decl),
		  i, format(e, &element, x, emit_index(e, value, i)));
}

void emit_put_param(struct emit *e, const struct xg_param *param, const char *x, const char *value)
{
	emit_param_coding(e, param, x, value, emit_put_call);
}

void emit_get_param(struct emit *e, const struct xg_param *param, const char *x, const char *value)
{
	emit_param_coding(e, param, x, value, emit_get_call);
}

const char *emit_get_param_call(struct emit *e, const struct xg_param *param, const char *x,
				const char *value)
{
	struct emit_view view = make_param_view(param);

	return emit_get_call(e, &view, x, value);
}

const char *emit_initial(const struct xg_param *param)
{
	struct emit_view view = make_param_view(param);

	return param->decl.shape == XG_FIXED ? "{0}" : emit_initializer(&view);
}

void emit_free_param(struct emit *e, const struct xg_param *param, const char *value)
{
	struct emit_view view = make_param_view(param);

	emit_free_value(e, &view, value);
}

void emit_zero_param(struct emit *e, const struct xg_param *param, const char *value)
{
	const struct xg_decl *decl = &param->decl;
	struct emit_view view = make_param_view(param);

	if (decl->shape == XG_FIXED && decl->kind == XG_OPAQUE)
		emit_line(e, "memset(%s, 0, %s);", value, emit_bound(e, decl));
	else if (decl->shape == XG_FIXED)
		emit_line(e, "memset(%s, 0, %s * sizeof(*%s));", value, emit_bound(e, decl), value);
	else
		emit_zero(e, &view, emit_c_type(decl), value);
}

void emit_clear_param(struct emit *e, const struct xg_param *param, const char *value)
{
	struct emit_view view = make_param_view(param);

	emit_free_value(e, &view, value);
	if (view.form != EMIT_CALL || !emit_view_owns(&view))
		emit_zero_param(e, param, value);
}

/* -- heads of client functions ----------------------------------------------------------------- */

#define OPTIONS ", const struct rxw_call_options *$options"
static const struct {
	const char *suffix, *type, *name, *names, *options;
} variants[] = {
	[EMIT_PLAIN] = {"", "rxw_connection", "$connection", "$connections", ""},
	[EMIT_OPT] = {"_opt", "rxw_connection", "$connection", "$connections", OPTIONS},
	[EMIT_POOL] = {"_pool", "rxw_connpool", "$pool", "$pools", OPTIONS},
};

const char *emit_client_head(struct emit *e, const struct xg_proc *proc, enum emit_variant variant)
{
	return emit_stub_format(e, proc,
				emit_format(e, "int32_t $NAME%s(%s *%s%s%%s)",
					    variants[variant].suffix, variants[variant].type,
					    variants[variant].name, variants[variant].options),
				emit_params(e, proc, EMIT_CLIENT));
}

const char *emit_start_head(struct emit *e, const struct xg_proc *proc)
{
	return emit_stub_format(e, proc, "int32_t %s$NAME(rxw_call *$call%s)", proc->start,
				emit_params(e, proc, EMIT_START));
}

const char *emit_end_head(struct emit *e, const struct xg_proc *proc)
{
	return emit_stub_format(e, proc, "int32_t %s$NAME(rxw_call *$call%s)", proc->end,
				emit_params(e, proc, EMIT_END));
}

const char *emit_answer_head(struct emit *e, const struct xg_proc *proc)
{
	return emit_stub_format(e, proc, "int32_t $NAME_reply(rxw_call *$call, int32_t $code%s)",
				emit_params(e, proc, EMIT_ANSWER));
}

const char *emit_multi_head(struct emit *e, const struct xg_proc *proc, enum emit_variant variant)
{
	return emit_stub_format(
		e, proc,
		emit_format(e,
			    "int multi_$NAME%s(%s *const *%s, unsigned $count%s%%s, "
			    "$NAME_reply_fn $reply, void *$arg)",
			    variants[variant].suffix, variants[variant].type,
			    variants[variant].names, variants[variant].options),
		emit_params(e, proc, EMIT_MULTI));
}
