package connect

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// The members of an entry that only a client can apply. A server with one of
// them stays: without it, the server would do more than the user permitted, or
// not work.
var (
	restricts = []string{"enabled_tools", "disabled_tools", "enabledTools", "disabledTools", "allowedTools", "includeTools", "excludeTools", "tools", "sandboxEnabled", "sandbox"}
	needs     = []string{"envFile", "env_file", "headersHelper", "auth", "oauth", "authorization", "authProviderType"}
)

// taken returns a server's entry in the form of the gateway's configuration.
// Why says what prevents the move.
func taken(s *server, speak *variableRewriter) (e entry, why string) {
	if s.odd != "" {
		return nil, s.odd
	}
	e = slices.Clone(s.entry)
	if off, _ := e.get("disabled"); string(off) == "true" {
		return nil, "it is disabled"
	}
	if on, _ := e.get("enabled"); string(on) == "false" {
		return nil, "it is disabled"
	}
	e.drop("disabled", "enabled")
	for _, name := range slices.Concat(restricts, needs) {
		raw, there := e.get(name)
		if !there || empty(decoded(raw)) || string(raw) == "false" || name == "tools" && string(raw) == `["*"]` {
			continue
		}
		if slices.Contains(needs, name) {
			return nil, fmt.Sprintf("it needs %q, which only %s knows", name, speak.client)
		}
		return nil, fmt.Sprintf("it is restricted by %q, which would not count behind the gateway; a rule of the policy would", name)
	}
	for _, step := range []func() string{e.transport, func() string { return e.translate(speak) }, func() string { return e.codex(speak) }, e.readable} {
		if why := step(); why != "" {
			return nil, why
		}
	}
	return e, ""
}

// readable returns why the gateway would reject the entry. One invalid entry
// makes the whole configuration invalid, so that no server is served. The
// gateway checks the values of variables at its start.
func (e *entry) readable() (why string) {
	if _, err := canon.Parse(e.object(), canon.Limits{Bytes: 128 << 10, Depth: 60}); err != nil { // leaves room for the other entries of the file
		return "the gateway would not read its entry: a name is there twice, or half a character, or a number of many digits, or it is too long or too deep"
	}
	if command, there := e.text("command"); there && command == "" {
		return "its command is empty, which the gateway would not start"
	}
	link, there := e.text("url")
	if !there || strings.Contains(link, "${") {
		return ""
	}
	u, err := url.Parse(link)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return "its URL is not one of http or https with a host and without a user, as the gateway wants it"
	}
	return ""
}

// transport normalizes the members that say how a server is reached.
func (e *entry) transport() (why string) {
	for _, name := range []string{"serverUrl", "httpUrl"} {
		if _, there := e.get(name); there {
			e.drop("url")
			e.rename(name, "url")
		}
	}
	_, command := e.text("command")
	_, url := e.text("url")
	kind, _ := e.text("type")
	switch {
	case command == url:
		return "it names neither a command nor a URL, or both"
	case command && (kind == "" || kind == "stdio"):
		e.drop("type")
	case url && slices.Contains([]string{"", "http", "streamable-http", "streamableHttp", "streamable_http"}, kind):
		e.drop("type")
		*e = slices.Insert(*e, 0, field{"type", marshal("http")})
	case url && kind == "sse":
	default:
		return fmt.Sprintf("its type %q is not one that the gateway knows for it", kind)
	}
	return ""
}

// translate replaces the variables in those members.
func (e entry) translate(speak *variableRewriter) (why string) {
	for i, f := range e {
		if !slices.Contains(launches, f.Name) {
			continue
		}
		raw, bad := translated(decoded(f.Value), f.Name, speak)
		if bad != "" {
			return bad
		}
		if raw != nil {
			e[i].Value = raw
		}
	}
	return ""
}

// translated returns a value with its variables replaced, or nil if it is
// unchanged.
func translated(v any, name string, speak *variableRewriter) (raw json.RawMessage, why string) {
	changed := false
	one := func(v any, want string) any {
		text, ok := v.(string)
		if !ok {
			why = fmt.Sprintf("its %q is not %s", name, want)
			return v
		}
		is, bad := speak.text(text)
		if bad != "" {
			why = bad
		}
		changed = changed || is != text
		return is
	}
	switch {
	case name == "args" && v != nil:
		list, ok := v.([]any)
		if !ok {
			return nil, `its "args" is not a list of texts`
		}
		for i := range list {
			list[i] = one(list[i], "a list of texts")
		}
	case (name == "env" || name == "headers") && v != nil:
		m, ok := v.(map[string]any)
		if !ok {
			return nil, fmt.Sprintf("its %q is not an object of texts", name)
		}
		for key := range m {
			m[key] = one(m[key], "an object of texts")
		}
	case v != nil:
		v = one(v, "a text")
	}
	if why != "" || !changed {
		return nil, why
	}
	return marshal(v), ""
}

// codex converts the members that only Codex has, forwarded variables and
// headers, to the common form.
func (e *entry) codex(speak *variableRewriter) (why string) {
	merge := func(into string, from map[string]string) {
		all := map[string]any{}
		if raw, there := e.get(into); there {
			all, _ = decoded(raw).(map[string]any)
		}
		for name, text := range from {
			if _, there := all[name]; !there {
				all[name] = text
			}
		}
		if len(all) > 0 {
			e.set(into, all)
		}
	}
	handed := func(name string) string { speak.met(name); return "${" + name + "}" }
	if raw, there := e.get("http_headers"); there {
		var headers map[string]string
		if json.Unmarshal(raw, &headers) != nil || strings.Contains(string(raw), "${") {
			return `its "http_headers" are not plain texts`
		}
		merge("headers", headers)
	}
	if raw, there := e.get("env_http_headers"); there {
		var headers map[string]string
		if json.Unmarshal(raw, &headers) != nil {
			return `its "env_http_headers" are not texts`
		}
		for name, from := range headers {
			headers[name] = handed(from)
		}
		merge("headers", headers)
	}
	if from, there := e.text("bearer_token_env_var"); there {
		merge("headers", map[string]string{"Authorization": "Bearer " + handed(from)})
	}
	if raw, there := e.get("env_vars"); there {
		var names []string
		if json.Unmarshal(raw, &names) != nil {
			return `its "env_vars" are not names`
		}
		env := map[string]string{}
		for _, name := range names {
			env[name] = handed(name)
		}
		merge("env", env)
	}
	e.drop("http_headers", "env_http_headers", "bearer_token_env_var", "env_vars")
	return ""
}

// common returns an entry of a client in the form that most clients have:
// opencode writes the program and its arguments as one list.
func (c Client) common(e entry) entry {
	if c.dialect != braces {
		return e
	}
	e = slices.Clone(e)
	kind, _ := e.text("type")
	raw, _ := e.get("command")
	var line []string
	switch {
	case kind == "local" && json.Unmarshal(raw, &line) == nil && len(line) > 0:
		e.drop("type")
		e.set("command", line[0])
		if len(line) > 1 {
			e.set("args", line[1:])
		}
		e.rename("environment", "env")
	case kind == "remote":
		e.drop("type")
	}
	return e
}
