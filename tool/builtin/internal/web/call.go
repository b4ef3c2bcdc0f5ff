package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/web"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// Call has the fields of builtin.HTTPCall, which documents them: the compiler
// checks that one converts to the other.
type Call struct {
	Name        string
	Description string
	Version     string
	Tags        []string
	Method      string
	URL         string
	Headers     map[string]string
	Input       json.RawMessage
	Roles       provenance.Roles
	Secret      string
	Keyed       bool
	Undo        *handle.Compensation
}

var place = regexp.MustCompile(`\{([^{}]*)\}`)

// HTTPCall implements builtin.HTTPTool. It looks at what the call made or changed
// before and after the call. A revert changes that only if it still is what the call left.
func HTTPCall(c Call) (tool.Tool, error) {
	t, err := c.tool()
	if err != nil {
		return tool.Tool{}, fmt.Errorf("http call %q: %w", c.Name, err)
	}
	return t, nil
}

func (c Call) tool() (tool.Tool, error) {
	if c.Input == nil {
		c.Input = c.schema()
	}
	args, err := properties(c.Input)
	if err != nil {
		return tool.Tool{}, err
	}
	needs, err := c.needs(args)
	if err != nil {
		return tool.Tool{}, err
	}
	s := tool.Spec{
		Name: c.Name, Description: c.Description, Version: c.Version, Tags: c.Tags, Input: c.Input, Roles: c.Roles, Provenance: source(),
		Needs: needs, AccessFor: c.check, Confinement: tool.Handles, Destination: tool.Configured, EffectClass: effect.Pivot,
		Execute: c.execute, Hints: tool.Hints{Idempotent: c.Keyed},
	}
	switch {
	case handle.IsReadMethod(c.Method) && (c.Undo != nil || c.Keyed):
		return tool.Tool{}, fmt.Errorf("%s only reads: it has no key and no way back", c.Method)
	case handle.IsReadMethod(c.Method):
		s.EffectClass = effect.Pure
	case c.Undo != nil:
		s.EffectClass, s.Verify = effect.Compensable, lookAgain
	}
	if c.Undo != nil && !c.Keyed && (strings.Contains(c.Undo.Find, "{key}") || c.Undo.Replays) {
		return tool.Tool{}, errors.New("its way back asks by the key, and Keyed sends none")
	}
	if err := c.tried(args); err != nil {
		return tool.Tool{}, err
	}
	return tool.FromSpec(s)
}

// tried makes a request with a text for each argument, which finds what is wrong with
// all of them.
func (c Call) tried(args map[string]bool) error {
	some := map[string]string{}
	for name := range args {
		if c.names(name) || !handle.IsReadMethod(c.Method) {
			some[name] = "x"
		}
	}
	raw, err := json.Marshal(some)
	if err != nil {
		return err
	}
	r, err := c.request(raw, "k")
	if err != nil {
		return err
	}
	return handle.Check(r)
}

// names reports whether the URL has an argument in it.
func (c Call) names(arg string) bool { return strings.Contains(c.URL, "{"+arg+"}") }

// schema is the input of a call that says none.
func (c Call) schema() json.RawMessage {
	props, required := map[string]any{}, []string{}
	for _, m := range place.FindAllStringSubmatch(c.URL, -1) {
		if props[m[1]] == nil {
			required = append(required, m[1])
		}
		props[m[1]] = map[string]any{"type": "string", "minLength": 1}
	}
	raw, err := json.Marshal(map[string]any{"type": "object", "additionalProperties": false, "properties": props, "required": required})
	if err != nil {
		return nil
	}
	return raw
}

// properties names the arguments of a schema.
func properties(schema json.RawMessage) (map[string]bool, error) {
	var doc struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if err := json.Unmarshal(schema, &doc); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	out := map[string]bool{}
	for name := range doc.Properties {
		out[name] = true
	}
	return out, nil
}

// needs are the accesses of the call, of its looks and of its way back. What the
// answer names is a star.
func (c Call) needs(args map[string]bool) ([]perm.ResourceAccess, error) {
	type need struct{ method, url string }
	all := []need{{c.Method, c.URL}}
	if u := c.Undo; u != nil {
		item, back, method := or(u.Item, c.URL), or(u.URL, or(u.Item, c.URL)), or(u.Method, http.MethodDelete)
		all = append(all, need{http.MethodGet, item}, need{method, back})
		if u.Before {
			all = append(all, need{http.MethodDelete, back})
		}
		if u.Find != "" {
			all = append(all, need{http.MethodGet, u.Find})
		}
	}
	var out []perm.ResourceAccess
	for _, n := range all {
		base, _, _ := strings.Cut(n.url, "?")
		origin, path, ok := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(base, "https://"), "http://"), "/")
		if strings.Contains(origin, "{") || !ok && strings.Contains(base, "{") {
			return nil, errors.New("the host of a URL is fixed: valid are arguments in the path and the query")
		}
		for segment := range strings.SplitSeq(path, "/") {
			if strings.Contains(segment, "{") && place.ReplaceAllString(segment, "") != "" {
				return nil, fmt.Errorf("segment %q: an argument is a whole segment of the path", segment)
			}
		}
		pattern := place.ReplaceAllStringFunc(base, func(m string) string {
			if args[m[1:len(m)-1]] {
				return m
			}
			return "*"
		})
		if n.url == c.URL && strings.Contains(pattern, "*") {
			return nil, errors.New("the URL names what is no argument")
		}
		a := perm.ResourceAccess{Action: perm.Connect, Resource: strings.TrimSuffix(pattern, "/"), Method: n.method}
		if _, err := a.Pattern(); err != nil {
			return nil, err
		}
		if !slices.Contains(out, a) {
			out = append(out, a)
		}
	}
	if c.Secret != "" {
		out = append(out, perm.Access(perm.Use, "secret://"+c.Secret))
	}
	return out, nil
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// check refuses arguments that no request can be made of. What the call touches is in
// its needs.
func (c Call) check(raw json.RawMessage) ([]perm.ResourceAccess, error) {
	_, err := c.request(raw, "k")
	return nil, err
}

// request fills the call's templates in.
func (c Call) request(raw json.RawMessage, key string) (r handle.Request, err error) {
	var args map[string]json.RawMessage
	if err := canon.Decode(raw, &args); err != nil {
		return r, err
	}
	used := map[string]bool{}
	r = handle.Request{Method: c.Method, Headers: map[string]string{}}
	if r.URL, err = bind(c.URL, args, used, true); err != nil {
		return r, err
	}
	for name, value := range c.Headers {
		r.Headers[name] = value
	}
	if c.Keyed {
		r.Key = key
	}
	if u := c.Undo; u != nil {
		own := *u
		for _, text := range []*string{&own.Item, &own.Find, &own.URL} {
			if *text, err = bind(*text, args, used, false); err != nil {
				return r, err
			}
		}
		r.Compensation = &own
	}
	if !handle.IsReadMethod(c.Method) {
		body := map[string]json.RawMessage{}
		for name, value := range args {
			if !used[name] {
				body[name] = value
			}
		}
		if len(body) > 0 {
			r.Headers["Content-Type"] = "application/json"
			r.Body, err = canon.Marshal(body)
		}
	} else if unused := len(args) - len(used); unused > 0 {
		return r, errors.New("a call that reads has no body: name each argument in the URL")
	}
	if _, perr := handle.ParseURL(r.URL); err == nil {
		err = perr
	}
	return r, err
}

// bind puts arguments into a template. Names that are none stay, for the answer.
func bind(text string, args map[string]json.RawMessage, used map[string]bool, all bool) (string, error) {
	var failed error
	path, query, hasQuery := strings.Cut(text, "?")
	in := func(part string, escape func(string) string) string {
		return place.ReplaceAllStringFunc(part, func(m string) string {
			name := m[1 : len(m)-1]
			raw, ok := args[name]
			if !ok {
				if all {
					failed = fmt.Errorf("argument %q is missing: the URL names it", name)
				}
				return m
			}
			used[name] = true
			value, err := plain(raw)
			if err == nil && part == path && (value == "" || value == "." || value == ".." || strings.Contains(value, "/")) {
				err = errors.New("valid in a path is one name, not empty, without a slash")
			}
			if err != nil {
				failed = fmt.Errorf("argument %q: %w", name, err)
			}
			return escape(value)
		})
	}
	out := in(path, url.PathEscape)
	if hasQuery {
		out += "?" + in(query, url.QueryEscape)
	}
	return out, failed
}

// plain is a text or a number as it stands in a URL.
func plain(raw json.RawMessage) (string, error) {
	var s string
	if string(raw) != "null" && json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	switch text := string(raw); {
	case text == "true", text == "false", text != "null" && json.Unmarshal(raw, new(json.Number)) == nil:
		return text, nil
	}
	return "", errors.New("valid in a URL are a text, a number, true and false")
}

func (c Call) execute(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
	r, err := c.request(raw, strings.TrimPrefix(tc.Call().Key, "sha256:"))
	if err != nil {
		return tool.Result{}, err
	}
	resp, err := handle.Do(ctx, tc, r)
	if err != nil {
		return tool.Result{}, err
	}
	if !resp.OK() && c.Undo != nil {
		return tool.Result{}, fmt.Errorf("the service answered %d: %.500s", resp.Status, resp.Body)
	}
	return result(c.Method, resp)
}
